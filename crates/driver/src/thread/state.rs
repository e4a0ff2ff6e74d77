//! How an actor stands to its record and to whoever waits for its turn to be suspended.

use parking_lot::Mutex;
use protocol::PendingOperation;
use support::Responder;
use tokio::time::Instant;

use crate::thread::error::ThreadError;

/// Answered with the operations that wait for a decision.
pub(crate) type SuspendResponder = Responder<Vec<PendingOperation>, ThreadError>;

/// Whether a turn runs is for the engine to say; everything else about a thread is one of these.
#[derive(Debug)]
pub(crate) enum ActorState {
    /// The engine and the record agree, and nothing else is to be minded.
    Ready,
    /// A turn runs, and somebody waits for it to be suspended, until the deadline at most.
    Suspending { deadline: Instant, responder: Mutex<SuspendResponder> },
    /// The last turn was suspended, and nobody has resumed it.
    Suspended,
    /// The record is not what the engine has: it is read back before the next command.
    Behind { is_suspended: bool },
}

impl ActorState {
    /// When the turn is suspended at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Suspending { deadline, .. } => Some(*deadline),
            Self::Ready | Self::Suspended | Self::Behind { .. } => None,
        }
    }

    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self, Self::Suspended | Self::Behind { is_suspended: true })
    }

    pub(crate) fn is_behind(&self) -> bool {
        matches!(self, Self::Behind { .. })
    }

    /// The turn is over, or suspended. Gives whoever waited for that.
    pub(crate) fn end_turn(&mut self, is_suspended: bool) -> Option<SuspendResponder> {
        let next = match self {
            Self::Behind { is_suspended: before } => Self::Behind { is_suspended: *before || is_suspended },
            // A command of the user's own can run beside a turn that was suspended.
            Self::Suspended => Self::Suspended,
            _ if is_suspended => Self::Suspended,
            _ => Self::Ready,
        };
        match std::mem::replace(self, next) {
            Self::Suspending { responder, .. } => Some(responder.into_inner()),
            Self::Ready | Self::Suspended | Self::Behind { .. } => None,
        }
    }

    /// The record has to be read back.
    pub(crate) fn fall_behind(&mut self) {
        *self = Self::Behind { is_suspended: self.is_suspended() };
    }

    /// The record was read back.
    pub(crate) fn catch_up(&mut self) {
        *self = if self.is_suspended() { Self::Suspended } else { Self::Ready };
    }

    /// A turn that was suspended is resumed, or will never be. Says whether there was one.
    pub(crate) fn take_suspended(&mut self) -> bool {
        match self {
            Self::Suspended => *self = Self::Ready,
            Self::Behind { is_suspended: is_suspended @ true } => *is_suspended = false,
            Self::Ready | Self::Suspending { .. } | Self::Behind { is_suspended: false } => return false,
        }
        true
    }
}
