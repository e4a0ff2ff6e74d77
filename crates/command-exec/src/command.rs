//! One running command, for the requests about it.

use std::sync::atomic::{AtomicBool, Ordering};

use sandbox::{CommandInputError, Io, Process, TerminalSize};
use tokio::sync::{mpsc, watch};

use super::error::CommandExecError;
use super::input::{InputPiece, WAITING_PIECES};

/// Why a command is stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// The client requested it.
    Terminated,
    /// Its connection is gone, so nobody needs a response.
    Disconnected,
}

#[derive(Debug, Clone)]
pub(super) enum CommandPhase {
    Starting,
    Running(Process),
    Ended,
}

#[derive(Debug)]
pub(super) struct RunningCommand {
    /// Empty for a command without an id.
    id: String,
    io: Io,
    pieces: mpsc::Sender<InputPiece>,
    is_closing: AtomicBool,
    phase: watch::Sender<CommandPhase>,
    stop: watch::Sender<Option<StopCause>>,
}

impl RunningCommand {
    /// The other end receives what is written.
    pub(super) fn new(id: String, io: Io) -> (Self, mpsc::Receiver<InputPiece>) {
        let (pieces, written) = mpsc::channel(WAITING_PIECES);
        let (phase, stop) = (watch::Sender::new(CommandPhase::Starting), watch::Sender::new(None));
        (Self { id, io, pieces, is_closing: AtomicBool::new(false), phase, stop }, written)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self.io, Io::Terminal(_))
    }

    /// Whether the command takes input, or closing it.
    pub(super) fn takes_input(&self, has_bytes: bool) -> Result<(), CommandExecError> {
        if self.io == Io::Null {
            return Err(CommandExecError::NoStdin);
        }
        if has_bytes && self.is_closed_for_writing() {
            return Err(CommandExecError::StdinClosed);
        }
        Ok(())
    }

    pub(super) fn is_closed_for_writing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Queues input after earlier input, also before the command runs.
    pub(super) fn write(&self, piece: InputPiece) {
        if piece.close {
            self.is_closing.store(true, Ordering::Release);
        }
        let (piece, error) = match self.pieces.try_send(piece) {
            Ok(()) => return,
            Err(mpsc::error::TrySendError::Full(piece)) => (piece, CommandExecError::TooMuchInput),
            Err(mpsc::error::TrySendError::Closed(piece)) => {
                (piece, CommandExecError::Ended(self.id.clone()))
            }
        };
        if piece.close {
            self.is_closing.store(false, Ordering::Release);
        }
        piece.responder.respond(Err(error));
    }

    /// Waits for a command that is being started.
    pub(super) async fn resize(&self, size: TerminalSize) -> Result<(), CommandExecError> {
        if !self.is_terminal() {
            return Err(CommandExecError::NotATerminal);
        }
        let ended = || CommandExecError::Ended(self.id.clone());
        let mut phase = self.phase.subscribe();
        let started = phase.wait_for(|phase| !matches!(phase, CommandPhase::Starting)).await;
        let process = match started.as_deref() {
            Ok(CommandPhase::Running(process)) => process.clone(),
            Ok(CommandPhase::Starting | CommandPhase::Ended) | Err(_) => return Err(ended()),
        };
        drop(started);
        process.resize(size).map_err(|error| match error {
            CommandInputError::NotATerminal => CommandExecError::NotATerminal,
            CommandInputError::Io(error) => CommandExecError::Resize(error.to_string()),
            CommandInputError::NotOpen | CommandInputError::Closed | CommandInputError::NotRead => ended(),
        })
    }

    pub(super) fn enter(&self, phase: CommandPhase) {
        self.phase.send_replace(phase);
    }

    /// The first reason counts, except that a disconnect overrides.
    pub(super) fn stop(&self, why: StopCause) {
        self.stop.send_modify(|stop| {
            if stop.is_none() || why == StopCause::Disconnected {
                *stop = Some(why);
            }
        });
    }

    pub(super) async fn stopped(&self) {
        // The sender lives as long as this command, so the wait ends.
        let _ = self.stop.subscribe().wait_for(Option::is_some).await;
    }

    pub(super) async fn disconnected(&self) {
        let _ = self.stop.subscribe().wait_for(|stop| *stop == Some(StopCause::Disconnected)).await;
    }
}
