//! Operations that a restart must take up again: asked for and not decided, or started and never seen to finish.

use protocol::{OperationId, OperationRecord, TurnId};

/// An operation that has neither finished nor been withdrawn.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOperation {
    pub operation_id: OperationId,
    /// The turn it was proposed in.
    pub turn_id: Option<TurnId>,
    /// Everything recorded of it, oldest first. `started` as the last means that its outcome is unknown.
    pub records: Vec<OperationRecord>,
}

impl OpenOperation {
    /// Adds one record. The first that ends an operation takes it off the list.
    pub(crate) fn fold(open: &mut Vec<Self>, turn_id: Option<&TurnId>, record: OperationRecord) {
        let id = operation_id(&record);
        let known = open.iter().position(|operation| operation.operation_id == *id);
        let is_over = matches!(record, OperationRecord::Finished { .. } | OperationRecord::Withdrawn { .. });
        match known {
            Some(at) if is_over => {
                open.remove(at);
            }
            Some(at) => open[at].records.push(record),
            None if is_over => {}
            None => {
                let turn_id = turn_id.cloned();
                open.push(Self { operation_id: id.clone(), turn_id, records: vec![record] });
            }
        }
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
