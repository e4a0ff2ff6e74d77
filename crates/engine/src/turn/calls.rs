//! The calls of a response: starting, asking, ending.

use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, DynamicToolCallStatus,
    FunctionCallOutputBody, FunctionCallOutputContentItem, ItemId, OperationDecision, OperationType,
    ServerNotification, ThreadItem, ToolApprovalDecision, ToolEffects, ToolRequestApprovalParams,
    TurnDiffUpdatedNotification,
};
use serde_json::{Value, json};

use crate::calls::{ActiveProposal, OpenCall, Runner, ToolCall, ToolPayload, unsupported};
use crate::canonical::digest_of;
use crate::context::{HookContext, alone};
use crate::grants::union;
use crate::input::ToolOutcome;
use crate::turn::active_proposal::Ended;
use crate::turn::earlier::EarlierState;
use crate::turn::operation::{Proposed, operation_id};
use crate::turn::proposals::REFUSED;
use crate::turn::sampling::Sampling;
use crate::turn::work::Transition;
use crate::turn::{TurnMachine, TurnPhase, warning};
use crate::{Effect, Gate, Proposal, Question, ToolKind};

/// Limit of a turn's tools that run at a time.
const MOST_AT_ONCE: usize = 16;

impl TurnMachine {
    /// Only tools that this step offered can run.
    pub(crate) fn begin_call(&self, work: &mut Transition<'_>, sampling: &mut Sampling, call: ToolCall) {
        let (runner, parallel, output) = match self.step.called(&call) {
            Some(tool) if let Some(refusal) = self.step.refuses(tool) => {
                (Runner::Nobody, true, Some(FunctionCallOutputBody::Text(refusal.to_owned())))
            }
            Some(tool) if tool.kind != ToolKind::Hosted => (Runner::Waiting, tool.parallel, None),
            _ => (Runner::Nobody, true, Some(unsupported(&call))),
        };
        let began_ms = work.stamp.now_ms;
        sampling.calls.push(OpenCall { call, began_ms, runner, parallel, active: None, output, step: None });
        self.start_waiting(work, &mut sampling.calls);
    }

