//! One transition of the state machine: the thread's lasting state, the stamp, and the effects so far.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{
    AccountRateLimitsUpdatedNotification, GrantedPermissionProfile, ItemCompletedNotification, ItemId,
    ItemStartedNotification, OperationId, RateLimitSnapshot, RawResponseItemCompletedNotification,
    ResponseItem, RolloutRecord, ServerNotification, ThreadId, ThreadItem, ThreadStatusChangedNotification,
    ThreadTokenUsage, ThreadTokenUsageUpdatedNotification, TokenUsageBreakdown, TurnCost, TurnId,
};

use crate::context::{self, AdditionalStore, Baseline, SavedPrefix, alone};
use crate::goal::Pursuit;
use crate::history::{History, is_generated};
use crate::ids::{IdGenerator, Stamp};
use crate::status::Facts;
use crate::tokens::{self, approximate_tokens, estimate};
use crate::{Effect, Step};

/// The state of a thread that outlives its turns.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    pub(crate) id: ThreadId,
    /// From the root agent to this one.
    pub(crate) agent_path: Arc<[String]>,
    pub(crate) history: History,
    pub(crate) usage: Option<ThreadTokenUsage>,
    pub(crate) pursuit: Option<Pursuit>,
    /// The thread's own state, while a reviewer works with another one.
    pub(crate) aside: Option<Box<Aside>>,
    /// The cost of the running turn, as far as this process made its requests.
    pub(crate) turn_cost: Option<TurnCost>,
    pub(crate) rate_limits: Option<Box<RateLimitSnapshot>>,
    pub(crate) baseline: Option<Baseline>,
    /// The baseline is not in this thread's own record yet.
    pub(crate) baseline_is_borrowed: bool,
    /// Additional context as clients last sent it.
    pub(crate) additional: AdditionalStore,
    pub(crate) facts: Facts,
    /// Number of the last attempt at any request.
    pub(crate) attempts: u64,
    /// Session keys that a client approved, for as long as the thread is loaded.
    pub(crate) agreed: HashSet<String>,
    /// Permissions that a client granted for as long as the thread is loaded.
    pub(crate) grants: GrantedPermissionProfile,
    /// Calls start when their response is complete.
    pub(crate) calls_wait: bool,
    /// The epoch of this process's lease, if there is one.
    pub(crate) epoch: Option<u64>,
    /// Questions carry their operation's id and digest.
    pub(crate) shows_operations: bool,
    /// Clients of this thread subscribed to the model's raw items.
    pub(crate) raw_events: bool,
}

/// State of a thread that a reviewer must neither see nor change.
#[derive(Debug, Clone)]
pub(crate) struct Aside {
    pub(crate) history: History,
    pub(crate) usage: Option<ThreadTokenUsage>,
    pub(crate) baseline: Option<Baseline>,
    pub(crate) baseline_is_borrowed: bool,
    pub(crate) additional: AdditionalStore,
}

