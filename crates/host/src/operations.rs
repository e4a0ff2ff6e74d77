//! Operations as clients see them, and how they are decided.

use protocol::{
    Operation, OperationDecideParams, OperationId, OperationRecord, OperationState, StoredDecision,
    ThreadDecision, ThreadId, TurnId,
};
use store::{
    DecidedOperation, DecisionRequest, DecisionRow, OperationRow, OperationRowState, OwnDecision, StoreError,
    TaskStore,
};
use support::kill_point;

use crate::error::TaskError;
use crate::shared::HostShared;
use task::questions::word_of;

fn state_of(state: OperationRowState) -> OperationState {
    match state {
        OperationRowState::Proposed => OperationState::Proposed,
        OperationRowState::Decided => OperationState::Decided,
        OperationRowState::Started => OperationState::Started,
        OperationRowState::Unknown => OperationState::Unknown,
        OperationRowState::Finished => OperationState::Finished,
        OperationRowState::Withdrawn => OperationState::Withdrawn,
    }
}

pub(crate) fn row_state_of(state: OperationState) -> OperationRowState {
    match state {
        OperationState::Proposed => OperationRowState::Proposed,
        OperationState::Decided => OperationRowState::Decided,
        OperationState::Started => OperationRowState::Started,
        OperationState::Unknown => OperationRowState::Unknown,
        OperationState::Finished => OperationRowState::Finished,
        OperationState::Withdrawn => OperationRowState::Withdrawn,
    }
}

fn shown_decision(row: DecisionRow) -> StoredDecision {
    StoredDecision {
        decision: row.decision,
        by: row.by,
        on_behalf_of: row.on_behalf_of,
        decided_at_ms: row.decided_at_ms,
    }
}

/// The policy that the record names, and whether nothing at all is behind its decision.
fn shown_own(own: Option<OwnDecision>) -> (Option<String>, bool) {
    match own {
        None => (None, false),
        Some(OwnDecision::Policy(name)) => (Some(name), false),
        Some(OwnDecision::Unbacked) => (None, true),
    }
}

pub(crate) fn shown_decided(decided: DecidedOperation) -> ThreadDecision {
    let (policy, unbacked_decision) = shown_own(decided.own_decision);
    ThreadDecision {
        operation_id: decided.id,
        item_id: decided.item,
        decision: decided.decision.map(shown_decision),
        policy,
        unbacked_decision,
    }
}

/// The decision that an operation waits for has not been taken; of any other it is the last one.
pub(crate) async fn decision_about(
    store: &TaskStore,
    row: &OperationRow,
) -> Result<Option<DecisionRow>, StoreError> {
    match row.state {
        OperationRowState::Proposed | OperationRowState::Unknown => {
            store.decision(&row.id, row.attempt).await
        }
        _ => store.last_decision(&row.id).await,
    }
}

/// Nothing for a row whose proposal cannot be read.
pub(crate) fn shown(row: OperationRow, decision: Option<DecisionRow>) -> Option<Operation> {
    let waits = matches!(row.state, OperationRowState::Proposed | OperationRowState::Unknown);
    let available_decisions = if waits { row.available_decisions() } else { Vec::new() };
    let proposal: OperationRecord = protocol::from_value(&row.proposal).ok()?;
    let OperationRecord::Proposed {
        kind,
        tool,
        namespace,
        item_id,
        agent_path,
        arguments,
        effects,
        reason,
        changes,
        ..
    } = proposal
    else {
        return None;
    };
    let (policy, unbacked_decision) = shown_own(row.own_decision);
    Some(Operation {
        operation_id: row.id,
        thread_id: row.thread,
        task_id: row.root,
        state: state_of(row.state),
        kind,
        tool,
        namespace,
        item_id,
        agent_path,
        arguments,
        arguments_digest: row.arguments_digest,
        effects,
        available_decisions,
        reason,
        attempt: row.attempt,
        decision: decision.map(shown_decision),
        policy,
        unbacked_decision,
        changes,
        created_at_ms: row.created_at_ms,
        updated_at_ms: row.updated_at_ms,
    })
}

/// As the store has it now.
pub(crate) async fn shown_operation(store: &TaskStore, id: &OperationId) -> Option<Operation> {
    let row = store.operation(id).await.ok()??;
    let decision = decision_about(store, &row).await.ok()?;
    shown(row, decision)
}

/// The turn has ended, or every turn of the thread: what it left open waits for nobody any more.
pub(crate) async fn operation_over(shared: &HostShared, thread: &ThreadId, turn: Option<&TurnId>) {
    match shared.store.withdraw_operations(thread, turn).await {
        Ok(withdrawn) => {
            for row in withdrawn {
                if let Some(operation) = shown(row, None) {
                    shared.clients.operation_updated(operation).await;
                }
            }
        }
        Err(error) => tracing::warn!(%error, %thread, "operations of an ended turn are still listed"),
    }
}

impl HostShared {
    /// Stores a decision, the first about this attempt, and reports it to the task.
    pub(crate) async fn decide(
        &self,
        params: &OperationDecideParams,
        by: &str,
    ) -> Result<OperationRow, TaskError> {
        let id = &params.operation_id;
        let row = self.store.operation(id).await?;
        let row = row.ok_or_else(|| TaskError::UnknownOperation(id.clone()))?;
        let asked = DecisionRequest {
            operation: id.clone(),
            arguments_digest: params.arguments_digest.clone(),
            decision: params.decision.clone(),
            needs: word_of(&params.decision, row.state).to_owned(),
            by: by.to_owned(),
            on_behalf_of: params.on_behalf_of.clone(),
        };
        kill_point!("host.decision.before");
        let outcome = self.store.decide(asked).await?;
        kill_point!("host.decision.after");
        Ok(outcome.operation)
    }
}
