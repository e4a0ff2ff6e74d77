//! Applies the events of a model stream to a turn.

use model::{FailureClass, ModelFailure, ResponseHead, StreamEvent};
use protocol::{
    AgentMessageDeltaNotification, ItemId, ModelRerouteReason, ModelReroutedNotification,
    PlanDeltaNotification, ReasoningSummaryPartAddedNotification, ReasoningSummaryTextDeltaNotification,
    ReasoningTextDeltaNotification, ResponseItem, ServerNotification, ThreadItem,
};

use crate::calls::call_in;
use crate::citation::CitationFilter;
use crate::context::{SavedImage, alone};
use crate::items::{announced, begun, saved_at, shown};
use crate::plan_text::{self, PlanPiece};
use crate::turn::sampling::{Active, ActiveMessage, ActivePlan, Sampling, StreamState, append_at};
use crate::turn::work::Transition;
use crate::turn::{Retry, TurnKind, TurnMachine, TurnPhase, warning};

impl TurnMachine {
    pub(crate) fn on_model(
        mut self,
        work: &mut Transition<'_>,
        attempt: u64,
        mut event: Result<StreamEvent, ModelFailure>,
    ) -> Option<Self> {
        if let (true, Err(failure)) = (self.listens_to(attempt), &mut event) {
            if let Some(spent) = failure.spent.take() {
                work.spend_tokens(&self.id, &self.step, spent);
            }
            if let Some(limits) = failure.rate_limits.take() {
                work.learn_limits(limits);
                work.notify_usage(&self.id);
            }
        }
        if self.assessed_call(attempt).is_some() {
            return self.on_assessment(work, attempt, event);
        }
        if matches!(&self.phase, TurnPhase::Compacting(compacting) if compacting.attempt == attempt) {
            return self.on_summary(work, event);
        }
        // Events of a cancelled attempt are ignored.
        let Some(mut sampling) = self.take_stream(attempt) else { return Some(self) };
        let failure = match event {
            Ok(StreamEvent::Failed(failure)) | Err(failure) => failure,
            Ok(event) => {
                self.on_event(work, &mut sampling, event);
                self.phase = TurnPhase::Sampling(sampling);
                return self.advance(work);
            }
        };
        self.close_active(work, &mut sampling);
        self.drop_held(&mut sampling);
        if sampling.calls.is_empty() && failure.class != FailureClass::Paused {
            return self.retry(work, failure, Retry::Sampling(sampling));
        }
        // Calls that have started stay: their outputs go into the history before the retry.
        sampling.stream = StreamState::Broken(failure);
        self.phase = TurnPhase::Sampling(sampling);
        self.advance(work)
    }

    /// Whether events of this attempt count.
    fn listens_to(&self, attempt: u64) -> bool {
        match &self.phase {
            TurnPhase::Compacting(compacting) => compacting.attempt == attempt,
            TurnPhase::Sampling(sampling) => {
                sampling.attempt == attempt && matches!(sampling.stream, StreamState::Open)
            }
            TurnPhase::BackingOff(_) | TurnPhase::AwaitingStep => false,
        }
    }

    fn take_stream(&mut self, attempt: u64) -> Option<Box<Sampling>> {
        match &self.phase {
            TurnPhase::Sampling(sampling)
                if sampling.attempt == attempt && matches!(sampling.stream, StreamState::Open) => {}
            _ => return None,
        }
        match std::mem::replace(&mut self.phase, TurnPhase::AwaitingStep) {
            TurnPhase::Sampling(sampling) => Some(sampling),
            other => {
                self.phase = other;
                None
            }
        }
    }

