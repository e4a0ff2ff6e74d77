//! Errors that the command itself did not cause.

use std::io;
use std::path::PathBuf;

/// Why a command did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// An argument, a variable or the directory cannot be passed to any program.
    #[error("{field} {problem}")]
    Invalid { field: &'static str, problem: &'static str },
    #[error("{program}: no such program")]
    NotFound { program: String },
    #[error("{program}: permission denied")]
    Denied { program: String },
    /// The file exists, but the system cannot run it, for example because its arguments are too long.
    #[error("{message}")]
    NotRunnable { program: String, message: String },
    #[error("the working directory is not usable: {message}")]
    BadDirectory { path: PathBuf, message: String },
    /// The sandbox could not be set up, so the command was not started.
    #[error("the sandbox could not be set up: {message}")]
    Sandbox { message: String },
    #[error("cannot start a process")]
    Io(#[from] io::Error),
}

/// Why something could not be written to a command.
#[derive(Debug, thiserror::Error)]
pub enum CommandInputError {
    /// It was started without an input.
    #[error("the command was started without an input")]
    NotOpen,
    #[error("the input of the command is already closed")]
    Closed,
    /// It has ended, or has closed its end.
    #[error("the command no longer reads its input")]
    NotRead,
    #[error("the command does not run on a terminal")]
    NotATerminal,
    #[error("cannot write to the command")]
    Io(#[from] io::Error),
}
