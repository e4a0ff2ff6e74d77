//! The turn: from input to end, top to bottom. Streaming is in `stream.rs`, compaction in `compaction.rs`.

pub(crate) mod active_proposal;
pub(crate) mod assessment;
pub(crate) mod assessment_text;
pub(crate) mod calls;
pub(crate) mod compaction;
pub(crate) mod earlier;
pub(crate) mod goal;
pub(crate) mod hooks;
pub(crate) mod nested;
pub(crate) mod operation;
pub(crate) mod proposals;
pub(crate) mod resume;
pub(crate) mod review;
pub(crate) mod said;
pub(crate) mod sampling;
pub(crate) mod shell;
pub(crate) mod stream;
pub(crate) mod suspend;
pub(crate) mod work;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use model::{FailureClass, ModelFailure, Purpose};
use protocol::{
    CodexErrorInfo, ErrorNotification, GrantedPermissionProfile, ResponseItem, RolloutRecord,
    ServerNotification, TurnCompletedNotification, TurnError, TurnId, TurnStartedNotification, TurnStatus,
};
use serde_json::Value;

use crate::calls::{OpenCall, Runner, StoppedBy};
use crate::context::{RuntimeWarning, alone, turn_aborted, turn_cut_off};
use crate::grants::NOTHING;
use crate::input::{StorageFailure, UserText};
use crate::request::{RequestParts, prepare};
use crate::truncate::truncate_output;
use crate::turn::compaction::{AfterCompaction, Compacting};
use crate::turn::earlier::EarlierOperations;
use crate::turn::hooks::RunningHooks;
use crate::turn::nested::NestedCall;
use crate::turn::proposals::refuse_late;
use crate::turn::said::Said;
use crate::turn::sampling::{Sampling, StreamState};
use crate::turn::work::Transition;
use crate::{Effect, Input, Step};

/// The purpose of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Regular,
    Compact,
    /// A reviewer with its own history reviews changes.
    Review,
    /// A command of the user, without the model.
    Shell,
}

/// Consecutive pauses of a model's answer before the turn fails.
const MOST_PAUSES: u32 = 3;

/// The running turn as a state machine; `protocol::Turn` is what clients see of it.
#[derive(Debug, Clone)]
pub(crate) struct TurnMachine {
    pub(crate) id: TurnId,
    pub(crate) kind: TurnKind,
    pub(crate) began_ms: i64,
    pub(crate) step: Arc<Step>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) phase: TurnPhase,
    /// User input that is recorded and not yet seen by the model.
    pub(crate) queued: VecDeque<Said>,
    /// Operations of the turn from before a restart.
    pub(crate) earlier: EarlierOperations,
    /// Ids of all calls of the turn: each runs once, even if the model repeats it.
    pub(crate) seen_calls: HashSet<String>,
    /// Commands of the user that run beside the model.
    pub(crate) shells: Vec<OpenCall>,
    /// Calls made by running tools.
    pub(crate) nested: Vec<NestedCall>,
    /// Messages for the model's next request.
    pub(crate) pending_messages: Vec<ResponseItem>,
    /// Some of them need another request before the turn may end.
    pub(crate) needs_request: bool,
    /// Permissions granted for this turn.
    pub(crate) grants: GrantedPermissionProfile,
    /// The diff of the turn.
    pub(crate) diff: Option<String>,
    pub(crate) retries: u32,
    /// Requests so far, not counting retries.
    pub(crate) segments: u32,
    /// Summary requests so far, not counting retries.
    pub(crate) summaries: u32,
    pub(crate) turn_state: Option<String>,
    pub(crate) rerouted: bool,
    /// The history was compacted because it did not fit, and the provider has not answered since.
    pub(crate) makes_room: bool,
    /// Suspend the turn as soon as everything in it waits for a client.
    pub(crate) suspends_when_pending: bool,
    /// Hooks that run now.
    pub(crate) hooks: Vec<RunningHooks>,
    /// Number of hook runs so far, for their ids.
    pub(crate) hook_runs: u32,
    /// How often hooks continued the turn.
    pub(crate) continuations: u32,
    /// Hooks accepted the end of the turn since the last request.
    pub(crate) may_end: bool,
    /// Started for the thread's goal, without a user message.
    pub(crate) is_for_goal: bool,
    /// A client stopped it, so the thread's goal pauses.
    pub(crate) pauses_goal: bool,
    /// The subject of a review, for clients.
    pub(crate) review_hint: String,
    /// Consecutive refusals of the automatic reviewer.
    pub(crate) refusals: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum TurnPhase {
    Sampling(Box<Sampling>),
    Compacting(Box<Compacting>),
    /// Waits for the next attempt.
    BackingOff(Box<Retry>),
    /// Waits for the next request's step.
    AwaitingStep,
}

