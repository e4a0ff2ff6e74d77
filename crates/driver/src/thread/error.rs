//! Errors of a thread's commands: they name the field and say what to do.

use delegation::DelegationError;
use engine::Refusal;
use journal::JournalError;
use protocol::{ThreadId, TurnId};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadError {
    /// A rule of the engine about turns.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An error between the thread and its host.
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    #[error("expectedTurnId must not be empty")]
    NoExpectedTurn,
    #[error("expected active turn id `{expected}` but found `{found}`")]
    OtherTurn { expected: TurnId, found: TurnId },
    #[error("no active turn to interrupt")]
    NothingToInterrupt,
    #[error("ephemeral thread does not support metadata updates: {0}")]
    NoMetadataInMemory(ThreadId),
    /// The thread's actor has ended: unloaded, or after a panic.
    #[error("thread {0} is not running; resume it")]
    Gone(ThreadId),
    /// Another process has the thread's record open.
    #[error("the thread is open in another process: {0}")]
    HeldElsewhere(String),
    /// The record could not be written or read, so the command had no effect.
    #[error("the thread's record could not be used: {0}")]
    Storage(String),
}

impl From<JournalError> for ThreadError {
    fn from(error: JournalError) -> Self {
        match error {
            held @ JournalError::Locked { .. } => Self::HeldElsewhere(held.to_string()),
            error => Self::Storage(error.to_string()),
        }
    }
}
