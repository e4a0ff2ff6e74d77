//! Arguments of a server that runs as a service: how it logs, how it stops, and the socket it is given.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use server::{Hub, Listen, ServerListener, ServerOptions, WsAuth};
use service::{LogFormat, OPEN_TARGET};
use tracing_subscriber::filter::LevelFilter;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceArgs {
    /// After SIGTERM, how long turns that run may take to end, in seconds. No new turn begins meanwhile.
    #[arg(long, value_name = "SECONDS", default_value_t = ServerOptions::DRAIN_TIMEOUT.as_secs())]
    drain_timeout: u64,
    /// How log lines look. Which ones there are, RUST_LOG says: `info` tells connections and turns.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
}

impl ServiceArgs {
    pub(crate) fn start_logging(&self) {
        service::init_logging_as(LevelFilter::WARN, self.log_format);
    }

    /// Whether standard error holds an object in each line.
    pub(crate) fn logs_json(&self) -> bool {
        service::logs_json(self.log_format)
    }

    /// Says on standard error where the server is: for people, or as a log line where each line is an object.
    pub(crate) fn announce(&self, listener: &ServerListener, auth: &WsAuth) {
        if self.logs_json() {
            listener.warn_if_exposed(auth);
            tracing::info!(target: OPEN_TARGET, address = listener.url(), "the server is open");
        } else {
            listener.announce(auth);
        }
    }

    pub(crate) fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout)
    }
}

/// The socket that `--listen fd://` means. Called before anything else opens files.
pub(crate) fn inherited(listen: &Listen) -> Result<Option<OwnedFd>> {
    if *listen != Listen::Inherited {
        return Ok(None);
    }
    let mut sockets = sandbox::inherited_sockets()?;
    match (sockets.pop(), sockets.len()) {
        (Some(socket), 0) => Ok(Some(socket)),
        (Some(_), more) => bail!("--listen fd:// serves one socket, and {} were passed", more + 1),
        (None, _) => bail!(
            "--listen fd:// needs a socket from the service manager, as in the unit oarlock.socket, and none was passed"
        ),
    }
}

/// Ends when the server begins to stop.
pub(crate) fn stopping(hub: &Arc<Hub>) -> impl Future<Output = ()> + Send + 'static {
    let hub = hub.clone();
    async move { hub.stopping().await }
}
