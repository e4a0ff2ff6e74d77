//! Calls of function tools, which clients run: at one client at a time, after the attempt is stored. A call outlives the
//! runtime that asked for it, and its result waits for the next one.

use std::sync::Arc;

use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, ItemId,
    OperationDecision, OperationId, OperationResult, RequestMethod, ToolApprovalDecision,
    ToolRequestApproval, ToolRequestApprovalParams,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use store::{OperationRow, OperationRowState, StoreError, TaskLease};
use support::kill_point;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use traces::within;

use super::TaskDriver;
use crate::clients::{ToolCallEnd, WantedTool};
use crate::messages::{CallNews, LinkQuestion, TaskCommand};
use crate::operations::shown_operation;
use crate::settings::TaskSettings;
use crate::shared::HostShared;
use task::TaskInput;
use task::questions::is_call;

/// The words that the model reads instead of a result.
const REFUSED: &str = "The call was not allowed.";

/// A call that waits for a client or is run by one. Dropping it ends it, and its result is nobody's any more.
pub(super) struct CallHandle {
    task: AbortHandle,
    /// Ends the wait for a client, and nothing that has begun.
    stop: watch::Sender<bool>,
    has_begun: bool,
}

impl Drop for CallHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TaskDriver {
    pub(super) fn is_call(&self, question: u64) -> bool {
        self.questions.get(&question).is_some_and(|question| is_call(&question.method))
    }

    /// Asks about the call where the task's rules say so, else has it run.
    pub(super) async fn call(&mut self, operation: &OperationId, number: u64) -> Option<TaskInput> {
        if self.calls.contains_key(operation)
            || self.asks.get(operation).is_some_and(|ask| !ask.is_finished())
        {
            return None;
        }
        let row = self.row_of(operation, number).await?;
        let params = self.params_of(number, &row)?;
        let settings = self.settings().await;
        match row.state {
            OperationRowState::Proposed if settings.asks_before(&params.tool) => {
                self.ask_before(operation, number, params, &row);
                None
            }
            OperationRowState::Proposed | OperationRowState::Decided | OperationRowState::Started => {
                self.start_call(operation, number, params, &settings)
            }
            // Somebody has to decide first.
            OperationRowState::Unknown => None,
            OperationRowState::Finished | OperationRowState::Withdrawn => {
                self.refuse_call(number, "the operation is over");
                None
            }
        }
    }

    /// Answers the runtime with the decision about the call or its result, or starts it.
    pub(super) async fn answer_call(&mut self, operation: &OperationId, number: u64) -> Option<TaskInput> {
        let row = self.row_of(operation, number).await?;
        let store = self.shared.store.clone();
        let attempt = store.attempt(operation, row.attempt).await.ok().flatten();
        if let Some(result) = attempt.and_then(|attempt| attempt.result) {
            self.calls.remove(operation);
            self.respond_call(number, result.content_items, result.success);
            return None;
        }
        let decided = match store.last_decision(operation).await {
            Ok(decided) => decided.map(|row| row.decision),
            Err(error) => {
                tracing::error!(%error, task = %self.id, "a decision cannot be read");
                self.refuse_call(number, "the store does not answer");
                return None;
            }
        };
        if decided.is_none() && row.state == OperationRowState::Proposed {
            let tool = self.params_of(number, &row)?.tool;
            if self.settings().await.asks_before(&tool) {
                // It was taken back. Whoever was to run the call has other tools now.
                self.calls.remove(operation);
                return Some(TaskInput::Undecided { operation: operation.clone(), question: number });
            }
        }
        match decided {
            Some(OperationDecision::Respond { content_items, success }) => {
                self.calls.remove(operation);
                self.respond_call(number, content_items, success);
                None
            }
            Some(OperationDecision::Reject { message, end_turn }) => {
                self.calls.remove(operation);
                let params = self.params_of(number, &row)?;
                let text = message.unwrap_or_else(|| REFUSED.to_owned());
                self.respond_call(number, vec![DynamicToolCallOutputContentItem::InputText { text }], false);
                if end_turn && let Some(live) = &self.runtime {
                    let stop = json!({ "threadId": params.thread_id, "turnId": params.turn_id });
                    drop(live.link.request("turn/interrupt", &stop));
                }
                None
            }
            // Waiting for a client since before the decision, or at one already: the attempt reads the decision itself.
            _ if self.calls.contains_key(operation) => {
                Some(TaskInput::CallWaits { operation: operation.clone(), question: number })
            }
            Some(
                OperationDecision::Approve { .. }
                | OperationDecision::Retry
                | OperationDecision::Replace { .. },
            ) => {
                let params = self.params_of(number, &row)?;
                let settings = self.settings().await;
                self.start_call(operation, number, params, &settings)
            }
            None => self.call(operation, number).await,
        }
    }