    /// Starts calls in order: a tool that must run alone delays those after it.
    pub(crate) fn start_waiting(&self, work: &mut Transition<'_>, calls: &mut [OpenCall]) {
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

    pub(crate) fn start_call(&self, work: &mut Transition<'_>, open: &mut OpenCall) {
        open.began_ms = work.stamp.now_ms;
        let Some(tool) = self.step.called(&open.call) else { return };
        match (tool.kind, tool.gate) {
            (_, Gate::Closed) => {
                (open.runner, open.output) =
                    (Runner::Nobody, Some(FunctionCallOutputBody::Text(REFUSED.to_owned())));
            }
            // The client that runs it decides about it.
            (ToolKind::Dynamic, _) => (open.runner, open.output) = self.ask_client(work, &open.call),
            (_, Gate::Ask) => self.ask_gate(work, open),
            (_, Gate::Open) => self.run_tool(work, open),
        }
    }

    /// The host decides whether the call is made. It is not asked again about what it approved for the session.
    fn ask_gate(&self, work: &mut Transition<'_>, open: &mut OpenCall) {
        let (arguments, digest) = gate_question(&open.call);
        if work.core.agreed.contains(&digest) {
            return self.run_tool(work, open);
        }
        let (call_id, now) = (open.call.call_id.clone(), work.stamp.now_ms);
        let id = operation_id(work, &self.id, &call_id, 0);
        let params = ToolRequestApprovalParams {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            item_id: ItemId::new(call_id.clone()),
            operation_id: id.clone(),
            tool: open.call.name.clone(),
            namespace: open.call.namespace.clone(),
            arguments: arguments.clone(),
            arguments_digest: digest.clone(),
            reason: None,
            available_decisions: gate_decisions(&arguments, work.core.shows_operations),
            started_at_ms: now,
        };
        let mut active = Box::new(ActiveProposal::new(Proposal {
            number: 0,
            kind: OperationType::Other("tool".to_owned()),
            effects: ToolEffects::Once,
            item: None,
            outlives: false,
            arguments,
            session_keys: vec![digest.clone()],
            digest,
            question: Some(Box::new(Question::Tool(params))),
        }));
        match self.earlier.get(&id) {
            None => active.record_proposed(work, id, &call_id, &open.call.name, &self.step.tool_set_digest),
            Some(before) if before.digest == active.proposal.digest => {
                if self.resume_gate(work, open, &active, &before.state) {
                    return;
                }
            }
            Some(_) => {}
        }
        active.ask(work, &self.id, &call_id);
        (open.runner, open.active) = (Runner::Gate, Some(active));
    }

    /// Applies a decision from before a restart, or asks again if there is none. A rejection that ends the turn has
    /// ended it before this point.
    fn resume_gate(
        &self,
        work: &mut Transition<'_>,
        open: &mut OpenCall,
        active: &ActiveProposal,
        state: &EarlierState,
    ) -> bool {
        let mut active = Box::new(active.clone());
        let output = match state {
            EarlierState::Again { attempt } => {
                active.attempt = attempt + 1;
                None
            }
            EarlierState::Decided(decision @ OperationDecision::Approve { .. }) => {
                if decision.is_for_session() {
                    work.core.agreed.extend(active.proposal.session_keys.iter().cloned());
                }
                None
            }
            EarlierState::Decided(OperationDecision::Replace { arguments: Some(arguments), .. }) => {
                replace_arguments(&mut open.call, arguments);
                None
            }
            EarlierState::Decided(OperationDecision::Respond { content_items, .. }) => {
                Some(output_of(content_items.clone()))
            }
            EarlierState::Decided(OperationDecision::Reject { end_turn: false, .. }) => {
                Some(FunctionCallOutputBody::Text(REFUSED.to_owned()))
            }
            _ => return false,
        };
        if output.is_some() {
            (open.runner, open.output) = (Runner::Nobody, output);
            return true;
        }
        active.begin(work, &self.id, &open.call.call_id);
        self.run_tool(work, open);
        open.active = Some(active);
        true
    }

    /// The host approved a call, perhaps with other arguments.
    pub(crate) fn open_gate(&mut self, work: &mut Transition<'_>, call_id: &str, arguments: Option<&Value>) {
        let Some(open) = self.open_call(call_id, Runner::Gate) else { return };
        if let Some(arguments) = arguments {
            replace_arguments(&mut open.call, arguments);
        }
        let mut open = open.clone();
        self.run_tool(work, &mut open);
        if let Some(place) = self.open_call(call_id, Runner::Gate) {
            *place = open;
        }
    }

    fn run_tool(&self, work: &mut Transition<'_>, open: &mut OpenCall) {
        open.runner = Runner::Tool;
        work.effects.push(Effect::RunTool {
            call: open.call.clone(),
            turn_id: self.id.clone(),
            step: open.step.clone().unwrap_or_else(|| self.step.clone()),
            grants: union(&work.core.grants, &self.grants),
        });
    }

    fn ask_client(
        &self,
        work: &mut Transition<'_>,
        call: &ToolCall,
    ) -> (Runner, Option<FunctionCallOutputBody>) {
        let arguments = match arguments_of(call) {
            Ok(arguments) => arguments,
            Err(problem) => return (Runner::Nobody, Some(FunctionCallOutputBody::Text(problem))),
        };
        let (id, digest) = (operation_id(work, &self.id, &call.call_id, 0), digest_of(&arguments));
        if self.earlier.get(&id).is_none() {
            work.propose(Proposed {
                operation_id: id.clone(),
                call_id: &call.call_id,
                kind: OperationType::Function,
                tool: &call.name,
                arguments: &arguments,
                digest: &digest,
                effects: self.step.called(call).map_or(ToolEffects::Once, |tool| tool.effects),
                decisions: vec!["respond".to_owned()],
                reason: None,
                tool_set_digest: &self.step.tool_set_digest,
                session_keys: &[],
                item: None,
            });
        }
        let item = dynamic_item(call, arguments.clone(), DynamicToolCallStatus::InProgress, None, None);
        work.item_started(&self.id, item);
        let shown = work.core.shows_operations;
        let question = Question::DynamicTool(DynamicToolCallParams {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            call_id: call.call_id.clone(),
            namespace: call.namespace.clone(),
            tool: call.name.clone(),
            arguments,
            operation_id: shown.then_some(id),
            arguments_digest: shown.then_some(digest),
        });
        let question = Box::new(question);
        work.effects.push(Effect::AskClient { call_id: call.call_id.clone(), question });
        (Runner::Client, None)
    }

    /// The call with this id.
    pub(crate) fn call_of(&mut self, call_id: &str) -> Option<&mut OpenCall> {
        let of_model = match &mut self.phase {
            TurnPhase::Sampling(sampling) => sampling.call_mut(call_id),
            _ => None,
        };
        let nested = self.nested.iter_mut().map(|nested| &mut nested.open);
        let mut others = self.shells.iter_mut().chain(nested).filter(|open| open.call.call_id == call_id);
        of_model.or_else(|| others.next())
    }

    /// The call that waits for this runner. A result that no call waits for is ignored.
    pub(crate) fn open_call(&mut self, call_id: &str, runner: Runner) -> Option<&mut OpenCall> {
        self.call_of(call_id).filter(|open| open.runner == runner)
    }

    /// A call ended; calls that waited for it may start.
    pub(crate) fn start_next(&mut self, work: &mut Transition<'_>) {
        let phase = std::mem::replace(&mut self.phase, TurnPhase::AwaitingStep);
        self.phase = match phase {
            TurnPhase::Sampling(mut sampling) => {
                self.start_waiting(work, &mut sampling.calls);
                TurnPhase::Sampling(sampling)
            }
            other => other,
        };
    }

    pub(crate) fn on_progress(
        &mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        notification: ServerNotification,
    ) {
        if self.open_call(call_id, Runner::Tool).is_some() {
            work.emit(notification);
        }
    }

    pub(crate) fn on_tool_finished(
        &mut self,
        work: &mut Transition<'_>,
        call_id: &str,
        outcome: ToolOutcome,
    ) {
        let turn_id = self.id.clone();
        let Some(open) = self.open_call(call_id, Runner::Tool) else { return };
        let ToolOutcome { output, item, success, diff, note, contexts, goes_on, goal } = outcome;
        let mut active = open.active.take();
        // A call that failed before it did anything may be repeated, even under the same id.
        let did_nothing = active.is_none() && item.is_none() && !success;
        if let Some(active) = &mut active {
            active.give_up(work, &turn_id, call_id);
            if !goes_on {
                active.finish(work, &turn_id, call_id, &output, success);
            }
        }
        match (item, active) {
            (Some(item), _) => work.item_completed(&turn_id, *item),
            // Ends the item if the tool did not.
            (None, Some(mut active)) if active.item_open && !active.proposal.outlives => {
                active.end_item(work, &turn_id, Ended::of(success));
            }
            (None, _) => {}
        }
        open.output = Some(output);
        self.pending_messages.extend(contexts.iter().map(|text| alone(&HookContext(text))));
        if did_nothing {
            self.seen_calls.remove(call_id);
        }
        if let Some(diff) = diff {
            self.diff = Some(diff);
            self.notify_diff(work);
        }
        if let Some(note) = note {
            work.remember(&turn_id, warning(&note));
        }
        if let Some(status) = goal {
            work.mark_goal(&turn_id, status);
        }
        self.start_next(work);
    }

    /// Notifies clients of the turn's diff, if there is one.
    pub(crate) fn notify_diff(&self, work: &mut Transition<'_>) {
        if let Some(diff) = self.diff.clone() {
            let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
            let updated = TurnDiffUpdatedNotification { thread_id, turn_id, diff };
            work.emit(ServerNotification::TurnDiffUpdated(updated));
        }
    }

    pub(crate) fn on_dynamic_answer(
        &mut self,
        work: &mut Transition<'_>,
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
        open.output = Some(output_of(content_items.clone()));
        let id = operation_id(work, &turn_id, call_id, 0);
        work.record_finished(id, 1, success, content_items);
        work.item_completed(&turn_id, item);
        self.start_next(work);
    }

    /// A client's call that is no longer waited for counts as failed.
    pub(crate) fn close_dynamic_call(&self, work: &mut Transition<'_>, open: &OpenCall) {
        let arguments = arguments_of(&open.call).unwrap_or_default();
        let duration = Some(work.stamp.now_ms - open.began_ms);
        let item = dynamic_item(&open.call, arguments, DynamicToolCallStatus::Failed, None, duration);
        let id = operation_id(work, &self.id, &open.call.call_id, 0);
        work.record_withdrawn(id, "the turn was stopped");
        work.item_completed(&self.id, item);
    }
}

/// The arguments of a host's question, and their digest.
pub(crate) fn gate_question(call: &ToolCall) -> (Value, String) {
    let arguments = match &call.payload {
        ToolPayload::Function { arguments } | ToolPayload::Search { arguments } => {
            serde_json::from_str(arguments).unwrap_or_default()
        }
        ToolPayload::Custom { input } => json!({ "input": input }),
    };
    let digest = digest_of(&json!([call.name, arguments]));
    (arguments, digest)
}

fn replace_arguments(call: &mut ToolCall, arguments: &Value) {
    call.payload = match (&call.payload, arguments.get("input").and_then(Value::as_str)) {
        (ToolPayload::Custom { .. }, Some(input)) => ToolPayload::Custom { input: input.to_owned() },
        (ToolPayload::Search { .. }, _) => ToolPayload::Search { arguments: arguments.to_string() },
        _ => ToolPayload::Function { arguments: arguments.to_string() },
    };
}

/// The decisions of a gate's question. Hosts with `operations` also get the two that carry values, with examples.
fn gate_decisions(arguments: &Value, for_host: bool) -> Vec<ToolApprovalDecision> {
    let mut decisions = vec![ToolApprovalDecision::Accept, ToolApprovalDecision::AcceptForSession];
    if for_host {
        decisions.push(ToolApprovalDecision::AcceptWithArguments { arguments: arguments.clone() });
        decisions.push(ToolApprovalDecision::Respond { content_items: Vec::new(), success: true });
    }
    decisions.extend([ToolApprovalDecision::Decline, ToolApprovalDecision::Cancel]);
    decisions
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
    let namespace = call.namespace.clone();
    ThreadItem::DynamicToolCall {
        id,
        namespace,
        tool,
        arguments,
        status,
        content_items,
        success,
        duration_ms,
    }
}

pub(crate) fn arguments_of(call: &ToolCall) -> Result<Value, String> {
    match &call.payload {
        ToolPayload::Function { arguments } | ToolPayload::Search { arguments } => {
            serde_json::from_str(arguments)
                .map_err(|error| format!("failed to parse function arguments: {error}"))
        }
        ToolPayload::Custom { .. } => Err(format!("tool {} takes JSON arguments", call.name)),
    }
}

/// Text alone becomes one string; images need separate parts.
pub(crate) fn output_of(items: Vec<DynamicToolCallOutputContentItem>) -> FunctionCallOutputBody {
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
