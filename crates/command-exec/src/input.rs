//! Input from a client to its command.

use sandbox::{CommandInputError, Process};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::error::CommandExecError;
use support::Responder;

/// Limit of unread input per connection. A single larger piece is queued alone.
pub(super) const WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Limit of queued pieces per command.
pub(super) const WAITING_PIECES: usize = 256;

/// One `command/exec/write`.
#[derive(Debug)]
pub(super) struct InputPiece {
    pub(super) bytes: Vec<u8>,
    /// The last piece.
    pub(super) close: bool,
    pub(super) responder: Responder<(), CommandExecError>,
    /// Released when the command has taken the bytes.
    pub(super) paid: OwnedSemaphorePermit,
}

impl InputPiece {
    fn give(self, outcome: Result<(), CommandExecError>) {
        let Self { responder, paid, .. } = self;
        drop(paid);
        responder.respond(outcome);
    }
}

/// Writes queued input in order while the command runs. Responds to each piece when the system has taken it.
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
            // The first end-of-file key only submits an unfinished line.
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

/// A command that has ended since needs no closing.
async fn close(process: &Process) -> Result<(), CommandInputError> {
    match process.close_stdin().await {
        Err(CommandInputError::NotRead) => Ok(()),
        closed => closed,
    }
}

/// Responds to pieces that will not be written.
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