    /// Nothing where the row cannot be had; then the runtime is told so.
    async fn row_of(&mut self, operation: &OperationId, number: u64) -> Option<OperationRow> {
        match self.shared.store.operation(operation).await {
            Ok(Some(row)) => Some(row),
            Ok(None) => {
                self.refuse_call(number, "there is no such operation");
                None
            }
            Err(error) => {
                tracing::error!(%error, task = %self.id, "a call cannot be looked up");
                self.refuse_call(number, "the store does not answer");
                None
            }
        }
    }

    /// The call that the runtime asks for, if it is the one that was recorded: people decide about the record.
    fn params_of(&mut self, number: u64, row: &OperationRow) -> Option<DynamicToolCallParams> {
        let question = self.questions.get(&number)?;
        match protocol::decode::<DynamicToolCallParams>(question.params.get()) {
            Ok(params) if is_as_proposed(&params, row) => Some(params),
            Ok(_) => {
                self.refuse_call(number, "the call is not the one that its operation proposed");
                None
            }
            Err(error) => {
                self.refuse_call(number, &error.to_string());
                None
            }
        }
    }

    async fn settings(&mut self) -> TaskSettings {
        let row = self.shared.store.task(&self.id).await.ok().flatten();
        row.map(|row| TaskSettings::read(&row.settings)).unwrap_or_default()
    }

    fn refuse_call(&mut self, number: u64, problem: &str) {
        if let Some(LinkQuestion { id, link, .. }) = self.questions.remove(&number) {
            link.refuse(&id, -32603, problem, &None);
        }
    }

    fn respond_call(
        &mut self,
        number: u64,
        content_items: Vec<DynamicToolCallOutputContentItem>,
        success: bool,
    ) {
        if let Some(LinkQuestion { id, link, .. }) = self.questions.remove(&number) {
            link.respond(&id, &DynamicToolCallResponse { content_items, success });
        }
    }

    /// Subscribers are asked as about any other tool.
    fn ask_before(
        &mut self,
        operation: &OperationId,
        number: u64,
        call: DynamicToolCallParams,
        row: &OperationRow,
    ) {
        let params = ToolRequestApprovalParams {
            thread_id: call.thread_id.clone(),
            turn_id: call.turn_id,
            item_id: ItemId::new(call.call_id),
            operation_id: operation.clone(),
            tool: call.tool,
            namespace: call.namespace,
            arguments: call.arguments,
            arguments_digest: row.arguments_digest.clone(),
            reason: None,
            available_decisions: vec![
                ToolApprovalDecision::Accept,
                ToolApprovalDecision::Decline,
                ToolApprovalDecision::Cancel,
                ToolApprovalDecision::Defer,
            ],
            started_at_ms: self.shared.now_ms(),
        };
        let Ok(params) = to_raw_value(&params) else { return };
        tracing::info!(task = %self.id, operation = %operation, "a call waits for a decision");
        let answer = self.shared.clients.ask(&call.thread_id, ToolRequestApproval::METHOD, params);
        let trace = self.questions.get(&number).and_then(|question| question.span.context());
        let answer = within(trace, answer);
        let (mailbox, operation_id) = (self.mailbox.clone(), operation.clone());
        let asking = tokio::spawn(async move {
            if let Some(reply) = answer.await {
                let method = ToolRequestApproval::METHOD.to_owned();
                let (operation, by, result) = (operation_id, reply.by, reply.result);
                let _ = mailbox.send(TaskCommand::Answered { operation, method, by, result }).await;
            }
        });
        self.asks.insert(operation.clone(), asking.abort_handle());
    }

    fn start_call(
        &mut self,
        operation: &OperationId,
        number: u64,
        params: DynamicToolCallParams,
        settings: &TaskSettings,
    ) -> Option<TaskInput> {
        let tool = WantedTool {
            task: self.id.clone(),
            schema_digest: settings.schema_digest(params.namespace.as_deref(), &params.tool),
            name: params.tool.clone(),
            namespace: params.namespace.clone(),
        };
        let (stop, stopped) = watch::channel(false);
        let call = ClientCall {
            shared: self.shared.clone(),
            lease: self.lease.clone(),
            mailbox: self.mailbox.clone(),
            operation: operation.clone(),
            params,
            tool,
        };
        let trace = self.questions.get(&number).and_then(|question| question.span.context());
        let task = tokio::spawn(within(trace, call.run(stopped))).abort_handle();
        self.calls.insert(operation.clone(), CallHandle { task, stop, has_begun: false });
        Some(TaskInput::CallWaits { operation: operation.clone(), question: number })
    }