#[derive(Debug, Clone)]
pub(crate) enum Retry {
    /// Sends the same bytes again.
    Sampling(Box<Sampling>),
    /// Calls have run meanwhile, so the history has new items.
    NewRequest,
    Compacting(Box<Compacting>),
}

impl TurnMachine {
    pub(crate) fn new(work: &Transition<'_>, id: TurnId, kind: TurnKind, step: Arc<Step>) -> Self {
        Self {
            id,
            kind,
            began_ms: work.stamp.now_ms,
            step,
            output_schema: None,
            phase: TurnPhase::AwaitingStep,
            queued: VecDeque::new(),
            earlier: EarlierOperations::default(),
            seen_calls: HashSet::new(),
            shells: Vec::new(),
            nested: Vec::new(),
            pending_messages: Vec::new(),
            needs_request: false,
            grants: NOTHING,
            diff: None,
            retries: 0,
            segments: 0,
            summaries: 0,
            turn_state: None,
            rerouted: false,
            makes_room: false,
            suspends_when_pending: false,
            hooks: Vec::new(),
            hook_runs: 0,
            continuations: 0,
            may_end: false,
            is_for_goal: false,
            pauses_goal: false,
            review_hint: String::new(),
            refusals: 0,
        }
    }

    pub(crate) fn start(
        work: &mut Transition<'_>,
        id: TurnId,
        text: UserText,
        output_schema: Option<Value>,
        step: Arc<Step>,
    ) -> Option<Self> {
        let mut turn = Self { output_schema, ..Self::new(work, id, TurnKind::Regular, step) };
        let mut said = Said::new(work, text);
        let needs_room = turn.is_full(work);
        turn.record_start(work);
        if turn.step.hooks.prompt {
            turn.check_first_prompt(work, said);
            return Some(turn);
        }
        said.record(work, &turn.id);
        if needs_room {
            turn.notify_started(work);
            turn.queued.push_back(said);
            turn.begin_compaction(work, AfterCompaction::Continue { keep_context: false });
            return Some(turn);
        }
        if turn.step.is_preliminary {
            turn.notify_started(work);
            turn.queued.push_back(said);
            turn.await_step(work);
            return Some(turn);
        }
        work.inject_context(&turn.id, &turn.step);
        said.messages().into_iter().for_each(|message| work.remember(&turn.id, message));
        turn.notify_started(work);
        turn.notify_said(work, &said);
        turn.request(work);
        Some(turn)
    }

    pub(crate) fn compact(work: &mut Transition<'_>, id: TurnId, step: Arc<Step>) -> Option<Self> {
        let mut turn = Self::new(work, id, TurnKind::Compact, step);
        turn.record_start(work);
        turn.notify_started(work);
        turn.begin_compaction(work, AfterCompaction::Finish);
        Some(turn)
    }

