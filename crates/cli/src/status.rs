//! `oarlock status`: what a running host or app-server does.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use ::terminal::{ServerAddress, ask_once};
use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{SandboxStatusLevel, ServerKind, ServerStatusResponse};
use serde_json::Value;

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
    print!("{}", clean(&text(&status)));
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

fn text(status: &ServerStatusResponse) -> String {
    let kind = match status.kind {
        ServerKind::AppServer => "app-server",
        ServerKind::Host => "host",
    };
    let stopping = if status.is_stopping { ", stopping" } else { "" };
    let uptime = duration(status.uptime_seconds);
    let mut lines = vec![format!(
        "oarlock {kind} {}, process {}, up {uptime}{stopping}",
        status.version, status.process_id
    )];
    let mut row = |name: &str, value: String| lines.push(format!("  {name:<12} {value}"));
    row("connections", status.connections.to_string());
    row(
        "threads",
        format!("{} loaded, {} with a turn that runs", status.threads_loaded, status.turns_running),
    );
    let age = status.oldest_waiting_ms.map(|ms| u64::try_from(ms / 1_000).unwrap_or_default());
    let age = age.map(|age| format!(", the oldest for {}", duration(age))).unwrap_or_default();
    row("waiting", format!("{}{age}", status.waiting));
    if let Some(host) = &status.host {
        let tasks: Vec<String> = host.tasks.iter().map(|(state, count)| format!("{count} {state}")).collect();
        row("tasks", if tasks.is_empty() { "none".to_owned() } else { tasks.join(", ") });
        row("runtimes", format!("{}, {} tasks wait for room", host.runtimes, host.queued));
    }
    if let Some(bytes) = status.memory_bytes {
        row("memory", format!("{:.1} MB", bytes as f64 / 1e6));
    }
    let level = match status.sandbox.level {
        SandboxStatusLevel::Full => "full",
        SandboxStatusLevel::LandlockOnly => "Landlock alone",
        SandboxStatusLevel::None => "none",
    };
    let reason = status.sandbox.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    row("sandbox", format!("{level}{reason}"));
    lines.join("\n") + "\n"
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_is_shown_with_its_tasks() {
        let status = json!({
            "kind": "host", "version": "0.1.0", "processId": 4711, "uptimeSeconds": 11_520, "isStopping": true,
            "connections": 3, "threadsLoaded": 2, "turnsRunning": 1, "waiting": 1, "oldestWaitingMs": 245_000,
            "memoryBytes": 50_331_648, "sandbox": {"level": "none", "reason": "no namespaces"},
            "host": {"tasks": {"idle": 12, "running": 1}, "runtimes": 2, "queued": 0},
        });
        let expected = "\
oarlock host 0.1.0, process 4711, up 3h 12m, stopping
  connections  3
  threads      2 loaded, 1 with a turn that runs
  waiting      1, the oldest for 4m 5s
  tasks        12 idle, 1 running
  runtimes     2, 0 tasks wait for room
  memory       50.3 MB
  sandbox      none: no namespaces
";
        assert_eq!(text(&serde_json::from_value(status).expect("a status")), expected);
    }
}
