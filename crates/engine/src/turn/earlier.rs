//! Operations from before a restart.

use std::collections::HashMap;

use protocol::{DynamicToolCallOutputContentItem, OperationDecision, OperationId, ThreadItem};

/// An operation of the turn that is resumed.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    pub operation_id: OperationId,
    /// Digest of the proposal. A decision is valid for exactly this.
    pub digest: String,
    pub state: EarlierState,
    /// An attempt has started. A decision to answer or to refuse is then about that attempt, and holds whatever the
    /// call would do now.
    pub has_started: bool,
    /// Its item as last recorded, if clients saw it start and not end.
    pub item: Option<ThreadItem>,
}

/// The last recorded state.
#[derive(Debug, Clone, PartialEq)]
pub enum EarlierState {
    /// Proposed and not decided.
    Proposed,
    /// Decided and not started.
    Decided(OperationDecision),
    /// Started without a recorded end: the outcome is unknown.
    Started { attempt: u32 },
    /// Like `Started`, with a decision to run it again.
    Again { attempt: u32 },
    /// Ended, and the model has not seen the result.
    Finished { output: Vec<DynamicToolCallOutputContentItem>, success: bool },
}

impl Earlier {
    /// Whether its decision settles an unknown outcome without running anything.
    pub(crate) fn is_settled(&self) -> bool {
        let settles = |decision: &_| {
            matches!(decision, OperationDecision::Respond { .. } | OperationDecision::Reject { .. })
        };
        self.has_started && matches!(&self.state, EarlierState::Decided(decision) if settles(decision))
    }
}

/// By operation id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EarlierOperations(HashMap<OperationId, Earlier>);

impl EarlierOperations {
    pub(crate) fn new(all: Vec<Earlier>) -> Self {
        Self(all.into_iter().map(|earlier| (earlier.operation_id.clone(), earlier)).collect())
    }

    /// The last operation of a call, with its number within the call.
    pub(crate) fn last_of(&self, call: &OperationId) -> Option<(u32, &Earlier)> {
        let numbered = |earlier: &'_ &Earlier| number_of(call, &earlier.operation_id);
        let of_call = self.0.values().filter_map(|earlier| Some((numbered(&earlier)?, earlier)));
        of_call.max_by_key(|(number, _)| *number)
    }

    pub(crate) fn get(&self, id: &OperationId) -> Option<&Earlier> {
        self.0.get(id)
    }

    /// Removes an operation that becomes part of the running turn.
    pub(crate) fn take(&mut self, id: &OperationId) -> Option<Earlier> {
        self.0.remove(id)
    }
}

/// Parses the number after the call's id; none means 0.
fn number_of(call: &OperationId, id: &OperationId) -> Option<u32> {
    match id.as_str().strip_prefix(call.as_str())? {
        "" => Some(0),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}
