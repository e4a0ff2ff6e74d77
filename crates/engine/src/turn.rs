//! The turn: from input to an end, top to bottom. Streaming is in `turn_stream.rs`, compaction in `turn_compaction.rs`.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use model::{FailureClass, ModelFailure, Purpose};
use protocol::{
    CodexErrorInfo, ErrorNotification, GrantedPermissionProfile, ItemId, ResponseItem, RolloutRecord,
    ServerNotification, ThreadItem, TurnCompletedNotification, TurnError, TurnId, TurnStartedNotification,
    TurnStatus,
};
use serde_json::Value;

use crate::calls::{OpenCall, Runner, StoppedBy};
use crate::context::{SkillBody, Warning, alone, turn_aborted, turn_cut_off, user_message};
use crate::earlier::EarlierOperations;
use crate::grants::NOTHING;
use crate::input::UserText;
use crate::request::{Ask, prepare};
use crate::sampling::{Sampling, Stream};
use crate::truncate::truncate_output;
use crate::turn_compaction::{AfterCompaction, Compacting};
use crate::turn_proposals::refuse_late;
use crate::work::Work;
use crate::{Effect, Input, Step};

/// What a turn is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    Compact,
    /// The user's own command, and nothing for the model to do.
    Shell,
}

#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) id: TurnId,
    pub(crate) kind: Kind,
    pub(crate) began_ms: i64,
    pub(crate) step: Arc<Step>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) phase: Phase,
    /// Said by the user, in the record, not yet seen by the model.
    pub(crate) queued: VecDeque<Said>,
    /// What a restart left of the turn's operations.
    pub(crate) earlier: EarlierOperations,
    /// A call id runs once in a turn, however often the model repeats it.
    pub(crate) seen_calls: HashSet<String>,
    /// Commands of the user's own that run beside the model's work.
    pub(crate) shells: Vec<OpenCall>,
    /// What they gave, until the model can be told.
    pub(crate) untold: Vec<ResponseItem>,
    /// Some of it the model is asked to go on with.
    pub(crate) has_news: bool,
    /// What was granted for this turn.
    pub(crate) grants: GrantedPermissionProfile,
    /// What the turn has changed in files.
    pub(crate) diff: Option<String>,
    pub(crate) retries: u32,
    /// Requests so far, retries apart.
    pub(crate) segments: u32,
    /// Requests for a summary so far, retries apart.
    pub(crate) summaries: u32,
    pub(crate) turn_state: Option<String>,
    pub(crate) rerouted: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Phase {
    Sampling(Box<Sampling>),
    Compacting(Box<Compacting>),
    /// Before the next attempt.
    BackingOff(Box<Retry>),
    /// Before the next request.
    AwaitingStep,
}

#[derive(Debug, Clone)]
pub(crate) enum Retry {
    /// The same bytes again.
    Sampling(Box<Sampling>),
    /// Calls have run meanwhile, so the history has more to tell.
    NewRequest,
    Compacting(Box<Compacting>),
}

/// A message of the user's with its item id.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) id: ItemId,
    pub(crate) text: UserText,
    /// What the model is told right before it.
    pub(crate) beside: Vec<ResponseItem>,
}

impl Said {
    fn new(work: &mut Work<'_>, mut text: UserText) -> Self {
        let beside = work.core.additional.replace(std::mem::take(&mut text.additional));
        Self { id: work.ids.item(), text, beside }
    }

    /// What the model gets to see of it, in order.
    fn messages(&mut self) -> Vec<ResponseItem> {
        let mut messages = std::mem::take(&mut self.beside);
        messages.push(user_message(Some(&self.id), self.text.content.clone()));
        messages.extend(self.text.skills.iter().map(|skill| alone(&SkillBody(skill))));
        messages
    }

    pub(crate) fn item(&self) -> ThreadItem {
        ThreadItem::UserMessage { id: self.id.clone(), content: self.text.shown.clone() }
    }
}

impl Turn {
    pub(crate) fn new(work: &Work<'_>, id: TurnId, kind: Kind, step: Arc<Step>) -> Self {
        Self {
            id,
            kind,
            began_ms: work.stamp.now_ms,
            step,
            output_schema: None,
            phase: Phase::AwaitingStep,
            queued: VecDeque::new(),
            earlier: EarlierOperations::default(),
            seen_calls: HashSet::new(),
            shells: Vec::new(),
            untold: Vec::new(),
            has_news: false,
            grants: NOTHING,
            diff: None,
            retries: 0,
            segments: 0,
            summaries: 0,
            turn_state: None,
            rerouted: false,
        }
    }

