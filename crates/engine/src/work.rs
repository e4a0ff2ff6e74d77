//! What every step of a turn works with: the thread's lasting state, the stamp, and the effects so far.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{
    AccountRateLimitsUpdatedNotification, GrantedPermissionProfile, ItemCompletedNotification,
    ItemStartedNotification, RateLimitSnapshot, RawResponseItemCompletedNotification, ResponseItem,
    RolloutRecord, ServerNotification, ThreadId, ThreadItem, ThreadStatusChangedNotification,
    ThreadTokenUsage, ThreadTokenUsageUpdatedNotification, TokenUsageBreakdown, TurnId,
};

use crate::context::{self, AdditionalStore, Baseline};
use crate::history::History;
use crate::ids::{Ids, Stamp};
use crate::status::Facts;
use crate::tokens::{self, approximate_tokens, estimate};
use crate::{Effect, Step};

/// What outlives a turn.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    pub(crate) id: ThreadId,
    /// From the root agent to this one.
    pub(crate) agent_path: Arc<[String]>,
    pub(crate) history: History,
    pub(crate) usage: Option<ThreadTokenUsage>,
    pub(crate) rate_limits: Option<Box<RateLimitSnapshot>>,
    pub(crate) baseline: Option<Baseline>,
    /// It is not in this thread's own record yet.
    pub(crate) baseline_is_borrowed: bool,
    /// What clients last wanted the model to know beside the user's words.
    pub(crate) additional: AdditionalStore,
    pub(crate) facts: Facts,
    /// Number of the last attempt at any request.
    pub(crate) attempts: u64,
    /// What a client agreed to for as long as the thread is loaded.
    pub(crate) agreed: HashSet<String>,
    /// What a client granted for as long as the thread is loaded.
    pub(crate) grants: GrantedPermissionProfile,
    /// Calls begin when the response that brought them is complete.
    pub(crate) calls_wait: bool,
    /// The lease this process works under, where there is one.
    pub(crate) epoch: Option<u64>,
    /// Questions carry the id and the digest of what they are about.
    pub(crate) shows_operations: bool,
    /// Clients of this thread asked for the model's items as they are.
    pub(crate) raw_events: bool,
}

pub(crate) struct Work<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) stamp: Stamp,
    pub(crate) ids: Ids,
    pub(crate) effects: Vec<Effect>,
}

impl<'a> Work<'a> {
    pub(crate) fn new(core: &'a mut Core, stamp: Stamp) -> Self {
        Self { core, stamp, ids: Ids::new(stamp), effects: Vec::new() }
    }

    pub(crate) fn record(&mut self, record: RolloutRecord) {
        self.effects.push(Effect::Record(Box::new(record)));
    }

    pub(crate) fn emit(&mut self, notification: ServerNotification) {
        self.effects.push(Effect::Emit(Box::new(notification)));
    }

    /// Changes the facts and tells the new status if it is another.
    pub(crate) fn set_status(&mut self, change: impl FnOnce(&mut Facts)) {
        let before = self.core.facts.status();
        change(&mut self.core.facts);
        let status = self.core.facts.status();
        if status != before {
            let thread_id = self.core.id.clone();
            self.emit(ServerNotification::ThreadStatusChanged(ThreadStatusChangedNotification {
                thread_id,
                status,
            }));
        }
    }

    /// Puts an item into the history and the record.
    pub(crate) fn remember(&mut self, turn_id: &TurnId, item: ResponseItem) {
        if self.core.raw_events {
            self.emit(ServerNotification::RawResponseItemCompleted(RawResponseItemCompletedNotification {
                thread_id: self.core.id.clone(),
                turn_id: turn_id.clone(),
                item: item.clone(),
            }));
        }
        if History::keeps(&item) {
            self.record(RolloutRecord::ResponseItem { turn_id: Some(turn_id.clone()), item: item.clone() });
            self.core.history.push(item);
        }
    }

    /// Becomes part of the history between two turns.
    pub(crate) fn note(&mut self, item: ResponseItem) {
        self.record(RolloutRecord::ResponseItem { turn_id: None, item: item.clone() });
        self.core.history.push(item);
    }

    pub(crate) fn item_started(&mut self, turn_id: &TurnId, item: ThreadItem) {
        let (thread_id, started_at_ms) = (self.core.id.clone(), self.stamp.now_ms);
        let turn_id = turn_id.clone();
        self.emit(ServerNotification::ItemStarted(ItemStartedNotification {
            item,
            thread_id,
            turn_id,
            started_at_ms,
        }));
    }

