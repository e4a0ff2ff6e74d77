//! How long what a call has begun may go on: as long as its turn waits for the call, unless the thread takes over what
//! the call leaves running.

use std::sync::Arc;

use tokio::sync::watch;

/// Of one call. Clones are of the same call.
#[derive(Debug, Clone)]
pub struct CallScope {
    state: Arc<watch::Sender<ScopeState>>,
}

#[derive(Debug, Clone, Copy)]
struct ScopeState {
    stage: CallStage,
    /// How much has begun and not ended: the call itself, processes, writes.
    held: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    /// A turn waits for the call.
    Waited,
    /// No turn waits any more: everything is to end.
    Cancelled,
    /// The call is over, and what it left running goes on.
    Released,
}

/// Something of a call that has not ended.
#[derive(Debug)]
pub struct ScopeHold {
    state: Arc<watch::Sender<ScopeState>>,
}

impl Drop for ScopeHold {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.held -= 1);
    }
}

/// Cancels a call when it is dropped before its end.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(Option<CallScope>);

impl CancelOnDrop {
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.cancel();
        }
    }
}

impl Default for CallScope {
    fn default() -> Self {
        Self { state: Arc::new(watch::Sender::new(ScopeState { stage: CallStage::Waited, held: 0 })) }
    }
}

impl CallScope {
    /// Everything that belongs to the call is to end. Does nothing once it was released.
    pub fn cancel(&self) {
        self.leave_waiting(CallStage::Cancelled);
    }

    /// The thread has the call's result, so what it left running may go on. Does nothing once it was cancelled.
    pub fn release(&self) {
        self.leave_waiting(CallStage::Released);
    }

    fn leave_waiting(&self, stage: CallStage) {
        self.state.send_modify(|state| {
            if state.stage == CallStage::Waited {
                state.stage = stage;
            }
        });
    }

    /// Something begins that whoever ends the call waits for.
    pub fn hold(&self) -> ScopeHold {
        self.state.send_modify(|state| state.held += 1);
        ScopeHold { state: self.state.clone() }
    }

    /// Waits until everything has ended that is to.
    pub async fn ended(&self) {
        let is_over = |state: &ScopeState| state.held == 0 || state.stage == CallStage::Released;
        // The sender is this scope's own, so this cannot fail.
        let _ = self.state.subscribe().wait_for(is_over).await;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.borrow().stage == CallStage::Cancelled
    }

    /// Never comes true for one that was released.
    pub(crate) async fn cancelled(&self) {
        let _ = self.state.subscribe().wait_for(|state| state.stage == CallStage::Cancelled).await;
    }

    pub(crate) fn cancel_on_drop(&self) -> CancelOnDrop {
        CancelOnDrop(Some(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_end_comes_with_the_last_that_is_held() {
        let scope = CallScope::default();
        let (one, two) = (scope.hold(), scope.hold());
        scope.cancel();
        drop(one);
        assert!(scope.ended().now_or_never().is_none());
        drop(two);
        assert!(scope.ended().now_or_never().is_some() && scope.is_cancelled());
    }

    #[test]
    fn what_was_released_is_neither_waited_for_nor_cancelled() {
        let scope = CallScope::default();
        let _held = scope.hold();
        scope.release();
        scope.cancel();
        assert!(scope.ended().now_or_never().is_some() && !scope.is_cancelled());
        assert!(scope.cancelled().now_or_never().is_none());
    }

    #[test]
    fn a_call_that_is_dropped_is_cancelled() {
        let (dropped, ended) = (CallScope::default(), CallScope::default());
        drop(dropped.cancel_on_drop());
        ended.cancel_on_drop().disarm();
        assert!(dropped.is_cancelled() && !ended.is_cancelled());
    }
}
