//! Errors of a client's command, with messages that existing clients expect.

use support::Panicked;

/// Limit of a process id.
pub(super) const MAX_ID_BYTES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandExecError {
    #[error("command must not be empty")]
    EmptyCommand,
    #[error("failed to load configuration: {0}")]
    Config(String),
    #[error(transparent)]
    Panicked(#[from] Panicked),
    #[error("command/exec size requires tty: true")]
    SizeWithoutTerminal,
    #[error("command/exec size rows and cols must be greater than 0")]
    EmptySize,
    #[error("command/exec cannot set both outputBytesCap and disableOutputCap")]
    TwoCaps,
    #[error("command/exec cannot set both timeoutMs and disableTimeout")]
    TwoTimeouts,
    #[error("command/exec timeoutMs must be non-negative, got {0}")]
    NegativeTimeout(i64),
    #[error("command/exec tty or streaming requires a client-supplied processId")]
    NoProcessId,
    #[error("command/exec processId must not be longer than {MAX_ID_BYTES} bytes")]
    LongProcessId,
    #[error("duplicate active command/exec process id: {0:?}")]
    Duplicate(String),
    #[error("no active command/exec for process id {0:?}")]
    Unknown(String),
    #[error("command/exec {0:?} is no longer running")]
    Ended(String),
    #[error("{0} commands run on this connection already; start more when some have ended")]
    TooMany(usize),
    /// Forbidden by the administrator's requirements.
    #[error("invalid sandbox policy: {0}")]
    Policy(String),
    #[error("failed to spawn command: {0}")]
    Spawn(String),
    #[error("exec failed: {0}")]
    Failed(String),
    #[error("command/exec/write requires deltaBase64 or closeStdin")]
    NothingToWrite,
    #[error("invalid deltaBase64: {0}")]
    Base64(String),
    #[error("stdin streaming is not enabled for this command/exec")]
    NoStdin,
    #[error("stdin is already closed")]
    StdinClosed,
    #[error("cannot write to the command: {0}")]
    Write(String),
    /// The command does not read what it was sent.
    #[error(
        "too much input waits for commands of this connection; write again when earlier writes are answered"
    )]
    TooMuchInput,
    #[error("failed to resize PTY: process is not attached to a PTY")]
    NotATerminal,
    #[error("failed to resize PTY: {0}")]
    Resize(String),
}
