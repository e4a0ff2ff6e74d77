//! Decisions about operations.

use protocol::{OperationDecision, OperationId};

/// A decision as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    pub operation_id: OperationId,
    /// The attempt it is about: 0 before the first.
    pub attempt: u32,
    pub decision: OperationDecision,
    pub by: String,
    pub on_behalf_of: Option<String>,
    pub decided_at_ms: i64,
}

impl DecisionRow {
    /// Whether the operation is carried out by it.
    pub(crate) fn lets_run(&self) -> bool {
        use OperationDecision::{Approve, Replace, Retry};
        matches!(self.decision, Approve { .. } | Replace { .. } | Retry)
    }
}
