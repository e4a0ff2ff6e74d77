//! Operation records.

use protocol::{
    DecisionOrigin, DynamicToolCallOutputContentItem, FileUpdateChange, ItemId, OperationDecision,
    OperationId, OperationRecord, OperationType, RolloutRecord, ThreadId, ThreadItem, ToolEffects, TurnId,
};
use serde_json::Value;

use crate::Proposal;
use crate::turn::work::Transition;

/// The id is the same before and after a restart.
pub(crate) fn operation_id(
    work: &Transition<'_>,
    turn_id: &TurnId,
    call_id: &str,
    number: u32,
) -> OperationId {
    let id = operation_of(&work.core.id, turn_id, call_id);
    match number {
        0 => id,
        number => OperationId::new(format!("{id}:{number}")),
    }
}

/// The id of a call's first operation.
pub fn operation_of(thread_id: &ThreadId, turn_id: &TurnId, call_id: &str) -> OperationId {
    OperationId::new(format!("{thread_id}:{turn_id}:{call_id}"))
}

/// Larger changes are not stored with the operation.
const MAX_CHANGES: usize = 1024 * 1024;

/// The changes of a patch, for approving it when the runtime is gone.
fn kept_changes(item: &ThreadItem) -> Option<Vec<FileUpdateChange>> {
    let ThreadItem::FileChange { changes, .. } = item else { return None };
    let bytes: usize = changes.iter().map(|change| change.path.len() + change.diff.len()).sum();
    (bytes <= MAX_CHANGES).then(|| changes.clone())
}

/// Fields of a `proposed` record.
pub(crate) struct Proposed<'a> {
    pub(crate) operation_id: OperationId,
    pub(crate) call_id: &'a str,
    pub(crate) kind: OperationType,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Value,
    pub(crate) digest: &'a str,
    pub(crate) effects: ToolEffects,
    pub(crate) decisions: Vec<String>,
    pub(crate) reason: Option<String>,
    pub(crate) tool_set_digest: &'a str,
    pub(crate) session_keys: &'a [String],
    /// The item that clients see.
    pub(crate) item: Option<&'a ThreadItem>,
}

impl Transition<'_> {
    pub(crate) fn record_operation(&mut self, operation: OperationRecord) {
        self.record(RolloutRecord::Operation { operation });
    }

    pub(crate) fn propose(&mut self, proposed: Proposed<'_>) {
        let digest = proposed.tool_set_digest;
        self.record_operation(OperationRecord::Proposed {
            operation_id: proposed.operation_id,
            kind: proposed.kind,
            tool: proposed.tool.to_owned(),
            namespace: None,
            item_id: ItemId::new(proposed.call_id),
            agent_path: self.core.agent_path.to_vec(),
            arguments: proposed.arguments.clone(),
            arguments_digest: proposed.digest.to_owned(),
            effects: proposed.effects,
            available_decisions: proposed.decisions,
            reason: proposed.reason,
            tool_set_digest: (!digest.is_empty()).then(|| digest.to_owned()),
            agent_digest: None,
            session_keys: self.kept_keys(proposed.session_keys),
            changes: proposed.item.filter(|_| self.core.shows_operations).and_then(kept_changes),
            created_at_ms: self.stamp.now_ms,
        });
    }

    /// The runtime's own decision, by this policy.
    pub(crate) fn policy(&self, name: &str) -> DecisionOrigin {
        DecisionOrigin { by: format!("policy:{name}"), decided_at_ms: self.stamp.now_ms }
    }

    /// The decider is recorded only with a host, which can verify it.
    pub(crate) fn record_decision(
        &mut self,
        operation_id: OperationId,
        decision: OperationDecision,
        origin: Option<DecisionOrigin>,
        Proposal { digest, session_keys, .. }: &Proposal,
    ) {
        let origin = origin.filter(|_| self.core.shows_operations);
        let decided_at_ms = origin.as_ref().map_or(self.stamp.now_ms, |origin| origin.decided_at_ms);
        let for_session = decision.is_for_session();
        let session_keys = self.kept_keys(session_keys).filter(|_| for_session);
        self.record_operation(OperationRecord::Decided {
            operation_id,
            decision,
            attempt: None,
            by: origin.map(|origin| origin.by),
            arguments_digest: digest.clone(),
            session_keys,
            decided_at_ms,
        });
    }

    /// A host stores session approvals. Without a host they end with the process.
    fn kept_keys(&self, keys: &[String]) -> Option<Vec<String>> {
        (self.core.shows_operations && !keys.is_empty()).then(|| keys.to_vec())
    }

    pub(crate) fn record_begun(&mut self, operation_id: OperationId, attempt: u32) {
        let executor = "runtime".to_owned();
        self.record_operation(OperationRecord::Started {
            operation_id,
            attempt,
            executor,
            epoch: self.core.epoch,
        });
    }

    pub(crate) fn record_finished(
        &mut self,
        operation_id: OperationId,
        attempt: u32,
        success: bool,
        output: Vec<DynamicToolCallOutputContentItem>,
    ) {
        let output_digest = None;
        self.record_operation(OperationRecord::Finished {
            operation_id,
            attempt,
            success,
            output,
            output_digest,
        });
    }

    pub(crate) fn record_withdrawn(&mut self, operation_id: OperationId, reason: &str) {
        self.record_operation(OperationRecord::Withdrawn { operation_id, reason: Some(reason.to_owned()) });
    }
}