    /// Recorded first: once a client hears of a finished item it is there to stay.
    pub(crate) fn item_completed(&mut self, turn_id: &TurnId, item: ThreadItem) {
        self.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item: item.clone() });
        self.tell_completed(turn_id, item);
    }

    /// For an item that is in the record already.
    pub(crate) fn tell_completed(&mut self, turn_id: &TurnId, item: ThreadItem) {
        let (thread_id, completed_at_ms) = (self.core.id.clone(), self.stamp.now_ms);
        let turn_id = turn_id.clone();
        self.emit(ServerNotification::ItemCompleted(ItemCompletedNotification {
            item,
            thread_id,
            turn_id,
            completed_at_ms,
        }));
    }

    /// Tells the model what it does not know yet of its surroundings.
    pub(crate) fn inject_context(&mut self, turn_id: &TurnId, step: &Step) {
        let messages = match &self.core.baseline {
            None => context::initial(step).messages(),
            Some(before) => context::update(before, step).messages(),
        };
        messages.into_iter().for_each(|message| self.remember(turn_id, message));
        let baseline = Baseline::of(step);
        if self.core.baseline_is_borrowed || self.core.baseline.as_ref() != Some(&baseline) {
            self.record_baseline(turn_id, baseline);
        }
    }

    pub(crate) fn record_baseline(&mut self, turn_id: &TurnId, baseline: Baseline) {
        let context = serde_json::to_value(&baseline).unwrap_or_default();
        self.record(RolloutRecord::TurnContext { turn_id: turn_id.clone(), context });
        self.core.baseline = Some(baseline);
        self.core.baseline_is_borrowed = false;
    }

    /// After the model was told of a prefix that was approved: it is not told again with the next step.
    pub(crate) fn learn_prefix(&mut self, turn_id: &TurnId, prefix: &[String]) {
        let Some(before) = &self.core.baseline else { return };
        let mut baseline = before.clone();
        baseline.learn_prefix(prefix);
        if baseline != *before {
            self.record_baseline(turn_id, baseline);
        }
    }

    /// Adds a response's tokens and tells the sum.
    pub(crate) fn count_tokens(&mut self, turn_id: &TurnId, step: &Step, last: Option<TokenUsageBreakdown>) {
        if let Some(last) = last {
            let usage = self.usage_mut(step);
            tokens::add(usage, last);
        }
        if let Some(usage) = self.core.usage.clone() {
            self.record(RolloutRecord::TokenUsage { turn_id: turn_id.clone(), usage });
        }
        self.tell_usage(turn_id);
    }

    /// Adds what a request cost that came to nothing. It says nothing about how large the history is.
    pub(crate) fn spend_tokens(&mut self, turn_id: &TurnId, step: &Step, spent: TokenUsageBreakdown) {
        let usage = self.usage_mut(step);
        let last = usage.last.clone();
        tokens::add(usage, spent);
        usage.last = last;
        self.count_tokens(turn_id, step, None);
    }

    /// After the history was replaced nobody has counted it yet: estimate.
    pub(crate) fn estimate_tokens(&mut self, turn_id: &TurnId, step: &Step) {
        let history: i64 = self.core.history.items().iter().map(|item| estimate(item)).sum();
        let total_tokens = history + approximate_tokens(step.base_instructions.len());
        let usage = self.usage_mut(step);
        usage.last = TokenUsageBreakdown { total_tokens, ..tokens::NOTHING };
        self.count_tokens(turn_id, step, None);
    }

    /// The provider says that the history does not fit. Counted as full, the next turn makes room first.
    pub(crate) fn fill_window(&mut self, turn_id: &TurnId, step: &Step) {
        let Some(window) = step.model.usable_window() else { return };
        let usage = self.usage_mut(step);
        usage.total.total_tokens = usage.total.total_tokens.max(window);
        usage.last = TokenUsageBreakdown { total_tokens: window, ..tokens::NOTHING };
        self.count_tokens(turn_id, step, None);
    }

    fn usage_mut(&mut self, step: &Step) -> &mut ThreadTokenUsage {
        let empty =
            ThreadTokenUsage { total: tokens::NOTHING, last: tokens::NOTHING, model_context_window: None };
        let usage = self.core.usage.get_or_insert(empty);
        usage.model_context_window = step.model.usable_window();
        usage
    }

    /// Windows are as the latest answer has them. Credits and plan stay known: not every answer names them.
    pub(crate) fn learn_limits(&mut self, mut limits: Box<RateLimitSnapshot>) {
        if let Some(known) = self.core.rate_limits.take() {
            limits.credits = limits.credits.or(known.credits);
            limits.plan_type = limits.plan_type.or(known.plan_type);
        }
        self.core.rate_limits = Some(limits);
    }

    pub(crate) fn tell_usage(&mut self, turn_id: &TurnId) {
        if let Some(token_usage) = self.core.usage.clone() {
            self.emit(ServerNotification::ThreadTokenUsageUpdated(ThreadTokenUsageUpdatedNotification {
                thread_id: self.core.id.clone(),
                turn_id: turn_id.clone(),
                token_usage,
            }));
        }
        if let Some(rate_limits) = self.core.rate_limits.clone() {
            let rate_limits = *rate_limits;
            self.emit(ServerNotification::AccountRateLimitsUpdated(AccountRateLimitsUpdatedNotification {
                rate_limits,
            }));
        }
    }

    /// What the next request will weigh: what the provider counted, and what has come since.
    pub(crate) fn tokens_in_use(&self) -> i64 {
        let counted = self.core.usage.as_ref().map_or(0, |usage| usage.last.total_tokens);
        let items = self.core.history.items();
        let generated = |item: &Arc<ResponseItem>| {
            matches!(&**item, ResponseItem::Message { role, .. } if role == "assistant")
                || matches!(
                    **item,
                    ResponseItem::Reasoning { .. }
                        | ResponseItem::FunctionCall { .. }
                        | ResponseItem::CustomToolCall { .. }
                        | ResponseItem::WebSearchCall { .. }
                )
        };
        let since = items.iter().rposition(generated).map_or(0, |at| at + 1);
        counted + if counted > 0 { items[since..].iter().map(|item| estimate(item)).sum::<i64>() } else { 0 }
    }
}
