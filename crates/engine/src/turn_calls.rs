//! What a turn does with the calls a response brought.

use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, DynamicToolCallStatus,
    FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, ServerNotification, ThreadItem,
    TurnDiffUpdatedNotification,
};
use serde_json::Value;

use crate::calls::{OpenCall, Runner, ToolCall, ToolPayload, unsupported};
use crate::grants::union;
use crate::input::ToolOutcome;
use crate::sampling::Sampling;
use crate::turn::{Phase, Turn, warning};
use crate::turn_proposals::Ended;
use crate::work::Work;
use crate::{Effect, Question, ToolKind};

/// How many tools of one turn run at a time, however many the model asks for.
const MOST_AT_ONCE: usize = 16;

impl Turn {
    /// Only what this step offered can run.
    pub(crate) fn begin_call(&self, work: &mut Work<'_>, sampling: &mut Sampling, call: ToolCall) {
        let (runner, parallel, output) = match self.step.tool(&call.name) {
            Some(tool) if tool.kind != ToolKind::Hosted => (Runner::Waiting, tool.parallel, None),
            _ => (Runner::Nobody, true, Some(unsupported(&call))),
        };
        let began_ms = work.stamp.now_ms;
        sampling.calls.push(OpenCall { call, began_ms, runner, parallel, doing: None, output });
        self.start_waiting(work, &mut sampling.calls);
    }

    /// Starts what may run now, in the order of the calls: a tool that must run alone holds up those after it.
    pub(crate) fn start_waiting(&self, work: &mut Work<'_>, calls: &mut [OpenCall]) {
        let (mut running, mut alone) = (0, false);
        for open in calls.iter_mut().filter(|open| open.output.is_none()) {
            if open.runner == Runner::Waiting {
                if alone || running >= MOST_AT_ONCE || (running > 0 && !open.parallel) {
                    return;
                }
                self.start_call(work, open);
            }
            if open.output.is_none() {
                running += 1;
                alone |= !open.parallel;
            }
        }
    }

    fn start_call(&self, work: &mut Work<'_>, open: &mut OpenCall) {
        open.began_ms = work.stamp.now_ms;
        if self.step.tool(&open.call.name).is_some_and(|tool| tool.kind == ToolKind::Dynamic) {
            (open.runner, open.output) = self.ask_client(work, &open.call);
            return;
        }
        open.runner = Runner::Tool;
        work.effects.push(Effect::RunTool {
            call: open.call.clone(),
            turn_id: self.id.clone(),
            step: self.step.clone(),
            grants: union(&work.core.grants, &self.grants),
        });
    }

    fn ask_client(&self, work: &mut Work<'_>, call: &ToolCall) -> (Runner, Option<FunctionCallOutputBody>) {
        let arguments = match arguments_of(call) {
            Ok(arguments) => arguments,
            Err(problem) => return (Runner::Nobody, Some(FunctionCallOutputBody::Text(problem))),
        };
        let item = dynamic_item(call, arguments.clone(), DynamicToolCallStatus::InProgress, None, None);
        work.item_started(&self.id, item);
        let question = Question::DynamicTool(DynamicToolCallParams {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            call_id: call.call_id.clone(),
            tool: call.name.clone(),
            arguments,
            operation_id: None,
            arguments_digest: None,
        });
        let question = Box::new(question);
        work.effects.push(Effect::AskClient { call_id: call.call_id.clone(), question });
        (Runner::Client, None)
    }

    /// The call that waits for this runner. An end that nobody waits for is ignored.
    pub(crate) fn open_call(&mut self, call_id: &str, runner: Runner) -> Option<&mut OpenCall> {
        let of_model = match &mut self.phase {
            Phase::Sampling(sampling) => sampling.call_mut(call_id),
            _ => None,
        };
        let mut of_user = self.shells.iter_mut().filter(|shell| shell.call.call_id == call_id);
        of_model.or_else(|| of_user.next()).filter(|open| open.runner == runner)
    }

    /// A call has ended; whoever waited for that may start.
    pub(crate) fn start_next(&mut self, work: &mut Work<'_>) {
        let phase = std::mem::replace(&mut self.phase, Phase::AwaitingStep);
        self.phase = match phase {
            Phase::Sampling(mut sampling) => {
                self.start_waiting(work, &mut sampling.calls);
                Phase::Sampling(sampling)
            }
            other => other,
        };
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
        let ToolOutcome { output, item, success, diff, note } = outcome;
        let mut doing = open.doing.take();
        // One that failed before it did anything may be made again, under the same id if the model likes.
        let did_nothing = doing.is_none() && item.is_none() && !success;
        if let Some(doing) = &mut doing {
            doing.give_up(work, &turn_id, call_id);
            doing.finish(work, &turn_id, call_id, &output, success);
        }
        match (item, doing) {
            (Some(item), _) => work.item_completed(&turn_id, *item),
            // What a tool forgets to end is ended for it.
            (None, Some(mut doing)) if doing.item_open && !doing.proposal.outlives => {
                doing.end_item(work, &turn_id, Ended::of(success));
            }
            (None, _) => {}
        }
        open.output = Some(output);
        if did_nothing {
            self.seen_calls.remove(call_id);
        }
        if let Some(diff) = diff {
            self.diff = Some(diff);
            self.tell_diff(work);
        }
        if let Some(note) = note {
            work.remember(&turn_id, warning(&note));
        }
        self.start_next(work);
    }

    /// What the turn has changed so far, where anything has.
    pub(crate) fn tell_diff(&self, work: &mut Work<'_>) {
        if let Some(diff) = self.diff.clone() {
            let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
            let updated = TurnDiffUpdatedNotification { thread_id, turn_id, diff };
            work.emit(ServerNotification::TurnDiffUpdated(updated));
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
        self.start_next(work);
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