    fn on_event(&mut self, work: &mut Transition<'_>, sampling: &mut Sampling, event: StreamEvent) {
        match event {
            StreamEvent::Opened(opened) => self.on_opened(work, opened),
            StreamEvent::ServedBy(model) => self.on_served_by(work, &model),
            StreamEvent::RateLimits(limits) => {
                work.learn_limits(limits);
                work.notify_usage(&self.id);
            }
            StreamEvent::ImageSaved { path } => sampling.saved_image = Some(path),
            StreamEvent::ItemAdded(item) => self.on_added(work, sampling, &item),
            StreamEvent::ItemDone(item) => self.on_done(work, sampling, *item),
            StreamEvent::TextDelta { delta } => self.on_text(work, sampling, delta),
            StreamEvent::ReasoningSummaryPartAdded { summary_index } => {
                if let Some(Active::Reasoning { id, .. }) = &sampling.active {
                    work.emit(ServerNotification::ReasoningSummaryPartAdded(
                        ReasoningSummaryPartAddedNotification {
                            thread_id: work.core.id.clone(),
                            turn_id: self.id.clone(),
                            item_id: id.clone(),
                            summary_index,
                        },
                    ));
                }
            }
            StreamEvent::ReasoningSummaryDelta { summary_index, delta } => {
                if let Some(Active::Reasoning { id, summary, .. }) = &mut sampling.active {
                    append_at(summary, summary_index, &delta);
                    work.emit(ServerNotification::ReasoningSummaryTextDelta(
                        ReasoningSummaryTextDeltaNotification {
                            thread_id: work.core.id.clone(),
                            turn_id: self.id.clone(),
                            item_id: id.clone(),
                            delta,
                            summary_index,
                        },
                    ));
                }
            }
            StreamEvent::ReasoningTextDelta { content_index, delta } => {
                if let Some(Active::Reasoning { id, content, .. }) = &mut sampling.active {
                    append_at(content, content_index, &delta);
                    work.emit(ServerNotification::ReasoningTextDelta(ReasoningTextDeltaNotification {
                        thread_id: work.core.id.clone(),
                        turn_id: self.id.clone(),
                        item_id: id.clone(),
                        delta,
                        content_index,
                    }));
                }
            }
            StreamEvent::Completed { usage, .. } => {
                self.makes_room = false;
                self.close_active(work, sampling);
                sampling.stream = StreamState::Completed;
                self.retries = 0;
                self.charge_goal(work, usage.as_ref());
                work.count_tokens(&self.id, &self.step, usage);
                self.commit_held(work, sampling);
            }
            StreamEvent::Failed(_) => {}
        }
    }

    pub(crate) fn on_opened(&mut self, work: &mut Transition<'_>, opened: ResponseHead) {
        if opened.turn_state.is_some() {
            self.turn_state = opened.turn_state;
        }
        if let Some(limits) = opened.rate_limits {
            work.learn_limits(limits);
            work.notify_usage(&self.id);
        }
        if let Some(model) = opened.served_by {
            self.on_served_by(work, &model);
        }
    }

    /// Warns once per turn if another model answers than requested.
    fn on_served_by(&mut self, work: &mut Transition<'_>, model: &str) {
        let asked = self.step.model.slug.clone();
        if self.rerouted || model.eq_ignore_ascii_case(&asked) {
            return;
        }
        self.rerouted = true;
        work.emit(ServerNotification::ModelRerouted(ModelReroutedNotification {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            from_model: asked.clone(),
            to_model: model.to_owned(),
            reason: ModelRerouteReason::HighRiskCyberActivity,
        }));
        work.remember(&self.id, warning(&format!("the provider answers with {model} instead of {asked}.")));
    }

    fn on_added(&mut self, work: &mut Transition<'_>, sampling: &mut Sampling, item: &ResponseItem) {
        self.close_active(work, sampling);
        let Some(item) = shown(item, || work.ids.item()) else { return };
        let active = match begun(&item) {
            ThreadItem::AgentMessage { id, phase, .. } => {
                let plan = self.in_plan_mode().then(ActivePlan::default);
                // In plan mode a message starts with its first word: the plan may be all there is. A reviewer's message
                // is shown as text when it is done.
                let started = plan.is_none() && self.kind != TurnKind::Review;
                let citations = CitationFilter::default();
                Active::Message(ActiveMessage { id, phase, text: String::new(), started, citations, plan })
            }
            ThreadItem::Reasoning { id, .. } => Active::Reasoning { id, summary: vec![], content: vec![] },
            other => Active::Other(other),
        };
        if let Some(item) = active.clone().so_far() {
            work.item_started(&self.id, item);
        }
        sampling.active = Some(active);
    }

