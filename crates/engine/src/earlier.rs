//! What is known of operations from before a restart, and what is made of it.

use std::collections::HashMap;

use protocol::{DynamicToolCallOutputContentItem, OperationDecision, OperationId, ThreadItem};

/// An operation of the turn that is taken up again.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    pub operation_id: OperationId,
    /// What was proposed. A decision holds for exactly this.
    pub digest: String,
    pub state: EarlierState,
    /// Its item as it was last recorded, where clients saw one begin and not end.
    pub item: Option<ThreadItem>,
}

/// How far it had come.
#[derive(Debug, Clone, PartialEq)]
pub enum EarlierState {
    /// Asked for and not decided.
    Proposed,
    /// Decided and not begun.
    Decided(OperationDecision),
    /// Begun and never seen to end, so nobody knows.
    Started { attempt: u32 },
    /// As `Started`, and somebody who looked decided to have it done again.
    Again { attempt: u32 },
    /// It ended, and the model has not read of it.
    Finished { output: Vec<DynamicToolCallOutputContentItem>, success: bool },
}

/// By operation id.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EarlierOperations(HashMap<OperationId, Earlier>);

impl EarlierOperations {
    pub(crate) fn new(all: Vec<Earlier>) -> Self {
        Self(all.into_iter().map(|earlier| (earlier.operation_id.clone(), earlier)).collect())
    }

    /// What was left of a call: its last operation, with the number it has within the call.
    pub(crate) fn last_of(&self, call: &OperationId) -> Option<(u32, &Earlier)> {
        let numbered = |earlier: &'_ &Earlier| number_of(call, &earlier.operation_id);
        let of_call = self.0.values().filter_map(|earlier| Some((numbered(&earlier)?, earlier)));
        of_call.max_by_key(|(number, _)| *number)
    }

    pub(crate) fn get(&self, id: &OperationId) -> Option<&Earlier> {
        self.0.get(id)
    }

    /// What is taken up is no longer from before.
    pub(crate) fn take(&mut self, id: &OperationId) -> Option<Earlier> {
        self.0.remove(id)
    }
}

/// `id` is that of the call, or that with a number after it.
fn number_of(call: &OperationId, id: &OperationId) -> Option<u32> {
    match id.as_str().strip_prefix(call.as_str())? {
        "" => Some(0),
        rest => rest.strip_prefix(':')?.parse().ok(),
    }
}
