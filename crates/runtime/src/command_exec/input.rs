//! What a client writes to its command, one piece after the other.

use sandbox::{InputError, Process};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::error::CommandExecError;
use crate::error::RuntimeError;
use crate::handle::Answer;

/// Bytes of input that commands of one connection have not read. A single larger piece comes alone.
pub(super) const WAITING_BYTES: usize = 8 * 1024 * 1024;
/// Pieces that may wait for one command.
pub(super) const WAITING_PIECES: usize = 256;

/// One `command/exec/write`.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// Nothing comes after it.
    pub(super) close: bool,
    pub(super) answer: Answer<()>,
    /// Given back when the command has taken the bytes.
    pub(super) paid: OwnedSemaphorePermit,
}

impl Piece {
    fn give(self, outcome: Result<(), CommandExecError>) {
        let Self { answer, paid, .. } = self;
        drop(paid);
        answer.give(outcome.map_err(RuntimeError::from));
    }
}

/// Writes what comes, in order, for as long as the command runs. Each piece is answered when the system has taken it.
pub(super) async fn feed(process: &Process, id: &str, is_terminal: bool, pieces: &mut mpsc::Receiver<Piece>) {
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
async fn close(process: &Process) -> Result<(), InputError> {
    match process.close_stdin().await {
        Err(InputError::NotRead) => Ok(()),
        closed => closed,
    }
}

/// Answers what nobody will write any more.
pub(super) fn refuse_rest(id: &str, pieces: &mut mpsc::Receiver<Piece>) {
    pieces.close();
    while let Ok(piece) = pieces.try_recv() {
        piece.give(Err(CommandExecError::Ended(id.to_owned())));
    }
}

fn input_error(process: &Process, id: &str, error: InputError) -> CommandExecError {
    match error {
        InputError::NotRead if process.exit().is_some() => CommandExecError::Ended(id.to_owned()),
        InputError::NotRead | InputError::Closed => CommandExecError::StdinClosed,
        InputError::NotOpen => CommandExecError::NoStdin,
        InputError::NotATerminal => CommandExecError::NotATerminal,
        InputError::Io(error) => CommandExecError::Write(error.to_string()),
    }
}