    /// `None` when the turn ended.
    pub(crate) fn on(mut self, work: &mut Transition<'_>, input: Input) -> Option<Self> {
        match input {
            Input::Model { attempt, event } => return self.on_model(work, attempt, event),
            Input::Interrupt => return self.interrupt(work),
            Input::MakeWay => return self.make_way(work),
            // The reviewer's history exists only in memory, so the review cannot be resumed.
            Input::Close { .. } | Input::Suspend { .. } if self.kind == TurnKind::Review => {
                return self.cut_off(work);
            }
            Input::Close { waits_for_host } => {
                if !self.waits_for_first_prompt()
                    && (self.is_pending() || (waits_for_host && self.kind == TurnKind::Regular))
                {
                    self.suspend(work);
                    return None;
                }
                return self.cut_off(work);
            }
            Input::Suspend { when_pending: true } => self.suspends_when_pending = true,
            Input::Suspend { when_pending: false } if self.waits_for_first_prompt() => {
                return self.cut_off(work);
            }
            Input::Suspend { when_pending: false } => {
                self.suspend(work);
                return None;
            }
            Input::StorageFailed(failure) => return self.fail_storage(work, *failure),
            Input::Steer(text) => self.queue(work, text),
            Input::ToolProgress { call_id, notification } => self.on_progress(work, &call_id, *notification),
            Input::ToolFinished { call_id, outcome } => {
                if self.shells.iter().any(|shell| shell.call.call_id == call_id) {
                    return self.on_shell_finished(work, &call_id, outcome);
                }
                self.stop_nested(work, Some(&call_id), StoppedBy::User);
                self.on_tool_finished(work, &call_id, outcome);
                self.answer_nested(work);
                return self.advance(work);
            }
            Input::NestedCall { turn_id, parent, call, began_in } if turn_id == self.id => {
                self.on_nested_call(work, &parent, call, &began_in);
            }
            // The tool that made the call belongs to an ended turn.
            Input::NestedCall { .. } => {}
            Input::HooksFinished { id, verdict } => return self.on_hooks_finished(work, &id, verdict),
            Input::Proposed { turn_id, call_id, proposal } if turn_id == self.id => {
                return self.on_proposed(work, &call_id, *proposal);
            }
            Input::Proposed { turn_id, call_id, proposal } => {
                refuse_late(work, &turn_id, call_id, *proposal);
            }
            Input::Answered { call_id, reply } => return self.on_answered(work, &call_id, *reply),
            Input::UserShell { call_id, command, .. } => self.begin_shell(work, call_id, command),
            Input::DynamicToolAnswered { call_id, answer } => {
                self.on_dynamic_answer(work, &call_id, answer);
                self.answer_nested(work);
                return self.advance(work);
            }
            Input::DeadlinePassed { attempt } => self.on_deadline(work, attempt),
            Input::StepCaptured(step) => self.next_request(work, step),
            Input::Woken => self.wake(work),
            // Refused or handled earlier.
            Input::Start { .. }
            | Input::Resume { .. }
            | Input::Compact { .. }
            | Input::Review { .. }
            | Input::SetGoal { .. }
            | Input::ClearGoal
            | Input::PursueGoal { .. }
            | Input::Rollback { .. }
            | Input::ReadBack { .. }
            | Input::ItemEnded { .. }
            | Input::ChildEnded(_)
            | Input::ItemNotification(_) => {}
        }
        Some(self)
    }

    pub(crate) fn record_start(&self, work: &mut Transition<'_>) {
        work.record(RolloutRecord::TurnStarted { turn_id: self.id.clone(), at_ms: self.began_ms });
    }

    pub(crate) fn notify_started(&self, work: &mut Transition<'_>) {
        work.set_status(|facts| {
            facts.running = true;
            facts.broken = false;
        });
        let (thread_id, turn) = (work.core.id.clone(), self.shown(TurnStatus::InProgress, None, None));
        work.emit(ServerNotification::TurnStarted(TurnStartedNotification { thread_id, turn }));
    }

    /// The turn as clients see it: without items, which have their own notifications.
    fn shown(&self, status: TurnStatus, error: Option<TurnError>, ended_ms: Option<i64>) -> protocol::Turn {
        protocol::Turn {
            id: self.id.clone(),
            items: vec![],
            status,
            error,
            started_at: Some(self.began_ms / 1_000),
            completed_at: ended_ms.map(|ms| ms / 1_000),
            duration_ms: ended_ms.map(|ms| ms - self.began_ms),
            plan: None,
        }
    }

    pub(crate) fn notify_said(&self, work: &mut Transition<'_>, said: &Said) {
        for item in said.items() {
            work.item_started(&self.id, item.clone());
            work.notify_completed(&self.id, item);
        }
    }

    fn queue(&mut self, work: &mut Transition<'_>, text: UserText) {
        let said = Said::new(work, text);
        if self.step.hooks.prompt {
            return self.check_later_prompt(work, said);
        }
        said.record(work, &self.id);
        self.queued.push_back(said);
    }