    pub(super) async fn called(&mut self, operation: OperationId, news: CallNews) {
        if news == CallNews::Begun {
            let Some(call) = self.calls.get_mut(&operation) else { return };
            call.has_begun = true;
        } else if self.calls.remove(&operation).is_none() {
            // Closed in the meantime: nobody waits for it.
            return;
        }
        if let Some(shown) = shown_operation(&self.shared.store, &operation).await {
            self.shared.clients.operation_updated(shown).await;
        }
        match news {
            CallNews::Begun => self.advance(TaskInput::CallBegun(operation)).await,
            CallNews::Done => self.advance(TaskInput::CallDone(operation)).await,
            CallNews::Lost => self.advance(TaskInput::CallLost(operation)).await,
            CallNews::Void => self.advance(TaskInput::TimePassed).await,
            CallNews::Again => self.call_again(operation).await,
        }
    }

    /// Another client may run it. Without a runtime the next one asks for it.
    async fn call_again(&mut self, operation: OperationId) {
        let asks = |question: &LinkQuestion| question.operation.as_ref() == Some(&operation);
        let number = self.questions.values().find(|question| asks(question)).map(|question| question.number);
        self.advance(TaskInput::CallStopped(operation.clone())).await;
        if let Some(number) = number
            && let Some(input) = self.call(&operation, number).await
        {
            self.advance(input).await;
        }
    }

    /// The runtime is gone: calls that no client has begun are asked for again by the next one.
    pub(super) fn drop_waiting_calls(&mut self) {
        for call in self.calls.values().filter(|call| !call.has_begun) {
            call.stop.send_replace(true);
        }
    }

    /// Those that a client may be running.
    pub(super) fn running_calls(&self) -> Vec<OperationId> {
        self.calls.keys().cloned().collect()
    }
}

fn is_as_proposed(params: &DynamicToolCallParams, row: &OperationRow) -> bool {
    let proposed = |name: &str| row.proposal.get(name).unwrap_or(&Value::Null);
    params.thread_id == row.thread
        && proposed("tool").as_str() == Some(params.tool.as_str())
        && *proposed("arguments") == params.arguments
}

/// One call, from the wait for a client to its result.
struct ClientCall {
    shared: Arc<HostShared>,
    lease: TaskLease,
    mailbox: mpsc::Sender<TaskCommand>,
    operation: OperationId,
    params: DynamicToolCallParams,
    tool: WantedTool,
}

impl ClientCall {
    async fn run(self, stopped: watch::Receiver<bool>) {
        let news = self.attempts(stopped).await.unwrap_or_else(|error| {
            tracing::warn!(%error, operation = %self.operation, "a call is not run");
            CallNews::Void
        });
        self.tell(news).await;
    }

    async fn tell(&self, news: CallNews) {
        let _ = self.mailbox.send(TaskCommand::Called { operation: self.operation.clone(), news }).await;
    }

    /// With the arguments that were decided on, whenever that was: the decision may have come while the call waited.
    async fn decided_params(&self) -> Result<DynamicToolCallParams, StoreError> {
        let mut params = self.params.clone();
        let decided = self.shared.store.last_decision(&self.operation).await?;
        if let Some(OperationDecision::Replace { arguments: Some(arguments), .. }) =
            decided.map(|row| row.decision)
        {
            params.arguments = arguments;
        }
        Ok(params)
    }

    async fn attempts(&self, mut stopped: watch::Receiver<bool>) -> Result<CallNews, StoreError> {
        let store = &self.shared.store;
        loop {
            let provider = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => return Ok(CallNews::Again),
                provider = self.shared.clients.provider(self.tool.clone()) => provider,
            };
            let unknown = || StoreError::UnknownOperation(self.operation.clone());
            let row = store.operation(&self.operation).await?.ok_or_else(unknown)?;
            let attempt = row.attempt + 1;
            kill_point!("host.attempt.before");
            store.begin_attempt(&self.lease, &self.operation, attempt, &provider.name).await?;
            kill_point!("host.attempt.after");
            self.tell(CallNews::Begun).await;
            let thread = &self.params.thread_id;
            match self.shared.clients.call_tool(&provider, thread, self.decided_params().await?).await {
                ToolCallEnd::Answered(DynamicToolCallResponse { content_items, success }) => {
                    let result = OperationResult { content_items, success };
                    kill_point!("host.result.before");
                    store.finish_attempt(&self.operation, attempt, result).await?;
                    kill_point!("host.result.after");
                    return Ok(CallNews::Done);
                }
                ToolCallEnd::NotSent => {
                    store.give_up_attempt(&self.operation, attempt, false).await?;
                }
                ToolCallEnd::Gone if row.may_repeat() => return Ok(CallNews::Again),
                ToolCallEnd::Gone => {
                    store.give_up_attempt(&self.operation, attempt, true).await?;
                    return Ok(CallNews::Lost);
                }
            }
        }
    }
}
