//! `operation/*`: listed and decided at any time, with or without a runtime.

use protocol::{
    Operation, OperationDecideParams, OperationDecision, OperationListParams, OperationListResponse,
    ThreadDecision, ThreadId,
};
use store::{OperationFilter, OperationRow, OperationRowState};

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::operations::{decision_about, row_state_of, shown, shown_decided, shown_operation};
use crate::task_host::TaskHost;
use task::TaskInput;

const DEFAULT_LIMIT: u32 = 50;

impl TaskHost {
    pub async fn list_operations(
        &self,
        params: OperationListParams,
    ) -> Result<OperationListResponse, TaskError> {
        let filter = OperationFilter {
            thread: params.thread_id,
            state: params.state.map(row_state_of),
            cursor: params.cursor,
            limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        };
        let (rows, next_cursor) = self.shared.store.list_operations(filter).await?;
        let mut data = Vec::with_capacity(rows.len());
        for row in rows {
            let decision = decision_about(&self.shared.store, &row).await?;
            data.extend(shown(row, decision));
        }
        Ok(OperationListResponse { data, next_cursor })
    }

    /// Who decided about what a thread did, oldest first.
    pub async fn list_decisions(&self, thread: &ThreadId) -> Result<Vec<ThreadDecision>, TaskError> {
        let decided = self.shared.store.decisions_of(&check_thread_id(thread)?).await?;
        Ok(decided.into_iter().map(shown_decided).collect())
    }

    /// Stores the decision, then brings the task back where no runtime lives.
    pub async fn decide(&self, params: OperationDecideParams, by: &str) -> Result<Operation, TaskError> {
        let id = params.operation_id.clone();
        let row = self.shared.decide(&params, by).await?;
        self.after_decision(row).await;
        let operation = shown_operation(&self.shared.store, &id).await;
        let operation = operation.ok_or(TaskError::UnknownOperation(id))?;
        self.shared.clients.operation_updated(operation.clone()).await;
        Ok(operation)
    }

    /// Rejects what is unknown, so that an interrupt can end the turn.
    pub(crate) async fn reject_unknown(&self, thread: &ThreadId, by: &str) -> Result<(), TaskError> {
        let filter = OperationFilter {
            thread: Some(thread.clone()),
            state: Some(OperationRowState::Unknown),
            cursor: None,
            limit: DEFAULT_LIMIT,
        };
        for row in self.shared.store.list_operations(filter).await?.0 {
            let params = OperationDecideParams {
                operation_id: row.id,
                arguments_digest: row.arguments_digest,
                decision: OperationDecision::Reject { message: None, end_turn: true },
                on_behalf_of: None,
            };
            match self.shared.decide(&params, by).await {
                Ok(row) => self.after_decision(row).await,
                Err(TaskError::AlreadyDecided(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn after_decision(&self, row: OperationRow) {
        let input = TaskInput::Decided(row.id.clone());
        if let Err(error) = self.tell_task(&row.root, input).await {
            // The decision is stored; the next start of the task carries it out.
            tracing::warn!(%error, task = %row.root, "a decided task could not be brought back now");
        }
    }
}