    /// Adds a message about a child agent, which the model gets before the turn may end.
    pub(crate) fn queue_message(mut self, work: &mut Transition<'_>, news: ResponseItem) -> Option<Self> {
        self.pending_messages.push(news);
        self.needs_request = self.kind == TurnKind::Regular;
        // A turn whose model is done waits only for commands of the user.
        if self.needs_request && self.phase.is_done() { self.settle(work) } else { Some(self) }
    }

    /// Moves queued input into the history.
    pub(crate) fn drain_queue(&mut self, work: &mut Transition<'_>) {
        // Context for the thread's own model is not sent to a reviewer.
        if work.core.aside.is_none() {
            self.pending_messages.drain(..).for_each(|message| work.remember(&self.id, message));
            self.needs_request = false;
        }
        while let Some(mut said) = self.queued.pop_front() {
            said.messages().into_iter().for_each(|message| work.remember(&self.id, message));
            self.notify_said(work, &said);
        }
    }

    pub(crate) fn is_full(&self, work: &Transition<'_>) -> bool {
        self.step.model.compaction_limit().is_some_and(|limit| work.tokens_in_use() >= limit)
    }

    /// Requests a response to the current history.
    pub(crate) fn request(&mut self, work: &mut Transition<'_>) {
        work.core.attempts += 1;
        let attempt = work.core.attempts;
        let ask = RequestParts {
            thread_id: &work.core.id,
            turn_id: &self.id,
            step: &self.step,
            purpose: if self.kind == TurnKind::Review { Purpose::Review } else { Purpose::Turn },
            output_schema: self.output_schema.as_ref(),
            turn_state: self.turn_state.as_deref(),
            agent_path: &work.core.agent_path,
            segment: self.segments,
            attempt: 1,
        };
        self.segments += 1;
        self.may_end = false;
        let request = prepare(&ask, work.core.history.prompt());
        work.effects.push(Effect::RequestModel { attempt, request: request.clone() });
        self.phase = TurnPhase::Sampling(Box::new(Sampling::new(attempt, request)));
    }

    fn next_request(&mut self, work: &mut Transition<'_>, step: Arc<Step>) {
        if matches!(self.phase, TurnPhase::AwaitingStep) {
            self.step = step;
            work.inject_context(&self.id, &self.step);
            self.drain_queue(work);
            self.request(work);
        }
    }

    pub(crate) fn await_step(&mut self, work: &mut Transition<'_>) {
        self.phase = TurnPhase::AwaitingStep;
        work.effects.push(Effect::CaptureStep);
    }

    fn wake(&mut self, work: &mut Transition<'_>) {
        if matches!(self.phase, TurnPhase::AwaitingStep) {
            return self.await_step(work);
        }
        let TurnPhase::BackingOff(retry) = &mut self.phase else { return };
        match std::mem::replace(&mut **retry, Retry::NewRequest) {
            Retry::NewRequest => self.await_step(work),
            Retry::Sampling(previous) => {
                work.core.attempts += 1;
                let mut request = previous.request;
                request.metadata.attempt += 1;
                let sampling = Sampling::new(work.core.attempts, request);
                work.effects.push(Effect::RequestModel {
                    attempt: sampling.attempt,
                    request: sampling.request.clone(),
                });
                self.phase = TurnPhase::Sampling(Box::new(sampling));
            }
            Retry::Compacting(compacting) => self.request_summary(work, *compacting),
        }
    }

