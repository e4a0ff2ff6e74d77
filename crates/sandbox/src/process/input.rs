//! The input of a command.

use std::io;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::error::CommandInputError;
use super::stream::PipeStream;
use super::terminal::{self, END_KEY, INTERRUPT_KEY, TerminalSize};

#[derive(Debug)]
pub(crate) enum CommandInput {
    None,
    /// Locked while writing, so that writes are sequential, and closing comes after them.
    Pipe(Mutex<Option<PipeStream>>),
    Terminal {
        terminal: Arc<PipeStream>,
        turn: Mutex<()>,
    },
}

impl CommandInput {
    pub(crate) fn none() -> Self {
        Self::None
    }

    pub(crate) fn pipe(stream: PipeStream) -> Self {
        Self::Pipe(Mutex::new(Some(stream)))
    }

    pub(crate) fn terminal(terminal: Arc<PipeStream>) -> Self {
        Self::Terminal { terminal, turn: Mutex::new(()) }
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), CommandInputError> {
        match self {
            Self::None => Err(CommandInputError::NotOpen),
            Self::Pipe(pipe) => {
                let pipe = pipe.lock().await;
                pipe.as_ref().ok_or(CommandInputError::Closed)?.write_all(bytes).await.map_err(input_error)
            }
            Self::Terminal { terminal, turn } => {
                let _turn = turn.lock().await;
                terminal.write_all(bytes).await.map_err(input_error)
            }
        }
    }

    /// A terminal cannot be half-closed; Control-D tells its program instead.
    pub(crate) async fn close(&self) -> Result<(), CommandInputError> {
        match self {
            Self::None => Err(CommandInputError::NotOpen),
            Self::Pipe(pipe) => pipe.lock().await.take().map(drop).ok_or(CommandInputError::Closed),
            Self::Terminal { .. } => self.write(&[END_KEY]).await,
        }
    }

    /// `None` without a terminal. Does not wait for writes: it may be used to interrupt a program that does not read.
    pub(crate) fn press_interrupt(&self) -> Option<impl Future<Output = Result<(), CommandInputError>>> {
        let Self::Terminal { terminal, .. } = self else { return None };
        Some(async { terminal.write_all(&[INTERRUPT_KEY]).await.map_err(input_error) })
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> Result<(), CommandInputError> {
        match self {
            Self::Terminal { terminal, .. } => Ok(terminal::resize(terminal, size)?),
            Self::None | Self::Pipe(_) => Err(CommandInputError::NotATerminal),
        }
    }
}

fn input_error(error: io::Error) -> CommandInputError {
    // A terminal that no process has open answers with an I/O error.
    let gone = rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::IO);
    if gone || error.kind() == io::ErrorKind::BrokenPipe {
        CommandInputError::NotRead
    } else {
        CommandInputError::Io(error)
    }
}
