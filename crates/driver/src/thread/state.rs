//! The state of an actor: its relation to the record and to pending suspensions.

use parking_lot::Mutex;
use protocol::PendingOperation;
use support::Responder;
use tokio::time::Instant;

use crate::thread::error::ThreadError;

/// Gets the operations that wait for a decision.
pub(crate) type SuspendResponder = Responder<Vec<PendingOperation>, ThreadError>;

/// The engine knows whether a turn runs; this is everything else.
#[derive(Debug)]
pub(crate) enum ActorState {
    /// The engine and the record agree.
    Ready,
    /// A running turn is to be suspended, at the deadline at the latest.
    Suspending { deadline: Instant, responder: Mutex<SuspendResponder> },
    /// The last turn was suspended and not resumed.
    Suspended,
    /// The record differs from the engine: it is read back before the next command.
    Behind { is_suspended: bool },
}

impl ActorState {
    /// The deadline of a pending suspension.
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

    /// The turn ended or was suspended. Returns the responder that waits for that.
    pub(crate) fn end_turn(&mut self, is_suspended: bool) -> Option<SuspendResponder> {
        let next = match self {
            Self::Behind { is_suspended: before } => Self::Behind { is_suspended: *before || is_suspended },
            // A command of the user can run beside a suspended turn.
            Self::Suspended => Self::Suspended,
            _ if is_suspended => Self::Suspended,
            _ => Self::Ready,
        };
        match std::mem::replace(self, next) {
            Self::Suspending { responder, .. } => Some(responder.into_inner()),
            Self::Ready | Self::Suspended | Self::Behind { .. } => None,
        }
    }

    /// The record must be read back.
    pub(crate) fn fall_behind(&mut self) {
        *self = Self::Behind { is_suspended: self.is_suspended() };
    }

    /// The record was read back.
    pub(crate) fn catch_up(&mut self) {
        *self = if self.is_suspended() { Self::Suspended } else { Self::Ready };
    }

    /// A suspended turn is resumed, or never will be. Returns whether there was one.
    pub(crate) fn take_suspended(&mut self) -> bool {
        match self {
            Self::Suspended => *self = Self::Ready,
            Self::Behind { is_suspended: is_suspended @ true } => *is_suspended = false,
            Self::Ready | Self::Suspending { .. } | Self::Behind { is_suspended: false } => return false,
        }
        true
    }
}
