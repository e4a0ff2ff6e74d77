//! What can go wrong when a thread is asked for something.

use engine::Refusal;
use protocol::{ThreadId, TurnId};

/// Why a thread did not do what it was asked. Nothing was half done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// Against the rules of turns.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("expectedTurnId must not be empty")]
    NoExpectedTurn,
    #[error("expected active turn id `{expected}` but found `{found}`")]
    OtherTurn { expected: TurnId, found: TurnId },
    /// The thread's actor is gone: unloaded, or broken by a panic.
    #[error("thread {0} is not running; resume it")]
    Gone(ThreadId),
    /// What was asked for could not be written down, so it did not happen.
    #[error("the thread's record could not be written: {0}")]
    Storage(String),
}
