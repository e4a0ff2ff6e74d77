//! What a turn does with the calls a response brought.

use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, DynamicToolCallStatus,
    FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, ServerNotification, ThreadItem,
};
use serde_json::Value;

use crate::calls::{OpenCall, Runner, ToolCall, ToolPayload, unsupported};
use crate::input::ToolOutcome;
use crate::sampling::Sampling;
use crate::turn::{Phase, Turn};
use crate::work::Work;
use crate::{Effect, Question, ToolKind};

impl Turn {
    /// Only what this step offered can run.
    pub(crate) fn begin_call(&self, work: &mut Work<'_>, sampling: &mut Sampling, call: ToolCall) {
        let began_ms = work.stamp.now_ms;
        let (runner, output) = match self.step.tool(&call.name).map(|tool| tool.kind) {
            Some(ToolKind::Builtin) => {
                work.effects.push(Effect::RunTool { call: call.clone(), step: self.step.clone() });
                (Runner::Tool, None)
            }
            Some(ToolKind::Dynamic) => self.ask_client(work, &call),
            Some(ToolKind::Hosted) | None => (Runner::Nobody, Some(unsupported(&call))),
        };
        sampling.calls.push(OpenCall { call, began_ms, runner, output });
    }

    fn ask_client(&self, work: &mut Work<'_>, call: &ToolCall) -> (Runner, Option<FunctionCallOutputBody>) {
        let arguments = match arguments_of(call) {
            Ok(arguments) => arguments,
            Err(problem) => return (Runner::Nobody, Some(FunctionCallOutputBody::Text(problem))),
        };
        let item = dynamic_item(call, arguments.clone(), DynamicToolCallStatus::InProgress, None, None);
        work.item_started(&self.id, item);
        work.effects.push(Effect::AskClient(Question::DynamicTool(DynamicToolCallParams {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            call_id: call.call_id.clone(),
            tool: call.name.clone(),
            arguments,
            operation_id: None,
            arguments_digest: None,
        })));
        (Runner::Client, None)
    }

    /// The call that waits for this runner. An end that nobody waits for is ignored.
    fn open_call(&mut self, call_id: &str, runner: Runner) -> Option<&mut OpenCall> {
        match &mut self.phase {
            Phase::Sampling(sampling) => sampling.call_mut(call_id).filter(|open| open.runner == runner),
            _ => None,
        }
    }

    pub(crate) fn on_progress(
        &mut self,
        work: &mut Work<'_>,
        call_id: &str,
        notification: ServerNotification,
    ) {
        if self.open_call(call_id, Runner::Tool).is_some() {
            work.emit(notification);
        }
    }

    pub(crate) fn on_tool_finished(&mut self, work: &mut Work<'_>, call_id: &str, outcome: ToolOutcome) {
        let turn_id = self.id.clone();
        let Some(open) = self.open_call(call_id, Runner::Tool) else { return };
        open.output = Some(outcome.output);
        if let Some(item) = outcome.item {
            work.item_completed(&turn_id, *item);
        }
    }

    pub(crate) fn on_dynamic_answer(
        &mut self,
        work: &mut Work<'_>,
        call_id: &str,
        answer: Result<DynamicToolCallResponse, String>,
    ) {
        let (turn_id, now) = (self.id.clone(), work.stamp.now_ms);
        let Some(open) = self.open_call(call_id, Runner::Client) else { return };
        let DynamicToolCallResponse { content_items, success } =
            answer.unwrap_or_else(|problem| DynamicToolCallResponse {
                content_items: vec![DynamicToolCallOutputContentItem::InputText { text: problem }],
                success: false,
            });
        let status = if success { DynamicToolCallStatus::Completed } else { DynamicToolCallStatus::Failed };
        let arguments = arguments_of(&open.call).unwrap_or_default();
        let result = Some((content_items.clone(), success));
        let item = dynamic_item(&open.call, arguments, status, result, Some(now - open.began_ms));
        open.output = Some(output_of(content_items));
        work.item_completed(&turn_id, item);
    }

    /// A client's call that is no longer waited for has failed, as far as anybody will know.
    pub(crate) fn close_dynamic_call(&self, work: &mut Work<'_>, open: &OpenCall) {
        let arguments = arguments_of(&open.call).unwrap_or_default();
        let duration = Some(work.stamp.now_ms - open.began_ms);
        let item = dynamic_item(&open.call, arguments, DynamicToolCallStatus::Failed, None, duration);
        work.item_completed(&self.id, item);
    }
}

fn dynamic_item(
    call: &ToolCall,
    arguments: Value,
    status: DynamicToolCallStatus,
    result: Option<(Vec<DynamicToolCallOutputContentItem>, bool)>,
    duration_ms: Option<i64>,
) -> ThreadItem {
    let (content_items, success) = result.unzip();
    let (id, tool) = (ItemId::new(call.call_id.clone()), call.name.clone());
    ThreadItem::DynamicToolCall { id, tool, arguments, status, content_items, success, duration_ms }
}

fn arguments_of(call: &ToolCall) -> Result<Value, String> {
    match &call.payload {
        ToolPayload::Function { arguments } => serde_json::from_str(arguments)
            .map_err(|error| format!("failed to parse function arguments: {error}")),
        ToolPayload::Custom { .. } => Err(format!("tool {} takes JSON arguments", call.name)),
    }
}

/// Text alone goes back as one string; pictures need their parts.
fn output_of(items: Vec<DynamicToolCallOutputContentItem>) -> FunctionCallOutputBody {
    if let [DynamicToolCallOutputContentItem::InputText { text }] = items.as_slice() {
        return FunctionCallOutputBody::Text(text.clone());
    }
    let part = |item| match item {
        DynamicToolCallOutputContentItem::InputText { text } => {
            FunctionCallOutputContentItem::InputText { text }
        }
        DynamicToolCallOutputContentItem::InputImage { image_url } => {
            FunctionCallOutputContentItem::InputImage { image_url, detail: None }
        }
    };
    FunctionCallOutputBody::Content(items.into_iter().map(part).collect())
}