    fn in_plan_mode(&self) -> bool {
        let mode = self.step.collaboration_mode.as_ref().filter(|_| self.kind != TurnKind::Review);
        mode.is_some_and(|mode| mode.mode == protocol::ModeKind::Plan)
    }

    /// Deltas outside an item are ignored.
    fn on_text(&mut self, work: &mut Transition<'_>, sampling: &mut Sampling, delta: String) {
        let Some(Active::Message(message)) = &mut sampling.active else { return };
        let is_empty = delta.is_empty();
        let delta = message.citations.push(delta);
        if is_empty || !delta.is_empty() {
            self.on_shown_text(work, message, delta);
        }
    }

    fn on_shown_text(&self, work: &mut Transition<'_>, message: &mut ActiveMessage, delta: String) {
        match &mut message.plan {
            None => self.message_delta(work, message, delta),
            Some(plan) => {
                let pieces = plan.splitter.push(&delta);
                self.on_pieces(work, message, pieces);
            }
        }
    }

    /// Shows text that was held back because it might have started a tag.
    fn flush_text(&self, work: &mut Transition<'_>, message: &mut ActiveMessage) {
        let rest = message.citations.finish();
        if !rest.is_empty() {
            self.on_shown_text(work, message, rest);
        }
    }

    fn on_pieces(&self, work: &mut Transition<'_>, message: &mut ActiveMessage, pieces: Vec<PlanPiece>) {
        for piece in pieces {
            match piece {
                PlanPiece::Message(text) => self.held_message_delta(work, message, text),
                PlanPiece::Opened => self.open_plan(work, message),
                PlanPiece::Plan(text) => self.plan_delta(work, message, text),
            }
        }
    }

    fn held_message_delta(&self, work: &mut Transition<'_>, message: &mut ActiveMessage, text: String) {
        let Some(plan) = &mut message.plan else { return };
        if !message.started {
            plan.blank.push_str(&text);
            if plan.blank.trim().is_empty() {
                return;
            }
            let text = std::mem::take(&mut plan.blank);
            message.started = true;
            work.item_started(&self.id, agent_message(message, String::new()));
            return self.message_delta(work, message, text);
        }
        self.message_delta(work, message, text);
    }

