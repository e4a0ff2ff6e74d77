//! Servers that are programs: started for one connection, connected by their standard streams, and ended with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::closed_search_path;
use sandbox::{Io, Limits, Order, Output, OutputStream, Process};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::wire::{Arrival, Line, LineCutter, MAX_MESSAGE, McpWire, WAITING};

/// The variables of this process that every server inherits, besides configured ones.
const INHERITED: &[&str] =
    &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"];

/// How long a server may run after its input is closed.
const GRACE: Duration = Duration::from_millis(500);
/// Limit of the kept error output, to report why it ended.
const KEPT_ERRORS: usize = 2000;
/// Limit of invalid lines that are logged.
const LOGGED_GARBAGE: usize = 5;

/// A configured program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerProgram<'a> {
    pub(crate) name: &'a str,
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) env_vars: &'a [String],
    pub(crate) cwd: &'a Path,
    /// Folders that commands of the thread can write.
    pub(crate) writable: &'a [PathBuf],
}

/// Starts it. Its processes end when the wire is dropped, and with this process.
pub(crate) async fn connect(program: ServerProgram<'_>) -> Result<McpWire, String> {
    let mut argv = vec![program.command.to_owned()];
    argv.extend(program.args.iter().cloned());
    let order = Order {
        argv,
        cwd: program.cwd.to_owned(),
        env: environment(&program),
        confinement: None,
        limits: Limits::default(),
        terminal: false,
    };
    let searched = order.env.get("PATH").cloned().unwrap_or_default();
    let (process, output) = Process::spawn(order, Io::Pipe).await.map_err(|error| {
        let hint = match program.command.contains('/') {
            true => String::new(),
            false => format!(
                "; its program was looked for in {searched}. Folders that commands of the thread can write are left \
                 out: name the program with its whole path"
            ),
        };
        format!("cannot start it: {error}{hint}")
    })?;
    let (outgoing, to_write) = mpsc::channel(WAITING);
    let (arrived, arrivals) = mpsc::channel(WAITING);
    tokio::spawn(write(process.clone(), to_write));
    tokio::spawn(read(program.name.to_owned(), process, output, arrived));
    Ok(McpWire { outgoing, arrivals })
}

fn environment(program: &ServerProgram<'_>) -> BTreeMap<String, String> {
    let named = INHERITED.iter().copied().chain(program.env_vars.iter().map(String::as_str));
    let mut env: BTreeMap<String, String> =
        named.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))).collect();
    if let Some(path) = env.get_mut("PATH") {
        // A server runs without a sandbox, and may start other programs by name.
        *path = closed_search_path(path, program.writable);
    }
    env.extend(program.env.clone());
    env
}

/// The server's folder: configured, or the thread's.
pub(crate) fn working_folder(configured: Option<&PathBuf>, of_thread: &str) -> PathBuf {
    let of_thread = Path::new(of_thread);
    match configured {
        Some(folder) => of_thread.join(folder),
        None if of_thread.is_dir() => of_thread.to_owned(),
        None => PathBuf::from("/"),
    }
}

/// Until all senders are dropped: then the server is asked to end by closing its input, and killed after a while.
async fn write(process: Process, mut messages: mpsc::Receiver<Value>) {
    while let Some(message) = messages.recv().await {
        let mut line = message.to_string();
        line.push('\n');
        if process.write(line.as_bytes()).await.is_err() {
            break;
        }
    }
    let _ = process.close_stdin().await;
    let _ = tokio::time::timeout(GRACE, process.wait()).await;
    process.kill();
}

async fn read(name: String, process: Process, mut output: Output, arrived: mpsc::Sender<Arrival>) {
    let (mut lines, mut errors) = (LineCutter::default(), Vec::new());
    let mut garbage = 0;
    while let Some(chunk) = output.next().await {
        if chunk.stream == OutputStream::Stderr {
            remember(&mut errors, &chunk.bytes);
            continue;
        }
        for line in lines.push(&chunk.bytes, MAX_MESSAGE) {
            let arrival = match line {
                Line::TooLong => Arrival::TooLarge,
                Line::Whole(line) if line.trim_ascii().is_empty() => continue,
                Line::Whole(line) => match serde_json::from_slice::<Value>(&line) {
                    Ok(message) if message.is_object() || message.is_array() => Arrival::Message(message),
                    _ => {
                        garbage += 1;
                        if garbage <= LOGGED_GARBAGE {
                            tracing::warn!(server = name, "an MCP server wrote a line that is no message");
                        }
                        continue;
                    }
                },
            };
            if arrived.send(arrival).await.is_err() {
                // No receiver is left, so the connection has ended.
                process.kill();
                return;
            }
        }
    }
    let exit = process.wait().await;
    let errors = String::from_utf8_lossy(&errors);
    let said = errors.trim().lines().last().unwrap_or_default();
    let why = match (exit.signal, said) {
        (Some(signal), "") => format!("the server was ended by signal {signal}"),
        (Some(signal), said) => format!("the server was ended by signal {signal}: {said}"),
        (None, "") => format!("the server ended with code {}", exit.code),
        (None, said) => format!("the server ended with code {}: {said}", exit.code),
    };
    let _ = arrived.send(Arrival::Ended(why)).await;
}

fn remember(errors: &mut Vec<u8>, bytes: &[u8]) {
    errors.extend_from_slice(bytes);
    let excess = errors.len().saturating_sub(KEPT_ERRORS);
    errors.drain(..excess);
}