    /// Continues when the stream has ended and every call has its output.
    pub(crate) fn advance(mut self, work: &mut Transition<'_>) -> Option<Self> {
        let TurnPhase::Sampling(sampling) = &mut self.phase else { return Some(self) };
        if matches!(sampling.stream, StreamState::Open)
            || !sampling.calls_are_done()
            || !self.hooks.is_empty()
        {
            return Some(self);
        }
        let calls = std::mem::take(&mut sampling.calls);
        let stream = std::mem::replace(&mut sampling.stream, StreamState::Completed);
        let called = !calls.is_empty();
        let truncation = self.step.model.truncation;
        for call in calls {
            let output =
                call.output.clone().unwrap_or_else(|| call.stopped_after(work.stamp.now_ms, StoppedBy::User));
            work.remember(&self.id, call.answer(truncate_output(output, truncation)));
        }
        self.notify_diff(work);
        match stream {
            // The next request finds out whether the host is back.
            StreamState::Broken(failure) if failure.class == FailureClass::CarrierGone => {
                self.await_step(work);
                Some(self)
            }
            // A pause is no error: no notification, no delay.
            StreamState::Broken(failure)
                if failure.class == FailureClass::Paused && self.retries < MOST_PAUSES =>
            {
                self.retries += 1;
                self.await_step(work);
                Some(self)
            }
            StreamState::Broken(failure) => self.retry(work, failure, Retry::NewRequest),
            StreamState::Completed if !called && self.queued.is_empty() && !self.needs_request => {
                self.settle(work)
            }
            StreamState::Completed if self.is_full(work) => {
                self.begin_compaction(work, AfterCompaction::Continue { keep_context: true });
                Some(self)
            }
            StreamState::Completed | StreamState::Open => {
                self.await_step(work);
                Some(self)
            }
        }
    }

    /// Retries after a delay, or fails the turn.
    pub(crate) fn retry(
        mut self,
        work: &mut Transition<'_>,
        failure: ModelFailure,
        retry: Retry,
    ) -> Option<Self> {
        if failure.class == FailureClass::CarrierGone && self.kind == TurnKind::Regular {
            return self.wait_for_carrier(work, &retry);
        }
        if self.may_make_room(&failure, &retry) {
            self.makes_room = true;
            self.begin_compaction(work, AfterCompaction::Continue { keep_context: true });
            return Some(self);
        }
        let most = self.step.model.stream_max_retries;
        if !failure.is_retryable() || self.retries >= most {
            if let Retry::Compacting(compacting) = &retry {
                self.close_compaction(work, compacting);
            }
            if failure.class == FailureClass::ContextWindow {
                work.fill_window(&self.id, &self.step);
            }
            let error = TurnError {
                codex_error_info: Some(failure.codex_error_info()),
                message: failure.message,
                additional_details: failure.details,
            };
            return self.finish(work, TurnStatus::Failed, Some(error));
        }
        self.retries += 1;
        let n = self.retries;
        let http_status_code = failure.status_while_retrying();
        let error = TurnError {
            message: format!("Reconnecting... {n}/{most}"),
            codex_error_info: Some(CodexErrorInfo::ResponseStreamDisconnected { http_status_code }),
            additional_details: Some(failure.message.clone()),
        };
        self.notify_error(work, error, true);
        let pause = failure.retry_after_ms.map_or_else(|| backoff_ms(n, work.ids.jitter()), |ms| ms as i64);
        work.effects.push(Effect::Wake { at_ms: work.stamp.now_ms.saturating_add(pause) });
        self.phase = TurnPhase::BackingOff(Box::new(retry));
        Some(self)
    }

    /// Whether to compact and retry because the history does not fit. Once per answer of the provider: if the summary
    /// does not fit either, it would loop.
    fn may_make_room(&self, failure: &ModelFailure, retry: &Retry) -> bool {
        failure.class == FailureClass::ContextWindow
            && failure.is_retryable()
            && self.kind == TurnKind::Regular
            && !self.makes_room
            && !matches!(retry, Retry::Compacting(_))
    }

    fn notify_error(&self, work: &mut Transition<'_>, error: TurnError, will_retry: bool) {
        let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
        work.emit(ServerNotification::Error(ErrorNotification { error, will_retry, thread_id, turn_id }));
    }

    pub(crate) fn interrupt(mut self, work: &mut Transition<'_>) -> Option<Self> {
        self.pauses_goal = true;
        self.make_way(work)
    }

    fn make_way(mut self, work: &mut Transition<'_>) -> Option<Self> {
        self.stop_work(work, StoppedBy::User);
        self.drain_queue(work);
        work.remember(&self.id, turn_aborted());
        self.finish(work, TurnStatus::Interrupted, None)
    }

    fn cut_off(mut self, work: &mut Transition<'_>) -> Option<Self> {
        self.stop_work(work, StoppedBy::Departure);
        self.drain_queue(work);
        work.remember(&self.id, turn_cut_off());
        self.finish(work, TurnStatus::Interrupted, None)
    }

