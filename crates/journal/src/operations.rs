//! Operations that a restart must take up again: asked for and not decided, started and never seen to finish, or finished
//! in a turn that was cut off before the model had read of it.

use protocol::{OperationId, OperationRecord, TurnId};

/// An operation that has neither finished nor been withdrawn, or that finished in the turn that never ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOperation {
    pub operation_id: OperationId,
    /// The turn it was proposed in.
    pub turn_id: Option<TurnId>,
    /// Everything recorded of it, oldest first. `started` as the last means that its outcome is unknown; `finished`,
    /// that its output may be missing from the history.
    pub records: Vec<OperationRecord>,
}

impl OpenOperation {
    /// Adds one record. One that is withdrawn is off the list at once, one that finished with the end of its turn.
    pub(crate) fn fold(open: &mut Vec<Self>, turn_id: Option<&TurnId>, record: OperationRecord) {
        let id = operation_id(&record);
        let known = open.iter().position(|operation| operation.operation_id == *id);
        let is_over = matches!(record, OperationRecord::Withdrawn { .. });
        match known {
            Some(at) if is_over => {
                open.remove(at);
            }
            Some(at) => open[at].records.push(record),
            // Of one whose beginning is lost there is nothing to take up.
            None if is_over || matches!(record, OperationRecord::Finished { .. }) => {}
            None => {
                let turn_id = turn_id.cloned();
                open.push(Self { operation_id: id.clone(), turn_id, records: vec![record] });
            }
        }
    }
}

impl OpenOperation {
    /// A turn has ended: everything in it that finished is in the history, and nothing in it is decided any more.
    pub(crate) fn forget_ended(open: &mut Vec<Self>, turn: &TurnId) {
        open.retain(|operation| operation.turn_id.as_ref() != Some(turn) || operation.is_uncertain());
        Self::forget_others(open, turn);
    }

    /// Another turn begins, so what finished before it is in the history. One that is taken up again may yet need it.
    pub(crate) fn forget_others(open: &mut Vec<Self>, turn: &TurnId) {
        let is_over =
            |operation: &Self| matches!(operation.records.last(), Some(OperationRecord::Finished { .. }));
        open.retain(|operation| operation.turn_id.as_ref() == Some(turn) || !is_over(operation));
    }

    /// It began and was never seen to end.
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
