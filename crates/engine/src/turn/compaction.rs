//! Replaces a long history by a summary.

use std::sync::Arc;

use model::{FailureClass, ModelFailure, Purpose, StreamEvent};
use protocol::{
    ContextCompactedNotification, ItemId, ResponseItem, RolloutRecord, ServerNotification, ThreadItem,
    TurnStatus,
};

use crate::Effect;
use crate::compaction::{compacted, question};
use crate::context::{self, Baseline};
use crate::items::text_of;
use crate::request::{RequestParts, prepare};
use crate::turn::work::Transition;
use crate::turn::{Retry, TurnMachine, TurnPhase};

#[derive(Debug, Clone)]
pub(crate) struct Compacting {
    pub(crate) attempt: u64,
    segment: u32,
    tries: u32,
    item_id: ItemId,
    input: Vec<Arc<ResponseItem>>,
    summary: String,
    then: AfterCompaction,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum AfterCompaction {
    /// The compaction was the whole turn.
    Finish,
    /// The turn continues with the shorter history. Within a turn the context is restored at once, so that the summary
    /// stays last; before the first request it is sent in full anyway.
    Continue { keep_context: bool },
}

impl TurnMachine {
    pub(crate) fn begin_compaction(&mut self, work: &mut Transition<'_>, then: AfterCompaction) {
        let item_id = work.ids.item();
        work.item_started(&self.id, ThreadItem::ContextCompaction { id: item_id.clone() });
        let input = work.core.history.prompt();
        let (segment, summary) = (self.summaries, String::new());
        self.summaries += 1;
        self.request_summary(
            work,
            Compacting { attempt: 0, segment, tries: 0, item_id, input, summary, then },
        );
    }

    pub(crate) fn request_summary(&mut self, work: &mut Transition<'_>, mut compacting: Compacting) {
        work.core.attempts += 1;
        compacting.attempt = work.core.attempts;
        compacting.tries += 1;
        compacting.summary.clear();
        let ask = RequestParts {
            thread_id: &work.core.id,
            turn_id: &self.id,
            step: &self.step,
            purpose: Purpose::Compaction,
            output_schema: None,
            turn_state: None,
            agent_path: &work.core.agent_path,
            segment: compacting.segment,
            attempt: compacting.tries,
        };
        let mut input = compacting.input.clone();
        input.push(question(&self.step));
        let request = prepare(&ask, input);
        work.effects.push(Effect::RequestModel { attempt: compacting.attempt, request });
        self.phase = TurnPhase::Compacting(Box::new(compacting));
    }

    pub(crate) fn on_summary(
        mut self,
        work: &mut Transition<'_>,
        event: Result<StreamEvent, ModelFailure>,
    ) -> Option<Self> {
        let mut compacting = match std::mem::replace(&mut self.phase, TurnPhase::AwaitingStep) {
            TurnPhase::Compacting(compacting) => compacting,
            other => {
                self.phase = other;
                return Some(self);
            }
        };
        let failure = match event {
            Ok(StreamEvent::Failed(failure)) | Err(failure) => failure,
            Ok(StreamEvent::Completed { usage, .. }) => {
                self.charge_goal(work, usage.as_ref());
                work.count_tokens(&self.id, &self.step, usage);
                return self.finish_compaction(work, &compacting);
            }
            Ok(event) => {
                match event {
                    StreamEvent::Opened(opened) => self.on_opened(work, opened),
                    StreamEvent::ItemDone(item) => {
                        if let ResponseItem::Message { role, content, .. } = &*item
                            && role == "assistant"
                        {
                            compacting.summary = text_of(content);
                        }
                    }
                    _ => {}
                }
                self.phase = TurnPhase::Compacting(compacting);
                return Some(self);
            }
        };
        // Even the request for a summary may be too long: retry without its oldest item.
        if failure.class == FailureClass::ContextWindow && compacting.input.len() > 1 {
            compacting.input.remove(0);
            self.retries = 0;
            self.request_summary(work, *compacting);
            return Some(self);
        }
        self.retry(work, failure, Retry::Compacting(compacting))
    }

    fn finish_compaction(mut self, work: &mut Transition<'_>, compacting: &Compacting) -> Option<Self> {
        let mut replacement = compacted(work.core.history.items(), &compacting.summary);
        let keeps_context = matches!(compacting.then, AfterCompaction::Continue { keep_context: true });
        if keeps_context {
            // Before the last user message, which precedes the summary.
            let at = replacement.len().saturating_sub(2);
            replacement.splice(at..at, context::initial(&self.step).messages());
        }
        if work.core.aside.is_none() {
            work.record(RolloutRecord::Compacted {
                turn_id: self.id.clone(),
                summary: compacting.summary.clone(),
                replacement: replacement.clone(),
            });
        }
        work.core.history.replace(replacement);
        work.core.baseline = None;
        work.core.additional.forget();
        if keeps_context {
            work.record_baseline(&self.id, &self.step, Baseline::of(&self.step));
        }
        self.retries = 0;
        work.estimate_tokens(&self.id, &self.step);
        self.close_compaction(work, compacting);
        let (thread_id, turn_id) = (work.core.id.clone(), self.id.clone());
        work.emit(ServerNotification::ContextCompacted(ContextCompactedNotification { thread_id, turn_id }));
        match compacting.then {
            AfterCompaction::Finish => self.finish(work, TurnStatus::Completed, None),
            AfterCompaction::Continue { .. } => {
                self.await_step(work);
                Some(self)
            }
        }
    }

    pub(crate) fn close_compaction(&self, work: &mut Transition<'_>, compacting: &Compacting) {
        work.item_completed(&self.id, ThreadItem::ContextCompaction { id: compacting.item_id.clone() });
    }
}
