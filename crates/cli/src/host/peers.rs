//! `host.peer_listen`: where other hosts on the same Postgres connect, and the secret they share.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use server::{PEER_SCHEME, PeerPort, PeerSecret};

use super::StoreChoice;
use super::host_table::HostTable;

/// The secret itself, where there is no file.
const SECRET_VARIABLE: &str = "OARLOCK_PEER_SECRET";

/// The port for other hosts, and what they need to find it.
#[derive(Debug)]
pub(super) struct PeerSetup {
    pub(super) port: PeerPort,
    pub(super) secret: PeerSecret,
    /// As the store tells it to the others.
    pub(super) address: String,
}

impl PeerSetup {
    /// Commands of tasks must not connect to it.
    pub(super) fn port_number(&self) -> Option<u16> {
        self.port.address().ok().map(|address| address.port())
    }
}

/// The file of the secret, which no command may read.
pub(super) fn secret_file(table: &HostTable) -> Option<PathBuf> {
    table.peer_secret.clone()
}

fn secret(table: &HostTable) -> Result<PeerSecret> {
    if let Some(file) = &table.peer_secret {
        let read = PeerSecret::read(file).map_err(anyhow::Error::msg);
        return read.with_context(|| format!("host.peer_secret {}", file.display()));
    }
    match std::env::var(SECRET_VARIABLE) {
        Ok(text) => PeerSecret::new(&text).map_err(anyhow::Error::msg).context(SECRET_VARIABLE),
        Err(_) => bail!(
            "host.peer_listen needs a secret that all hosts share: put it into a file and name that with host.peer_secret, \
             or into {SECRET_VARIABLE}"
        ),
    }
}

/// Opens the port if the configuration names one.
pub(super) async fn open(table: &HostTable, store: &StoreChoice, replica: &str) -> Result<Option<PeerSetup>> {
    let Some(listen) = &table.peer_listen else { return Ok(None) };
    if let StoreChoice::Sqlite(_) = store {
        bail!("host.peer_listen: a SQLite store has one host; share a Postgres, or leave it out");
    }
    let asked: SocketAddr =
        listen.parse().with_context(|| format!("host.peer_listen {listen}: expected IP:PORT"))?;
    let secret = secret(table)?;
    let port = PeerPort::bind(asked, secret.clone(), replica).await;
    let port = port.with_context(|| format!("host.peer_listen {listen}: it cannot be opened"))?;
    let bound = port.address()?;
    let shown = match &table.peer_address {
        Some(address) => address.clone(),
        None if bound.ip().is_unspecified() => bail!(
            "host.peer_listen {listen}: other hosts cannot connect to this address; name one that they reach with \
             host.peer_address"
        ),
        None => bound.to_string(),
    };
    Ok(Some(PeerSetup { port, secret, address: format!("{PEER_SCHEME}{shown}") }))
}