    fn message_delta(&self, work: &mut Transition<'_>, message: &mut ActiveMessage, delta: String) {
        message.text.push_str(&delta);
        if !message.started {
            return;
        }
        work.emit(ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            item_id: message.id.clone(),
            delta,
        }));
    }

    fn plan_id(&self) -> ItemId {
        ItemId::new(format!("{}-plan", self.id))
    }

    /// The last plan of a message counts.
    fn open_plan(&self, work: &mut Transition<'_>, message: &mut ActiveMessage) {
        let Some(plan) = &mut message.plan else { return };
        plan.text.clear();
        if !plan.started {
            plan.started = true;
            work.item_started(&self.id, ThreadItem::Plan { id: self.plan_id(), text: String::new() });
        }
    }

    fn plan_delta(&self, work: &mut Transition<'_>, message: &mut ActiveMessage, delta: String) {
        let Some(plan) = &mut message.plan else { return };
        plan.text.push_str(&delta);
        work.emit(ServerNotification::PlanDelta(PlanDeltaNotification {
            thread_id: work.core.id.clone(),
            turn_id: self.id.clone(),
            item_id: self.plan_id(),
            delta,
        }));
    }

    fn on_done(&mut self, work: &mut Transition<'_>, sampling: &mut Sampling, item: ResponseItem) {
        if let Some(call) = call_in(&item) {
            self.close_active(work, sampling);
            // A repeated call is neither run nor stored: the first output answers both.
            if self.seen_calls.insert(call.call_id.clone()) {
                self.keep(work, sampling, item);
                if !work.core.calls_wait {
                    self.begin_call(work, sampling, call);
                }
            }
            return;
        }
        let active = sampling.active.take();
        // An item that ends under another id than it started with counts as two items.
        let begun_id = active.as_ref().map(|active| active.id().clone());
        let saved = sampling.saved_image.take();
        let done = shown(&item, || begun_id.clone().unwrap_or_else(|| work.ids.item()));
        let done = done.map(|done| saved_at(done, saved.as_deref()));
        let same = matches!((&done, &begun_id), (Some(done), Some(id)) if done.id() == id);
        let active = if same {
            active.map(|mut active| {
                if let Active::Message(message) = &mut active {
                    self.flush_text(work, message);
                }
                active
            })
        } else {
            sampling.active = active;
            self.close_active(work, sampling);
            None
        };
        self.keep(work, sampling, item);
        if let Some(ThreadItem::ImageGeneration { saved_path: Some(path), .. }) = &done {
            self.keep(work, sampling, alone(&SavedImage(path)));
        }
        match done {
            Some(message @ ThreadItem::AgentMessage { .. }) if self.in_plan_mode() => {
                self.finish_planned_message(work, active, message);
            }
            Some(ThreadItem::AgentMessage { .. }) if self.kind == TurnKind::Review => {}
            Some(done) => {
                if active.is_none() {
                    work.item_started(&self.id, announced(&done));
                }
                work.item_completed(&self.id, done);
            }
            None => {}
        }
    }

    /// Adds the item to the history, now or when the response is complete.
    fn keep(&self, work: &mut Transition<'_>, sampling: &mut Sampling, item: ResponseItem) {
        match work.core.calls_wait {
            true => sampling.held.push(item),
            false => work.remember(&self.id, item),
        }
    }

    /// The response is complete: adds the held items to the history and starts their calls.
    fn commit_held(&self, work: &mut Transition<'_>, sampling: &mut Sampling) {
        let held = std::mem::take(&mut sampling.held);
        let calls: Vec<_> = held.iter().filter_map(call_in).collect();
        held.into_iter().for_each(|item| work.remember(&self.id, item));
        calls.into_iter().for_each(|call| self.begin_call(work, sampling, call));
    }

    /// The response broke off: drops the held items. Their calls may come again.
    fn drop_held(&mut self, sampling: &mut Sampling) {
        for call in std::mem::take(&mut sampling.held).iter().filter_map(call_in) {
            self.seen_calls.remove(&call.call_id);
        }
    }

    fn finish_planned_message(&self, work: &mut Transition<'_>, active: Option<Active>, message: ThreadItem) {
        let ThreadItem::AgentMessage { id, text, phase, memory_citation } = message else { return };
        let (text, plan_text) = plan_text::split(&text);
        let (mut message_started, mut plan_started) = (false, false);
        if let Some(Active::Message(mut message)) = active {
            let rest = message.plan.as_mut().map(|plan| plan.splitter.finish()).unwrap_or_default();
            self.on_pieces(work, &mut message, rest);
            message_started = message.started;
            plan_started = message.plan.as_ref().is_some_and(|plan| plan.started);
        }
        if plan_started || plan_text.is_some() {
            let plan = |text| ThreadItem::Plan { id: self.plan_id(), text };
            if !plan_started {
                work.item_started(&self.id, plan(String::new()));
            }
            work.item_completed(&self.id, plan(plan_text.unwrap_or_default()));
        }
        if message_started || !text.trim().is_empty() {
            let message = |text, memory_citation| ThreadItem::AgentMessage {
                id: id.clone(),
                text,
                phase,
                memory_citation,
            };
            if !message_started {
                work.item_started(&self.id, message(String::new(), None));
            }
            work.item_completed(&self.id, message(text, memory_citation));
        }
    }

    /// Ends an item that the stream left open, with its content so far.
    pub(crate) fn close_active(&self, work: &mut Transition<'_>, sampling: &mut Sampling) {
        let Some(mut active) = sampling.active.take() else { return };
        if let Active::Message(message) = &mut active {
            self.flush_text(work, message);
        }
        if let Active::Message(ActiveMessage { plan: Some(plan), .. }) = &active
            && plan.started
        {
            work.item_completed(&self.id, ThreadItem::Plan { id: self.plan_id(), text: plan.text.clone() });
        }
        if let Some(item) = active.so_far() {
            work.item_completed(&self.id, item);
        }
    }
}

fn agent_message(message: &ActiveMessage, text: String) -> ThreadItem {
    ThreadItem::AgentMessage { id: message.id.clone(), text, phase: message.phase, memory_citation: None }
}