pub(crate) struct Transition<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) stamp: Stamp,
    pub(crate) ids: IdGenerator,
    pub(crate) effects: Vec<Effect>,
    /// Items whose start clients were not notified of, because a record failed.
    pub(crate) unseen: HashSet<ItemId>,
    /// Set if the host that keeps the record is gone: the operations it recorded as started.
    pub(crate) started_at_host: Option<HashSet<OperationId>>,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(core: &'a mut Core, stamp: Stamp) -> Self {
        let (effects, unseen) = (Vec::new(), HashSet::new());
        Self { core, stamp, ids: IdGenerator::new(stamp), effects, unseen, started_at_host: None }
    }

    pub(crate) fn record(&mut self, record: RolloutRecord) {
        self.effects.push(Effect::Record(Box::new(record)));
    }

    pub(crate) fn emit(&mut self, notification: ServerNotification) {
        self.effects.push(Effect::Emit(Box::new(notification)));
    }

    /// Changes the facts and notifies clients if the status differs.
    pub(crate) fn set_status(&mut self, change: impl FnOnce(&mut Facts)) {
        let before = self.core.facts.status();
        change(&mut self.core.facts);
        if self.core.facts.status() != before {
            self.emit_status();
        }
    }

    pub(crate) fn emit_status(&mut self) {
        let (thread_id, status) = (self.core.id.clone(), self.core.facts.status());
        let changed = ThreadStatusChangedNotification { thread_id, status };
        self.emit(ServerNotification::ThreadStatusChanged(changed));
    }

    /// Adds an item to the history and the record.
    pub(crate) fn remember(&mut self, turn_id: &TurnId, item: ResponseItem) {
        if self.core.aside.is_some() {
            return self.core.history.push(item);
        }
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

    /// Adds an item to the history between two turns.
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

    /// Recorded first: a client that sees a finished item can rely on it.
    pub(crate) fn item_completed(&mut self, turn_id: &TurnId, item: ThreadItem) {
        self.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item: item.clone() });
        self.notify_completed(turn_id, item);
    }

    /// For an item that is already recorded.
    pub(crate) fn notify_completed(&mut self, turn_id: &TurnId, item: ThreadItem) {
        if self.unseen.contains(item.id()) {
            return;
        }
        let (thread_id, completed_at_ms) = (self.core.id.clone(), self.stamp.now_ms);
        let turn_id = turn_id.clone();
        self.emit(ServerNotification::ItemCompleted(ItemCompletedNotification {
            item,
            thread_id,
            turn_id,
            completed_at_ms,
        }));
    }

    /// Sends the model the context that it does not have yet.
    pub(crate) fn inject_context(&mut self, turn_id: &TurnId, step: &Step) {
        let messages = match &self.core.baseline {
            None => context::initial(step).messages(),
            Some(before) => context::update(before, step).messages(),
        };
        messages.into_iter().for_each(|message| self.remember(turn_id, message));
        let baseline = Baseline::of(step);
        if self.core.baseline_is_borrowed || self.core.baseline.as_ref() != Some(&baseline) {
            self.record_baseline(turn_id, step, baseline);
        }
    }

    pub(crate) fn record_baseline(&mut self, turn_id: &TurnId, step: &Step, baseline: Baseline) {
        let mut context = serde_json::to_value(&baseline).unwrap_or_default();
        if let (Some(fields), Some((name, value))) = (context.as_object_mut(), &step.recorded_with) {
            fields.insert((*name).to_owned(), (**value).clone());
        }
        if self.core.aside.is_none() {
            self.record(RolloutRecord::TurnContext { turn_id: turn_id.clone(), context });
        }
        self.core.baseline = Some(baseline);
        self.core.baseline_is_borrowed = false;
    }

    /// Notifies the model of a rule that a client approved. A turn that was resumed between decision and command has
    /// this in its history already.
    pub(crate) fn notify_model_of_rule(&mut self, turn_id: &TurnId, step: &Step, prefix: &[String]) {
        let message = alone(&SavedPrefix(prefix));
        if !self.core.history.items().iter().any(|known| **known == message) {
            self.remember(turn_id, message);
        }
        self.learn_prefix(turn_id, step, prefix);
    }

    /// Updates the baseline after the model was notified of an approved prefix, so that the next step does not send it
    /// again.
    fn learn_prefix(&mut self, turn_id: &TurnId, step: &Step, prefix: &[String]) {
        let Some(before) = &self.core.baseline else { return };
        let mut baseline = before.clone();
        baseline.learn_prefix(prefix);
        if baseline != *before {
            self.record_baseline(turn_id, step, baseline);
        }
    }

    /// Adds a response's tokens and notifies clients of the total.
    pub(crate) fn count_tokens(&mut self, turn_id: &TurnId, step: &Step, last: Option<TokenUsageBreakdown>) {
        if let Some(last) = last {
            self.charge(step, &last);
            let usage = self.usage_mut(step);
            tokens::add(usage, last);
        }
        if let (Some(usage), None) = (self.core.usage.clone(), &self.core.aside) {
            self.record(RolloutRecord::TokenUsage { turn_id: turn_id.clone(), usage });
        }
        self.notify_usage(turn_id);
    }

    /// Adds the cost of a failed request, which says nothing about the size of the history.
    pub(crate) fn spend_tokens(&mut self, turn_id: &TurnId, step: &Step, spent: TokenUsageBreakdown) {
        self.charge(step, &spent);
        let usage = self.usage_mut(step);
        let last = usage.last.clone();
        tokens::add(usage, spent);
        usage.last = last;
        self.count_tokens(turn_id, step, None);
    }

    /// Adds the price of one request to the turn's cost.
    fn charge(&mut self, step: &Step, used: &TokenUsageBreakdown) {
        let Some(price) = step.model.price else { return };
        let more = price.cost(used);
        let cost = self.core.turn_cost.get_or_insert(TurnCost { amount: 0.0, is_estimated: false });
        cost.amount += more.amount;
        cost.is_estimated |= more.is_estimated;
    }

    /// Estimates the size of a history that was replaced and not counted yet.
    pub(crate) fn estimate_tokens(&mut self, turn_id: &TurnId, step: &Step) {
        let history: i64 = self.core.history.items().iter().map(|item| estimate(item)).sum();
        let total_tokens = history + approximate_tokens(step.base_instructions.len());
        let usage = self.usage_mut(step);
        usage.last = TokenUsageBreakdown { total_tokens, ..tokens::NOTHING };
        self.count_tokens(turn_id, step, None);
    }

    /// The provider reports that the history does not fit. It counts as full, so that the next turn compacts first.
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

    /// Takes the windows from the latest answer. Keeps credits and plan, which not every answer contains.
    pub(crate) fn learn_limits(&mut self, mut limits: Box<RateLimitSnapshot>) {
        if let Some(known) = self.core.rate_limits.take() {
            limits.credits = limits.credits.or(known.credits);
            limits.plan_type = limits.plan_type.or(known.plan_type);
        }
        self.core.rate_limits = Some(limits);
    }

    /// Not during a review: clients are notified when it is done.
    pub(crate) fn notify_usage(&mut self, turn_id: &TurnId) {
        if self.core.aside.is_some() {
            return;
        }
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

    /// Estimated tokens of the next request: the provider's last count, plus the items since.
    pub(crate) fn tokens_in_use(&self) -> i64 {
        let counted = self.core.usage.as_ref().map_or(0, |usage| usage.last.total_tokens);
        let items = self.core.history.items();
        let since = items.iter().rposition(|item| is_generated(item)).map_or(0, |at| at + 1);
        // A provider may count as it likes.
        let estimated = if counted > 0 { items[since..].iter().map(|item| estimate(item)).sum() } else { 0 };
        counted.saturating_add(estimated)
    }
}
