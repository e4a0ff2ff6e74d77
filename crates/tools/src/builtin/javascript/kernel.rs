//! A Node.js process that runs scripts, and its messages. Everything it sends is bounded and checked: a script shares
//! the process with the kernel, and can write anything to its pipes.

use std::sync::Arc;

use sandbox::{Chunk, CommandGuard, Confinement, HeadTail, Io, OutputStream, Process};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::authorize::ClearedScript;
use crate::digest::digest_of;
use crate::exec::{CommandOutlet, Go, Setting, start, text_of};

/// The oldest supported Node.js.
const LEAST_NODE: &str = "18";
/// Limit of a message: an image of some megabytes fits.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Limit of a script's output outside the protocol.
const STRAY_BYTES: usize = 64 << 10;

/// The program of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum KernelProgram {
    Repl,
    Script,
}

impl KernelProgram {
    fn source(self) -> &'static str {
        match self {
            Self::Repl => concat!(include_str!("channel.js"), include_str!("repl.js")),
            Self::Script => concat!(include_str!("channel.js"), include_str!("script.js")),
        }
    }
}

/// A message from a kernel.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum KernelMessage {
    Text {
        text: String,
    },
    Image {
        url: String,
        detail: Option<String>,
    },
    /// Calls a tool. `is_text`: with plain text instead of JSON.
    Call {
        number: u64,
        name: String,
        arguments: String,
        is_text: bool,
    },
    Store {
        key: String,
        value: Value,
    },
    Notify {
        text: String,
    },
    Yield,
    Done {
        failed: bool,
        text: String,
    },
    /// The kernel ends because of this.
    Fatal {
        text: String,
    },
}

/// The result of a nested call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallAnswer {
    pub(super) kind: &'static str,
    pub(super) number: u64,
    pub(super) output: Value,
    pub(super) is_error: bool,
}

/// Killed on drop with all its processes, even while others hold the process.
#[derive(Debug)]
pub(crate) struct NodeKernel {
    process: Process,
    outlet: CommandOutlet,
    mark: Vec<u8>,
    /// Standard output since the last line break.
    line: Vec<u8>,
    /// How much of the line was searched for its end.
    searched: usize,
    /// The line is no message, and its beginning was counted as output already.
    is_stray: bool,
    stray: HeadTail,
    confinement: Option<Confinement>,
    /// Holds what must outlast the process, such as the search for new repositories.
    _setting: Setting,
}

impl NodeKernel {
    pub(super) async fn start(cleared: ClearedScript, program: KernelProgram) -> Result<Self, String> {
        let (mut here, setting, _) = cleared.into_parts();
        let mark = digest_of(&serde_json::json!([here.order.argv, std::process::id(), setting.call_id]));
        let mark: String = mark.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
        let confinement = here.order.confinement.clone();
        here.order.argv.truncate(1);
        let rest = ["-e", program.source(), "--", &mark, LEAST_NODE];
        here.order.argv.extend(rest.map(str::to_owned));
        let guard: CommandGuard = Arc::new(setting.scope.hold());
        let started = start(Go::Here(here), Io::Pipe, guard).await;
        let (process, outlet) =
            started.map_err(|blocked| format!("Node could not be started: {blocked:?}"))?;
        let (line, stray) = (Vec::new(), HeadTail::new(STRAY_BYTES));
        let mark = mark.into_bytes();
        let (searched, is_stray) = (0, false);
        Ok(Self { process, outlet, mark, line, searched, is_stray, stray, confinement, _setting: setting })
    }

    /// Whether a script with this sandbox may run in this kernel: both sandboxes must be equal.
    pub(super) fn fits(&self, cleared: &ClearedScript) -> bool {
        // The protected repositories are found while commands run, and only restrict further.
        let confinement = |confinement: &Option<Confinement>| {
            confinement.clone().map(|confinement| Confinement { protected_paths: Vec::new(), ..confinement })
        };
        self.is_alive() && confinement(&self.confinement) == confinement(&cleared.here.order.confinement)
    }

    pub(super) fn is_alive(&self) -> bool {
        self.process.exit().is_none()
    }

    /// The provider fetches what an address leads to. Where a script has no network, an address would carry out whatever is
    /// written into it.
    pub(super) fn may_show(&self, image_url: &str) -> bool {
        let has_network = self.confinement.as_ref().is_none_or(|confinement| confinement.network);
        image_url.starts_with("data:") || (has_network && image_url.starts_with("https:"))
    }

    pub(super) fn kill(&self) {
        self.process.kill();
    }

    pub(super) fn process(&self) -> Process {
        self.process.clone()
    }

    pub(super) async fn send<M: Serialize>(&self, message: &M) -> Result<(), String> {
        let mut line = serde_json::to_vec(message).map_err(|error| error.to_string())?;
        line.push(b'\n');
        self.process.write(&line).await.map_err(|error| error.to_string())
    }

    /// `None` when the process has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Result<KernelMessage, String>> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.line[self.searched..]) {
                let line: Vec<u8> = self.line.drain(..=self.searched + end).collect();
                self.searched = 0;
                if let Some(message) = self.read(&line) {
                    return Some(message);
                }
                continue;
            }
            self.searched = self.line.len();
            self.is_stray |= self.line.len() >= self.mark.len() && !self.line.starts_with(&self.mark);
            if self.is_stray {
                self.stray.push(&self.line);
                self.line.clear();
                self.searched = 0;
            } else if self.line.len() > LONGEST_MESSAGE {
                return Some(Err("it sent a message that is too long".to_owned()));
            }
            let Chunk { stream, bytes } = self.outlet.next().await?;
            match stream {
                OutputStream::Stdout => self.line.extend_from_slice(&bytes),
                OutputStream::Stderr => self.stray.push(&bytes),
            }
        }
    }

    fn read(&mut self, line: &[u8]) -> Option<Result<KernelMessage, String>> {
        let is_stray = std::mem::take(&mut self.is_stray);
        match line.strip_prefix(self.mark.as_slice()).filter(|_| !is_stray) {
            Some(json) => {
                let read = serde_json::from_slice(json);
                Some(read.map_err(|error| format!("it sent a message that cannot be read: {error}")))
            }
            None => {
                if line != b"\n" {
                    self.stray.push(line);
                }
                None
            }
        }
    }

    /// Output outside the protocol since the last call.
    pub(super) fn take_stray(&mut self) -> String {
        let stray = std::mem::replace(&mut self.stray, HeadTail::new(STRAY_BYTES));
        text_of(&stray)
    }
}

impl Drop for NodeKernel {
    fn drop(&mut self) {
        self.process.kill();
    }
}
