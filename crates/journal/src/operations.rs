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
    /// A turn has ended, so everything in it that finished is in the history.
    pub(crate) fn forget_finished(open: &mut Vec<Self>) {
        open.retain(|operation| !matches!(operation.records.last(), Some(OperationRecord::Finished { .. })));
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