    pub(crate) fn start(
        work: &mut Work<'_>,
        id: TurnId,
        text: UserText,
        output_schema: Option<Value>,
        step: Arc<Step>,
    ) -> Option<Self> {
        let mut turn = Self { output_schema, ..Self::new(work, id, Kind::Regular, step) };
        let mut said = Said::new(work, text);
        let needs_room = turn.is_full(work);
        turn.record_start(work);
        // In the record before anybody hears of the turn: an accepted prompt is never lost.
        work.record(RolloutRecord::ThreadItem { turn_id: turn.id.clone(), item: said.item() });
        if needs_room {
            turn.tell_start(work);
            turn.queued.push_back(said);
            turn.begin_compaction(work, AfterCompaction::Continue { keep_context: false });
            return Some(turn);
        }
        work.inject_context(&turn.id, &turn.step);
        said.messages().into_iter().for_each(|message| work.remember(&turn.id, message));
        turn.tell_start(work);
        turn.tell_said(work, &said);
        turn.request(work);
        Some(turn)
    }

    pub(crate) fn compact(work: &mut Work<'_>, id: TurnId, step: Arc<Step>) -> Option<Self> {
        let mut turn = Self::new(work, id, Kind::Compact, step);
        turn.record_start(work);
        turn.tell_start(work);
        turn.begin_compaction(work, AfterCompaction::Finish);
        Some(turn)
    }

