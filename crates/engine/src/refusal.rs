//! Why an input was not accepted.

use protocol::NonSteerableTurnKind;

/// Why an input was not accepted. The thread did not change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("input must not be empty")]
    EmptyInput,
    #[error("no active turn to steer")]
    NoActiveTurn,
    #[error("cannot steer a {} turn", match .0 { NonSteerableTurnKind::Review => "review", NonSteerableTurnKind::Compact => "compact" })]
    NotSteerable(NonSteerableTurnKind),
    #[error("a turn is already running")]
    TurnRunning,
    #[error("Cannot rollback while a turn is in progress.")]
    RollbackWhileRunning,
    #[error("objective is missing: the thread has no goal to change")]
    NoGoal,
    #[error("numTurns must be >= 1")]
    NothingToRollBack,
}
