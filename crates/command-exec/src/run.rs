//! One command from start to response.

use std::sync::Arc;
use std::time::Duration;

use protocol::CommandExecResponse;
use sandbox::{Exit, Output, Process, SpawnError, TIMEOUT_CODE};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::command::{CommandPhase, RunningCommand};
use super::error::CommandExecError;
use super::input::{self, InputPiece};
use super::order::{self, CommandSettings};
use super::output::{DeltaSink, KeptOutput, OutputNotifier};
use super::request::CommandRequest;

/// Time limit of a start. Beyond it something hangs, such as a network directory.
const START_LIMIT: Duration = Duration::from_secs(30);
/// The exit codes of a command that a signal ended, on pipes and on a terminal.
const KILLED_CODE: i32 = -1;
const KILLED_TERMINAL_CODE: i32 = 1;

/// The inputs of a run.
#[derive(Debug)]
pub(super) struct CommandRun {
    pub(super) settings: CommandSettings,
    pub(super) request: CommandRequest,
    pub(super) command: Arc<RunningCommand>,
    pub(super) pieces: mpsc::Receiver<InputPiece>,
    pub(super) deltas: DeltaSink,
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandEnd {
    Itself,
    Stopped,
    TimedOut,
}

impl CommandRun {
    /// Returns when all processes of the command have ended and all of its output was sent. Remaining input is refused
    /// by then.
    pub(super) async fn run(mut self) -> Result<CommandExecResponse, CommandExecError> {
        let started = tokio::select! {
            biased;
            // A command that is only terminated may have output before its start is known.
            () = self.command.disconnected() => Ok(None),
            started = start(&self.settings, &self.request) => started.map(Some),
        };
        let answer = match started {
            Ok(Some((process, output))) => self.follow(process, output).await,
            Ok(None) => Ok(self.response(killed(&self.command), KeptOutput::default())),
            Err(error) => Err(error),
        };
        self.command.enter(CommandPhase::Ended);
        input::refuse_rest(self.command.id(), &mut self.pieces);
        answer
    }

    async fn follow(
        &mut self,
        process: Process,
        mut output: Output,
    ) -> Result<CommandExecResponse, CommandExecError> {
        self.command.enter(CommandPhase::Running(process.clone()));
        let command = self.command.clone();
        let (id, is_terminal) = (command.id(), command.is_terminal());
        let feed = input::feed(&process, id, is_terminal, &mut self.pieces);
        let watch = watch_over(&process, &command, self.request.timeout);
        let cap = self.request.cap_bytes;
        let read = async {
            let mut kept = KeptOutput::default();
            if self.request.streams_output {
                let teller = OutputNotifier { process_id: id.to_owned(), sink: self.deltas.clone() };
                tokio::select! {
                    () = teller.notify_all(&mut output, cap) => {}
                    () = command.disconnected() => {}
                }
                return Ok(kept);
            }
            let read = kept.read_all(&mut output, cap).await;
            if read.is_err() {
                process.kill();
            }
            read.map(|()| kept)
        };
        let ((), end, kept) = tokio::join!(feed, watch, read);
        let exit = process.wait().await;
        Ok(self.response(exit_code(exit, end, &command), kept?))
    }

    fn response(&self, exit_code: i32, kept: KeptOutput) -> CommandExecResponse {
        let (stdout, stderr) = kept.into_texts(self.request.cap_bytes);
        CommandExecResponse { exit_code, stdout, stderr }
    }
}

async fn start(
    settings: &CommandSettings,
    request: &CommandRequest,
) -> Result<(Process, Output), CommandExecError> {
    let io = request.io;
    let starting = async {
        let order = order::order(settings, request.clone()).await?;
        Process::spawn(order, io).await.map_err(spawn_error)
    };
    let too_long = || {
        let message = format!("it did not start within {} s", START_LIMIT.as_secs());
        Err(CommandExecError::Spawn(message))
    };
    timeout(START_LIMIT, starting).await.unwrap_or_else(|_| too_long())
}

/// Ends with the command, and ends it at its limits.
async fn watch_over(process: &Process, command: &RunningCommand, limit: Option<Duration>) -> CommandEnd {
    let time_is_over = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        biased;
        _ = process.wait() => return CommandEnd::Itself,
        () = command.stopped() => CommandEnd::Stopped,
        () = time_is_over => CommandEnd::TimedOut,
    };
    process.kill();
    process.wait().await;
    end
}

fn exit_code(exit: Exit, end: CommandEnd, command: &RunningCommand) -> i32 {
    match end {
        CommandEnd::TimedOut => TIMEOUT_CODE,
        CommandEnd::Stopped => killed(command),
        CommandEnd::Itself if exit.signal.is_some() => killed(command),
        CommandEnd::Itself => exit.code,
    }
}

fn killed(command: &RunningCommand) -> i32 {
    if command.is_terminal() { KILLED_TERMINAL_CODE } else { KILLED_CODE }
}

/// With the system's message if the system refuses.
fn spawn_error(error: SpawnError) -> CommandExecError {
    let of_system = |errno: rustix::io::Errno| std::io::Error::from(errno).to_string();
    CommandExecError::Spawn(match error {
        SpawnError::NotFound { .. } => of_system(rustix::io::Errno::NOENT),
        SpawnError::Denied { .. } => of_system(rustix::io::Errno::ACCESS),
        SpawnError::Io(error) => error.to_string(),
        error @ (SpawnError::Invalid { .. }
        | SpawnError::NotRunnable { .. }
        | SpawnError::BadDirectory { .. }
        | SpawnError::Sandbox { .. }) => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_fails_says_why() {
        let program = || "x".to_owned();
        let cases = [
            (SpawnError::NotFound { program: program() }, "No such file or directory (os error 2)"),
            (SpawnError::Denied { program: program() }, "Permission denied (os error 13)"),
            (
                SpawnError::Sandbox { message: "user namespaces are not allowed".to_owned() },
                "the sandbox could not be set up: user namespaces are not allowed",
            ),
            (
                SpawnError::Io(std::io::Error::from(rustix::io::Errno::MFILE)),
                "Too many open files (os error 24)",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(spawn_error(error).to_string(), format!("failed to spawn command: {expected}"));
        }
    }
}
