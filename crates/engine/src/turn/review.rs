//! A review: a turn in which a reviewer works with its own history. The thread's history gets only the result.

use std::sync::Arc;

use protocol::{ContentItem, ItemId, ResponseItem, RolloutRecord, ThreadItem, TurnId, TurnStatus, UserInput};

use crate::context::{ReviewOutcome, agent_message, alone};
use crate::history::History;
use crate::input::UserText;
use crate::items::text_of;
use crate::review::{NO_RESULT, ReviewOrder, review_text};
use crate::turn::said::Said;
use crate::turn::work::{Aside, Transition};
use crate::turn::{TurnKind, TurnMachine};
use crate::{Step, tokens};

/// Id of the message item with the result.
const RESULT_ITEM: &str = "review_rollout_assistant";

impl TurnMachine {
    pub(crate) fn review(
        work: &mut Transition<'_>,
        id: TurnId,
        order: ReviewOrder,
        step: Arc<Step>,
    ) -> Option<Self> {
        let ReviewOrder { hint, prompt } = order;
        let mut turn = Self { review_hint: hint.clone(), ..Self::new(work, id, TurnKind::Review, step) };
        let entered = ThreadItem::EnteredReviewMode { id: turn.item_id(), review: hint };
        let said = UserText {
            shown: vec![UserInput::Text { text: prompt.clone(), text_elements: Vec::new() }],
            content: vec![ContentItem::InputText { text: prompt }],
            ..UserText::default()
        };
        work.set_aside();
        let mut said = Said::new(work, said);
        turn.record_start(work);
        work.record(RolloutRecord::ThreadItem { turn_id: turn.id.clone(), item: entered.clone() });
        said.record(work, &turn.id);
        turn.notify_started(work);
        work.item_started(&turn.id, entered.clone());
        work.notify_completed(&turn.id, entered);
        if turn.step.is_preliminary {
            turn.queued.push_back(said);
            turn.await_step(work);
            return Some(turn);
        }
        work.inject_context(&turn.id, &turn.step);
        said.messages().into_iter().for_each(|message| work.remember(&turn.id, message));
        turn.notify_said(work, &said);
        turn.request(work);
        Some(turn)
    }

    /// The items for start and end of a review carry the turn's id.
    fn item_id(&self) -> ItemId {
        ItemId::new(self.id.to_string())
    }

    /// Restores the thread's history and adds the review's result.
    pub(crate) fn leave_review(&mut self, work: &mut Transition<'_>, status: TurnStatus) {
        let Some(reviewer) = work.take_back() else { return };
        let answer = reviewer.items().iter().rev().find_map(|item| said_by_model(item));
        let result = answer.filter(|_| status == TurnStatus::Completed).map(|answer| review_text(&answer));
        let shown = result.clone().unwrap_or_else(|| NO_RESULT.to_owned());
        work.remember(&self.id, alone(&ReviewOutcome { hint: &self.review_hint, result: result.as_deref() }));
        work.remember(&self.id, agent_message(shown.clone()));
        let exited = ThreadItem::ExitedReviewMode { id: self.item_id(), review: shown.clone() };
        work.item_started(&self.id, exited.clone());
        work.item_completed(&self.id, exited);
        let message = ThreadItem::AgentMessage {
            id: ItemId::new(RESULT_ITEM),
            text: shown,
            phase: None,
            memory_citation: None,
        };
        work.item_started(&self.id, message.clone());
        work.item_completed(&self.id, message);
        work.count_tokens(&self.id, &self.step, None);
    }
}

fn said_by_model(item: &ResponseItem) -> Option<String> {
    match item {
        ResponseItem::Message { role, content, .. } if role == "assistant" => Some(text_of(content)),
        _ => None,
    }
}

impl Transition<'_> {
    /// Starts a reviewer with an empty history.
    fn set_aside(&mut self) {
        let core = &mut *self.core;
        core.aside = Some(Box::new(Aside {
            history: std::mem::take(&mut core.history),
            usage: core.usage.take(),
            baseline: core.baseline.take(),
            baseline_is_borrowed: std::mem::take(&mut core.baseline_is_borrowed),
            additional: std::mem::take(&mut core.additional),
        }));
    }

    /// Returns the reviewer's history; its tokens count for the thread.
    fn take_back(&mut self) -> Option<History> {
        let core = &mut *self.core;
        let Aside { history, usage, baseline, baseline_is_borrowed, additional } = *core.aside.take()?;
        let reviewer = std::mem::replace(&mut core.history, history);
        let spent = std::mem::replace(&mut core.usage, usage);
        (core.baseline, core.baseline_is_borrowed) = (baseline, baseline_is_borrowed);
        core.additional = additional;
        if let Some(spent) = spent {
            let own = core.usage.get_or_insert(protocol::ThreadTokenUsage {
                total: tokens::NOTHING,
                last: tokens::NOTHING,
                model_context_window: spent.model_context_window,
            });
            let last = own.last.clone();
            tokens::add(own, spent.total);
            own.last = last;
        }
        Some(reviewer)
    }
}