    /// `None` when the turn is over.
    pub(crate) fn on(mut self, work: &mut Work<'_>, input: Input) -> Option<Self> {
        match input {
            Input::Model { attempt, event } => return self.on_model(work, attempt, event),
            Input::Interrupt => return self.interrupt(work),
            Input::CutOff => return self.cut_off(work),
            Input::StorageFailed { message } => return self.fail_storage(work, &message),
            Input::Steer(text) => self.queue(work, text),
            Input::ToolProgress { call_id, notification } => self.on_progress(work, &call_id, *notification),
            Input::ToolFinished { call_id, outcome } => {
                if self.shells.iter().any(|shell| shell.call.call_id == call_id) {
                    return self.on_shell_finished(work, &call_id, outcome);
                }
                self.on_tool_finished(work, &call_id, outcome);
                return self.advance(work);
            }
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
                return self.advance(work);
            }
            Input::StepCaptured(step) => self.next_request(work, step),
            Input::Woken => self.wake(work),
            // Refused, or handled, before they get here.
            Input::Start { .. }
            | Input::Resume { .. }
            | Input::Suspend
            | Input::Compact { .. }
            | Input::Rollback { .. }
            | Input::ReadBack { .. }
            | Input::ItemEnded { .. }
            | Input::ChildEnded(_)
            | Input::Told(_) => {}
        }
        Some(self)
    }

    pub(crate) fn record_start(&self, work: &mut Work<'_>) {
        work.record(RolloutRecord::TurnStarted { turn_id: self.id.clone(), at_ms: self.began_ms });
    }

    pub(crate) fn tell_start(&self, work: &mut Work<'_>) {
        work.set_status(|facts| {
            facts.running = true;
            facts.broken = false;
        });
        let (thread_id, turn) = (work.core.id.clone(), self.shown(TurnStatus::InProgress, None, None));
        work.emit(ServerNotification::TurnStarted(TurnStartedNotification { thread_id, turn }));
    }

    /// The turn as clients see it: always without its items, which have their own notifications.
    fn shown(&self, status: TurnStatus, error: Option<TurnError>, ended_ms: Option<i64>) -> protocol::Turn {
        protocol::Turn {
            id: self.id.clone(),
            items: vec![],
            status,
            error,
            started_at: Some(self.began_ms / 1_000),
            completed_at: ended_ms.map(|ms| ms / 1_000),
            duration_ms: ended_ms.map(|ms| ms - self.began_ms),
        }
    }

    fn tell_said(&self, work: &mut Work<'_>, said: &Said) {
        work.item_started(&self.id, said.item());
        work.tell_completed(&self.id, said.item());
    }

    fn queue(&mut self, work: &mut Work<'_>, text: UserText) {
        let said = Said::new(work, text);
        work.record(RolloutRecord::ThreadItem { turn_id: self.id.clone(), item: said.item() });
        self.queued.push_back(said);
    }

    /// Something of its children that the model is told before it may end the turn.
    pub(crate) fn hear(mut self, work: &mut Work<'_>, news: ResponseItem) -> Option<Self> {
        self.untold.push(news);
        self.has_news = self.kind == Kind::Regular;
        // One whose model is done waits for commands of the user's alone.
        if self.has_news && self.phase.is_done() { self.settle(work) } else { Some(self) }
    }

    /// What was said meanwhile becomes part of the history.
    pub(crate) fn drain_queue(&mut self, work: &mut Work<'_>) {
        self.untold.drain(..).for_each(|message| work.remember(&self.id, message));
        self.has_news = false;
        while let Some(mut said) = self.queued.pop_front() {
            said.messages().into_iter().for_each(|message| work.remember(&self.id, message));
            self.tell_said(work, &said);
        }
    }

    pub(crate) fn is_full(&self, work: &Work<'_>) -> bool {
        self.step.model.compaction_limit().is_some_and(|limit| work.tokens_in_use() >= limit)
    }

    /// Sends the history as it is now.
    pub(crate) fn request(&mut self, work: &mut Work<'_>) {
        work.core.attempts += 1;
        let attempt = work.core.attempts;
        let ask = Ask {
            thread_id: &work.core.id,
            turn_id: &self.id,
            step: &self.step,
            purpose: Purpose::Turn,
            output_schema: self.output_schema.as_ref(),
            turn_state: self.turn_state.as_deref(),
            agent_path: &work.core.agent_path,
            segment: self.segments,
            attempt: 1,
        };
        self.segments += 1;
        let request = prepare(&ask, work.core.history.prompt());
        work.effects.push(Effect::RequestModel { attempt, request: request.clone() });
        self.phase = Phase::Sampling(Box::new(Sampling::new(attempt, request)));
    }

    fn next_request(&mut self, work: &mut Work<'_>, step: Arc<Step>) {
        if matches!(self.phase, Phase::AwaitingStep) {
            self.step = step;
            work.inject_context(&self.id, &self.step);
            self.drain_queue(work);
            self.request(work);
        }
    }

    pub(crate) fn await_step(&mut self, work: &mut Work<'_>) {
        self.phase = Phase::AwaitingStep;
        work.effects.push(Effect::CaptureStep);
    }

    fn wake(&mut self, work: &mut Work<'_>) {
        let Phase::BackingOff(retry) = &mut self.phase else { return };
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
                self.phase = Phase::Sampling(Box::new(sampling));
            }
            Retry::Compacting(compacting) => self.request_summary(work, *compacting),
        }
    }

    /// Goes on when the stream has ended and every call has its output.
    pub(crate) fn advance(mut self, work: &mut Work<'_>) -> Option<Self> {
        let Phase::Sampling(sampling) = &mut self.phase else { return Some(self) };
        if matches!(sampling.stream, Stream::Open) || !sampling.calls_are_done() {
            return Some(self);
        }
        let calls = std::mem::take(&mut sampling.calls);
        let stream = std::mem::replace(&mut sampling.stream, Stream::Completed);
        let called = !calls.is_empty();
        let truncation = self.step.model.truncation;
        for call in calls {
            let output =
                call.output.clone().unwrap_or_else(|| call.stopped_after(work.stamp.now_ms, StoppedBy::User));
            work.remember(&self.id, call.answer(truncate_output(output, truncation)));
        }
        self.tell_diff(work);
        match stream {
            // The next request finds out whether somebody is there to carry it.
            Stream::Broken(failure) if failure.class == FailureClass::CarrierGone => {
                self.await_step(work);
                Some(self)
            }
            Stream::Broken(failure) => self.retry(work, failure, Retry::NewRequest),
            Stream::Completed if !called && self.queued.is_empty() && !self.has_news => self.settle(work),
            Stream::Completed if self.is_full(work) => {
                self.begin_compaction(work, AfterCompaction::Continue { keep_context: true });
                Some(self)
            }
            Stream::Completed | Stream::Open => {
                self.await_step(work);
                Some(self)
            }
        }
    }

    /// Tries again after a while, or gives up.
    pub(crate) fn retry(mut self, work: &mut Work<'_>, failure: ModelFailure, retry: Retry) -> Option<Self> {
        if failure.class == FailureClass::CarrierGone && self.kind == Kind::Regular {
            return self.wait_for_carrier(work, &retry);
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
                additional_details: None,
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
        self.tell_error(work, error, true);
        let pause = failure.retry_after_ms.map_or_else(|| backoff_ms(n, work.ids.jitter()), |ms| ms as i64);
        work.effects.push(Effect::Wake { at_ms: work.stamp.now_ms.saturating_add(pause) });
        self.phase = Phase::BackingOff(Box::new(retry));
        Some(self)
    }

    fn tell_error(&self, work: &mut Work<'_>, error: TurnError, will_retry: bool) {
        let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
        work.emit(ServerNotification::Error(ErrorNotification { error, will_retry, thread_id, turn_id }));
    }

    pub(crate) fn interrupt(mut self, work: &mut Work<'_>) -> Option<Self> {
        self.stop_work(work, StoppedBy::User);
        self.drain_queue(work);
        work.remember(&self.id, turn_aborted());
        self.finish(work, TurnStatus::Interrupted, None)
    }

    fn cut_off(mut self, work: &mut Work<'_>) -> Option<Self> {
        self.stop_work(work, StoppedBy::Departure);
        self.drain_queue(work);
        work.remember(&self.id, turn_cut_off());
        self.finish(work, TurnStatus::Interrupted, None)
    }

    fn fail_storage(mut self, work: &mut Work<'_>, message: &str) -> Option<Self> {
        self.stop_work(work, StoppedBy::Record);
        let error = TurnError {
            message: format!("the thread's record could not be written: {message}"),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        };
        self.finish(work, TurnStatus::Failed, Some(error))
    }

    /// Ends what runs: the stream, the tools, the questions. What clients saw begin they see end.
    fn stop_work(&mut self, work: &mut Work<'_>, by: StoppedBy) {
        self.stop_shells(work, by);
        match std::mem::replace(&mut self.phase, Phase::AwaitingStep) {
            Phase::Sampling(mut sampling) => {
                if matches!(sampling.stream, Stream::Open) {
                    work.effects.push(Effect::CancelModel { attempt: sampling.attempt });
                }
                self.close_active(work, &mut sampling);
                for call in std::mem::take(&mut sampling.calls) {
                    self.stop_call(work, &call, by);
                }
            }
            Phase::Compacting(compacting) => {
                work.effects.push(Effect::CancelModel { attempt: compacting.attempt });
                self.close_compaction(work, &compacting);
            }
            Phase::BackingOff(retry) => {
                if let Retry::Compacting(compacting) = *retry {
                    self.close_compaction(work, &compacting);
                }
            }
            Phase::AwaitingStep => {}
        }
    }

    fn stop_call(&self, work: &mut Work<'_>, call: &OpenCall, by: StoppedBy) {
        let call_id = call.call.call_id.clone();
        let output = match &call.output {
            Some(output) => output.clone(),
            None => {
                match call.runner {
                    Runner::Tool => {
                        work.effects.push(Effect::CancelTool { call_id });
                        self.stop_doing(work, call, by);
                    }
                    Runner::Client => {
                        work.effects.push(Effect::WithdrawQuestion { call_id });
                        self.close_dynamic_call(work, call);
                    }
                    Runner::Gate => self.stop_doing(work, call, by),
                    Runner::Nobody | Runner::Waiting => {}
                }
                call.stopped_after(work.stamp.now_ms, by)
            }
        };
        work.remember(&self.id, call.answer(truncate_output(output, self.step.model.truncation)));
    }

    pub(crate) fn finish(
        mut self,
        work: &mut Work<'_>,
        status: TurnStatus,
        error: Option<TurnError>,
    ) -> Option<Self> {
        self.stop_work(work, StoppedBy::User);
        // Input that came too late for the model is still part of the thread.
        self.drain_queue(work);
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
            self.tell_error(work, error, false);
        }
        let (thread_id, turn) = (work.core.id.clone(), self.shown(status, error, Some(now)));
        work.emit(ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id, turn }));
        work.effects.push(Effect::Finish(status));
        None
    }
}

/// 200 ms, doubled with each try, a little different each time.
fn backoff_ms(n: u32, jitter: f64) -> i64 {
    let base = 200.0 * f64::from(2u32.saturating_pow(n.saturating_sub(1).min(16)));
    (base * jitter) as i64
}

/// Kept here so that the model's own warnings are made in one place.
pub(crate) fn warning(text: &str) -> ResponseItem {
    alone(&Warning(text))
}
