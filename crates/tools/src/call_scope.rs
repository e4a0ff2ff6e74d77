//! The lifetime of what a call starts: as long as its turn waits for the call, unless the call returns and leaves
//! processes running.

use std::sync::Arc;

use tokio::sync::watch;

/// The scope of one call. Clones share it.
#[derive(Debug, Clone)]
pub struct CallScope {
    state: Arc<watch::Sender<ScopeState>>,
}

#[derive(Debug, Clone, Copy)]
struct ScopeState {
    stage: CallStage,
    /// How much is running: the call itself, processes, writes.
    held: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    /// A turn waits for the call.
    Waited,
    /// No turn waits any more: everything must end.
    Cancelled,
    /// The call returned, and processes it left running continue.
    Released,
}

/// A running part of a call.
#[derive(Debug)]
pub struct ScopeHold {
    state: Arc<watch::Sender<ScopeState>>,
}

impl Drop for ScopeHold {
    fn drop(&mut self) {
        self.state.send_modify(|state| state.held -= 1);
    }
}

/// Cancels a call if it is dropped before its end.
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
    /// Ends everything that belongs to the call. No effect after `release`.
    pub fn cancel(&self) {
        self.leave_waiting(CallStage::Cancelled);
    }

    /// The thread has the call's result, so processes it left running may continue. No effect after `cancel`.
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

    /// Marks the start of something that must end before the call counts as ended.
    pub fn hold(&self) -> ScopeHold {
        self.state.send_modify(|state| state.held += 1);
        ScopeHold { state: self.state.clone() }
    }

    /// Waits until everything that must end has ended.
    pub async fn ended(&self) {
        let is_over = |state: &ScopeState| state.held == 0 || state.stage == CallStage::Released;
        // The sender is owned by this scope, so this cannot fail.
        let _ = self.state.subscribe().wait_for(is_over).await;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state.borrow().stage == CallStage::Cancelled
    }

    /// Never resolves after `release`.
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
    fn the_scope_ends_with_its_last_hold() {
        let scope = CallScope::default();
        let (one, two) = (scope.hold(), scope.hold());
        scope.cancel();
        drop(one);
        assert!(scope.ended().now_or_never().is_none());
        drop(two);
        assert!(scope.ended().now_or_never().is_some() && scope.is_cancelled());
    }

    #[test]
    fn a_released_scope_is_neither_awaited_nor_cancelled() {
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
