//! Speaks to a running host over the socket beside its store. Blocking on purpose: one command, one or two requests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use runtime::config::Home;
use serde_json::{Value, json};

use super::{StoreChoice, machine_name};

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same while a command line is completed.
const WORDS_PATIENCE: Duration = Duration::from_secs(1);

/// Names the host for all commands of a shell.
const HOST_VARIABLE: &str = "OARLOCK_HOST";

/// Which host a command speaks to.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct HostChoice {
    /// The socket of a running host, as `unix://PATH`; else the variable OARLOCK_HOST, else the one beside the store.
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// The store of the host, as given to `oarlock host`; else the variable OARLOCK_STORE.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
}

impl HostChoice {
    /// As the words of a command line name it.
    pub(crate) fn of_words(words: &[String]) -> Self {
        let value = |flag: &str| {
            let at = words.iter().position(|word| word == flag);
            let joined = words.iter().find_map(|word| word.strip_prefix(&format!("{flag}=")));
            joined.or_else(|| words.get(at? + 1).map(String::as_str)).map(str::to_owned)
        };
        Self { host: value("--host"), store: value("--store") }
    }

    /// The host of this `sqlite:` store.
    pub(crate) fn of_store(path: &Path) -> Self {
        Self { host: None, store: Some(format!("sqlite:{}", path.display())) }
    }

    /// The flags as they were given, to be repeated in a command.
    pub(crate) fn words(&self) -> String {
        let word =
            |flag: &str, value: &Option<String>| value.as_ref().map(|value| format!(" {flag} {value}"));
        [word("--host", &self.host), word("--store", &self.store)].into_iter().flatten().collect()
    }

    /// The socket of the host that is meant.
    pub(crate) fn socket(&self) -> Result<PathBuf> {
        let named =
            || std::env::var(HOST_VARIABLE).ok().filter(|url| !url.is_empty() && self.store.is_none());
        if let Some(url) = self.host.clone().or_else(named) {
            return match url.strip_prefix("unix://") {
                Some(path) if !path.is_empty() => Ok(path.into()),
                _ => bail!("--host {url}: expected `unix://PATH`"),
            };
        }
        let home = Home::look_from_env()?;
        let store = StoreChoice::parse(self.store.as_deref(), home.reading())?;
        Ok(store.socket(&machine_name(), home.reading()))
    }
}

pub(crate) struct HostConnection {
    input: BufReader<UnixStream>,
    output: UnixStream,
    next_id: u64,
}

impl HostConnection {
    pub(crate) fn open(choice: &HostChoice) -> Result<Self> {
        let socket = choice.socket()?;
        Self::connect(&socket).with_context(|| {
            format!("no host answers at {}; start one with `oarlock host`", socket.display())
        })
    }

    /// For somebody who waits at a keyboard: a host that does not answer soon has nothing to say.
    pub(crate) fn open_for_words(choice: &HostChoice) -> Result<Self> {
        Self::connect_within(&choice.socket()?, WORDS_PATIENCE)
    }

    pub(super) fn connect(socket: &Path) -> Result<Self> {
        Self::connect_within(socket, PATIENCE)
    }

    fn connect_within(socket: &Path, patience: Duration) -> Result<Self> {
        let output = UnixStream::connect(socket)?;
        output.set_read_timeout(Some(patience))?;
        let mut connection = Self { input: BufReader::new(output.try_clone()?), output, next_id: 0 };
        let client = json!({ "name": "oarlock_cli", "title": null, "version": env!("CARGO_PKG_VERSION") });
        let capabilities = json!({ "experimentalApi": true, "host": { "versions": [1] } });
        let answer =
            connection.ask("initialize", &json!({ "clientInfo": client, "capabilities": capabilities }))?;
        if !answer["capabilities"]["host"].is_object() {
            bail!("this is an app-server, not a host");
        }
        Ok(connection)
    }

    /// A refusal is an error with the host's own words.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next_id += 1;
        let id = self.next_id;
        let mut line = json!({ "id": id, "method": method, "params": params }).to_string();
        line.push('\n');
        self.output.write_all(line.as_bytes())?;
        loop {
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                bail!("the host ended the connection");
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] != id || message["method"].is_string() {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{}", error["message"].as_str().unwrap_or("refused"));
            }
            return Ok(message["result"].take());
        }
    }
}
