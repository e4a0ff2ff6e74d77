//! `oarlock status`: what a running host or app-server does.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use ::terminal::{ServerAddress, ask_once};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use turn_view::status_text;

use crate::host::client::HostChoice;
use crate::terminal::clean;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock status                                  the host of this user
  oarlock status --store sqlite:tasks.sqlite      the host of this store
  oarlock status --remote ws://127.0.0.1:4500     an app-server or a host
  oarlock status --json --remote unix:///run/oarlock/oarlock.sock";

#[derive(Debug, Args)]
pub(crate) struct StatusOptions {
    #[command(flatten)]
    host: HostChoice,
    /// Any server: `ws://IP:PORT`, `unix://PATH`, or the path of its socket.
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "store"])]
    remote: Option<String>,
    /// The file with the token that the server asks for.
    #[arg(long, value_name = "FILE", requires = "remote")]
    ws_token_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &StatusOptions) -> Result<ExitCode> {
    let url = options.url()?;
    let token = options
        .ws_token_file
        .as_ref()
        .map(|path| fs::read_to_string(path).with_context(|| format!("--ws-token-file {}", path.display())));
    let token = token.transpose()?.map(|token| token.trim().to_owned());
    let address = ServerAddress::Remote { url: url.clone(), token };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = tokio.block_on(ask_once(&address, env!("CARGO_PKG_VERSION"), "server/status", &Value::Null));
    let answer = match asked {
        Ok(answer) => answer,
        Err(error) if is_nobody(&error) => bail!("{}", options.nobody(&url)),
        Err(error) => return Err(error),
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
        return Ok(ExitCode::SUCCESS);
    }
    let status = serde_json::from_value(answer).context("the answer of the server cannot be read")?;
    print!("{}", clean(&status_text(&status)));
    Ok(ExitCode::SUCCESS)
}

/// There is no socket, or nobody listens on it.
fn is_nobody(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    kinds.into_iter().any(|error| matches!(error.kind(), ConnectionRefused | NotFound))
}

impl StatusOptions {
    fn url(&self) -> Result<String> {
        match &self.remote {
            Some(url) if url.contains("://") => Ok(url.clone()),
            Some(path) => Ok(format!("unix://{path}")),
            None => Ok(format!("unix://{}", self.host.socket()?.display())),
        }
    }

    fn nobody(&self, url: &str) -> String {
        match &self.remote {
            Some(_) => format!("nothing runs at {url}"),
            None => format!(
                "no host runs at {url}; start one with `oarlock host`, or name another server with --remote"
            ),
        }
    }
}
