//! Runs one of the user's own tools on this machine, bounded in time and output.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::error::{PlacementError, last_line, shown};
use crate::search::{find_tool, tool_path};

/// Answers of tools are identifiers and short lists.
const MAX_ANSWER: usize = 4 << 20;
/// How often a folder is measured that a tool fills.
const MEASURE_EVERY: Duration = Duration::from_millis(200);
/// After a tool's end, how long its pipes may stay open.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct ToolOutput {
    pub(crate) success: bool,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl ToolOutput {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim().to_owned()
    }
}

/// One call of a tool: what it is for, in words that fit before "failed", and its argv.
#[derive(Debug)]
pub(crate) struct ToolRun<'a> {
    pub(crate) action: &'a str,
    pub(crate) argv: &'a [String],
    pub(crate) stdin: &'a [u8],
    pub(crate) limit: Duration,
    /// Of the folder that it fills.
    pub(crate) room: Option<ToolRoom<'a>>,
}

/// A folder, and how many bytes may be in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolRoom<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) bytes: u64,
}

impl<'a> ToolRun<'a> {
    pub(crate) fn new(action: &'a str, argv: &'a [String]) -> Self {
        Self { action, argv, stdin: b"", limit: Duration::from_secs(60), room: None }
    }

    /// The answer, if the tool succeeds.
    pub(crate) async fn succeed(&self) -> Result<ToolOutput, PlacementError> {
        let output = self.run().await?;
        match output.success {
            true => Ok(output),
            false => Err(self.failed(&output)),
        }
    }

    pub(crate) fn failed(&self, output: &ToolOutput) -> PlacementError {
        let line = last_line(&output.stderr).unwrap_or_else(|| "it failed without a word".to_owned());
        PlacementError::Failed { action: self.action.to_owned(), command: shown(self.argv), line }
    }

    /// The answer, whether it succeeds or fails.
    pub(crate) async fn run(&self) -> Result<ToolOutput, PlacementError> {
        self.run_in(|_| {}).await
    }

    /// The same in an environment that `prepare` sets.
    pub(crate) async fn run_in(
        &self,
        prepare: impl FnOnce(&mut Command),
    ) -> Result<ToolOutput, PlacementError> {
        let mut child = start(self.action, self.argv, |command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            prepare(command);
        })?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A tool that ends without reading says why on stderr.
                let _ = stdin.write_all(self.stdin).await;
            }
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let read = async { tokio::join!(write, bounded(stdout, &mut out), bounded(stderr, &mut err)) };
        let all = async {
            tokio::pin!(read);
            tokio::select! {
                _ = &mut read => child.wait().await,
                status = child.wait() => {
                    // A daemon that the tool has started may hold its pipes.
                    let _ = tokio::time::timeout(DRAIN_LIMIT, read).await;
                    status
                }
            }
        };
        let ended = tokio::select! {
            status = all => Ok(status),
            () = tokio::time::sleep(self.limit) => Err(self.timed_out()),
            error = self.out_of_room() => Err(error),
        };
        let status = match ended {
            Ok(status) => status,
            Err(error) => {
                end_group(&mut child);
                let _ = child.wait().await;
                return Err(error);
            }
        };
        let status = status.map_err(PlacementError::io(self.action))?;
        // It may have been faster than whoever measures.
        if let Some(error) = self.measured().await {
            return Err(error);
        }
        Ok(ToolOutput { success: status.success(), stdout: out, stderr: err })
    }

    /// Waits until the tool has filled its folder.
    async fn out_of_room(&self) -> PlacementError {
        if self.room.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::time::sleep(MEASURE_EVERY).await;
            if let Some(error) = self.measured().await {
                return error;
            }
        }
    }

    /// The error where more is in the folder than may be.
    async fn measured(&self) -> Option<PlacementError> {
        let ToolRoom { folder, bytes } = self.room?;
        let folder = folder.to_owned();
        let measured = tokio::task::spawn_blocking(move || bytes_in(folder)).await;
        measured.is_ok_and(|measured| measured > bytes).then(|| PlacementError::TooLarge {
            what: self.action.to_owned(),
            limit: format!("{bytes} bytes"),
        })
    }

    fn timed_out(&self) -> PlacementError {
        PlacementError::TimedOut {
            action: self.action.to_owned(),
            command: shown(self.argv),
            limit: self.limit,
        }
    }
}

/// Starts a tool in a process group of its own, so that ending it ends what it started here.
pub(crate) fn start(
    action: &str,
    argv: &[String],
    prepare: impl FnOnce(&mut Command),
) -> Result<Child, PlacementError> {
    let Some((tool, arguments)) = argv.split_first() else {
        return Err(PlacementError::invalid("argv", "it is empty; name the command that is to be run"));
    };
    let run = || {
        let mut command = Command::new(find_tool(tool)?);
        command.args(arguments).process_group(0).kill_on_drop(true);
        // The tool starts programs of its own, such as helpers for credentials.
        command.envs(tool_path().map(|path| ("PATH", path)));
        prepare(&mut command);
        command.spawn()
    };
    run().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => PlacementError::MissingTool {
            tool: tool.clone(),
            action: action.to_owned(),
            command: shown(argv),
        },
        _ => PlacementError::Failed {
            action: action.to_owned(),
            command: shown(argv),
            line: error.to_string(),
        },
    })
}

/// Ends the tool and all of its group. Its number cannot belong to another process before it is waited for.
pub(crate) fn end_group(child: &mut Child) {
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Everything up to the limit; the rest is read and dropped, so that the tool can end.
async fn bounded(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(MAX_ANSWER as u64).read_to_end(kept).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

/// Of all files beneath, without following links. What goes away in the meantime counts nothing.
fn bytes_in(folder: PathBuf) -> u64 {
    let (mut bytes, mut waiting) = (0_u64, vec![folder]);
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                Ok(metadata) => bytes = bytes.saturating_add(metadata.len()),
                Err(_) => {}
            }
        }
    }
    bytes
}

/// `["docker", "pull", "x"]` from the tool's own words and the ones of this call.
pub(crate) fn words(tool: &[String], more: &[&str]) -> Vec<String> {
    tool.iter().cloned().chain(more.iter().map(|&word| word.to_owned())).collect()
}
