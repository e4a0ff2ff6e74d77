//! Input that a client writes to its command, one piece after the other.

use sandbox::{CommandInputError, Process};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::error::CommandExecError;
use support::Responder;

/// Bytes of input that commands of one connection have not read. A single larger piece comes alone.
pub(super) const WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Pieces that may wait for one command.
pub(super) const WAITING_PIECES: usize = 256;

/// One `command/exec/write`.
#[derive(Debug)]
pub(super) struct InputPiece {
    pub(super) bytes: Vec<u8>,
    /// Nothing comes after it.
    pub(super) close: bool,
    pub(super) responder: Responder<(), CommandExecError>,
    /// Given back when the command has taken the bytes.
    pub(super) paid: OwnedSemaphorePermit,
}

impl InputPiece {
    fn give(self, outcome: Result<(), CommandExecError>) {
        let Self { responder, paid, .. } = self;
        drop(paid);
        responder.respond(outcome);
    }
}

/// Writes what comes, in order, for as long as the command runs. Each piece is answered when the system has taken it.
pub(super) async fn feed(
    process: &Process,
    id: &str,
    is_terminal: bool,
    pieces: &mut mpsc::Receiver<InputPiece>,
) {
    let mut is_at_line_start = true;
    loop {
        let piece = tokio::select! {
            biased;
            _ = process.wait() => return,
            piece = pieces.recv() => piece,
        };
        let Some(piece) = piece else { return };
        let mut written = process.write(&piece.bytes).await;
        if let Some(last) = piece.bytes.last() {
            is_at_line_start = *last == b'\n';
        }
        if piece.close && written.is_ok() {
            // The first one only hands over a line that was begun.
            if is_terminal && !is_at_line_start {
                written = close(process).await;
            }
            if written.is_ok() {
                written = close(process).await;
            }
        }
        piece.give(written.map_err(|error| input_error(process, id, error)));
    }
}

/// A command that has ended since it took what came before has nothing left to be closed.
async fn close(process: &Process) -> Result<(), CommandInputError> {
    match process.close_stdin().await {
        Err(CommandInputError::NotRead) => Ok(()),
        closed => closed,
    }
}

/// Answers what nobody will write any more.
pub(super) fn refuse_rest(id: &str, pieces: &mut mpsc::Receiver<InputPiece>) {
    pieces.close();
    while let Ok(piece) = pieces.try_recv() {
        piece.give(Err(CommandExecError::Ended(id.to_owned())));
    }
}

fn input_error(process: &Process, id: &str, error: CommandInputError) -> CommandExecError {
    match error {
        CommandInputError::NotRead if process.exit().is_some() => CommandExecError::Ended(id.to_owned()),
        CommandInputError::NotRead | CommandInputError::Closed => CommandExecError::StdinClosed,
        CommandInputError::NotOpen => CommandExecError::NoStdin,
        CommandInputError::NotATerminal => CommandExecError::NotATerminal,
        CommandInputError::Io(error) => CommandExecError::Write(error.to_string()),
    }
}