    fn fail_storage(mut self, work: &mut Transition<'_>, failure: StorageFailure) -> Option<Self> {
        let StorageFailure { message, unseen, started_at_host } = failure;
        work.unseen = unseen;
        if let (TurnKind::Regular, Some(started)) = (self.kind, started_at_host) {
            work.started_at_host = Some(started);
            self.suspend(work);
            return None;
        }
        self.stop_work(work, StoppedBy::Record);
        let error = TurnError {
            message: format!("the thread's record could not be written: {message}"),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        };
        self.finish(work, TurnStatus::Failed, Some(error))
    }

    /// Stops the stream, the tools and the questions. Every started item gets an end.
    fn stop_work(&mut self, work: &mut Transition<'_>, by: StoppedBy) {
        self.stop_nested(work, None, by);
        self.stop_shells(work, by);
        self.stop_hooks(work);
        match std::mem::replace(&mut self.phase, TurnPhase::AwaitingStep) {
            TurnPhase::Sampling(mut sampling) => {
                if matches!(sampling.stream, StreamState::Open) {
                    work.effects.push(Effect::CancelModel { attempt: sampling.attempt });
                }
                self.close_active(work, &mut sampling);
                for call in std::mem::take(&mut sampling.calls) {
                    self.stop_call(work, &call, by);
                }
            }
            TurnPhase::Compacting(compacting) => {
                work.effects.push(Effect::CancelModel { attempt: compacting.attempt });
                self.close_compaction(work, &compacting);
            }
            TurnPhase::BackingOff(retry) => {
                if let Retry::Compacting(compacting) = *retry {
                    self.close_compaction(work, &compacting);
                }
            }
            TurnPhase::AwaitingStep => {}
        }
    }

    /// Ends a call that has no output yet.
    pub(crate) fn stop_running(&self, work: &mut Transition<'_>, call: &OpenCall, by: StoppedBy) {
        let call_id = call.call.call_id.clone();
        match call.runner {
            Runner::Tool => {
                work.effects.push(Effect::CancelTool { call_id });
                self.stop_proposal(work, call, by);
            }
            Runner::Client => {
                work.effects.push(Effect::WithdrawQuestion { call_id });
                self.close_dynamic_call(work, call);
            }
            Runner::Gate => self.stop_proposal(work, call, by),
            Runner::Nobody | Runner::Waiting => {}
        }
    }

    fn stop_call(&self, work: &mut Transition<'_>, call: &OpenCall, by: StoppedBy) {
        let output = match &call.output {
            Some(output) => output.clone(),
            None => {
                self.stop_running(work, call, by);
                call.stopped_after(work.stamp.now_ms, by)
            }
        };
        work.remember(&self.id, call.answer(truncate_output(output, self.step.model.truncation)));
    }

    pub(crate) fn finish(
        mut self,
        work: &mut Transition<'_>,
        status: TurnStatus,
        error: Option<TurnError>,
    ) -> Option<Self> {
        self.stop_work(work, StoppedBy::User);
        self.leave_review(work, status);
        // Input that came too late for the model is still part of the thread.
        self.drain_queue(work);
        self.settle_goal(work, status, error.as_ref());
        let now = work.stamp.now_ms;
        work.record(RolloutRecord::TurnEnded {
            turn_id: self.id.clone(),
            status,
            error: error.clone(),
            at_ms: now,
        });
        work.set_status(|facts| {
            facts.running = false;
            facts.waiting_approvals = 0;
            facts.waiting_answers = 0;
            facts.broken = error.is_some();
        });
        if let Some(error) = error.clone() {
            self.notify_error(work, error, false);
        }
        let (thread_id, turn) = (work.core.id.clone(), self.shown(status, error, Some(now)));
        let cost = work.core.turn_cost.take();
        work.emit(ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id, turn, cost }));
        work.effects.push(Effect::Finish(status));
        None
    }
}

/// 200 ms, doubled with each retry, with jitter.
fn backoff_ms(n: u32, jitter: f64) -> i64 {
    let base = 200.0 * f64::from(2u32.saturating_pow(n.saturating_sub(1).min(16)));
    (base * jitter) as i64
}

/// All warnings for the model are made here.
pub(crate) fn warning(text: &str) -> ResponseItem {
    alone(&RuntimeWarning(text))
}
