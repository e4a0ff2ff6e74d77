//! Operations that matter after a restart: not decided, started without an end, or finished in an interrupted turn
//! before the model got the result.

use protocol::{OperationId, OperationRecord, TurnId};

/// An operation that has neither finished nor been withdrawn, or that finished in the unfinished turn.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOperation {
    pub operation_id: OperationId,
    /// The turn in which it was proposed.
    pub turn_id: Option<TurnId>,
    /// All its records, oldest first. If the last is `started`, the outcome is unknown; if it is `finished`, the output
    /// may be missing in the history.
    pub records: Vec<OperationRecord>,
}

impl OpenOperation {
    /// Adds one record. A withdrawn operation is removed at once, a finished one with the end of its turn.
    pub(crate) fn fold(open: &mut Vec<Self>, turn_id: Option<&TurnId>, record: OperationRecord) {
        let id = operation_id(&record);
        let known = open.iter().position(|operation| operation.operation_id == *id);
        let is_over = matches!(record, OperationRecord::Withdrawn { .. });
        match known {
            Some(at) if is_over => {
                open.remove(at);
            }
            Some(at) => open[at].records.push(record),
            // An operation without its start cannot be resumed.
            None if is_over || matches!(record, OperationRecord::Finished { .. }) => {}
            None => {
                let turn_id = turn_id.cloned();
                open.push(Self { operation_id: id.clone(), turn_id, records: vec![record] });
            }
        }
    }
}

impl OpenOperation {
    /// A turn has ended: everything in it that finished is in the history, and no decision is pending.
    pub(crate) fn forget_ended(open: &mut Vec<Self>, turn: &TurnId) {
        open.retain(|operation| operation.turn_id.as_ref() != Some(turn) || operation.is_uncertain());
        Self::forget_others(open, turn);
    }

    /// Another turn starts, so what finished before is in the history. A resumed turn may still need its own.
    pub(crate) fn forget_others(open: &mut Vec<Self>, turn: &TurnId) {
        let is_over =
            |operation: &Self| matches!(operation.records.last(), Some(OperationRecord::Finished { .. }));
        open.retain(|operation| operation.turn_id.as_ref() == Some(turn) || !is_over(operation));
    }

    /// Started without an end.
    fn is_uncertain(&self) -> bool {
        matches!(self.records.last(), Some(OperationRecord::Started { .. } | OperationRecord::Unknown { .. }))
    }
}

fn operation_id(record: &OperationRecord) -> &OperationId {
    match record {
        OperationRecord::Proposed { operation_id, .. }
        | OperationRecord::Decided { operation_id, .. }
        | OperationRecord::Started { operation_id, .. }
        | OperationRecord::Finished { operation_id, .. }
        | OperationRecord::Unknown { operation_id, .. }
        | OperationRecord::Withdrawn { operation_id, .. } => operation_id,
    }
}
