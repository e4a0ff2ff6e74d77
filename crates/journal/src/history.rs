//! From records to a thread's history: the model's items, the turns for clients, and the summary. One pass over the
//! records produces all three, so they agree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use protocol::{
    OperationDecision, OperationRecord, ResponseItem, RolloutRecord, SessionMeta, ThreadGoal, ThreadId,
    ThreadTokenUsage, Turn, TurnId,
};
use serde_json::Value;

use crate::facts::{Fact, Summary};
use crate::operations::OpenOperation;
use crate::record::{JournalEntry, Record};
use crate::turn_builder::{TurnBuilder, plan_in};

/// Limit of the initial allocation.
const MAX_EXPECTED: usize = 50_000;

/// A thread, rebuilt from its journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadHistory {
    /// The items for the model: compaction replaces earlier ones, and rolled-back turns are left out.
    pub model: Vec<ResponseItem>,
    /// The turns for clients. A turn without an end is interrupted.
    pub turns: Vec<Turn>,
    pub summary: Summary,
    pub meta: Option<SessionMeta>,
    pub token_usage: Option<ThreadTokenUsage>,
    /// The thread's goal.
    pub goal: Option<ThreadGoal>,
    /// The settings of the last turn that is not rolled back.
    pub turn_context: Option<Value>,
    /// The host's choices for the thread, as last recorded: a rollback does not undo them.
    pub host: Option<Value>,
    /// The context that the model's items still contain: compaction removes earlier context.
    pub told_context: Option<Value>,
    /// Operations that have neither finished nor been withdrawn, oldest first.
    pub operations: Vec<OpenOperation>,
    /// Session keys of approvals for the session, in records that a host keeps.
    pub agreed: Vec<String>,
    /// Command prefixes that clients approved in this thread.
    pub amendments: Vec<Vec<String>>,
    /// The unfinished turn, for a host that wants to resume it.
    pub unfinished_turn: Option<TurnId>,
}

/// Takes records in order and builds a [`ThreadHistory`].
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    summary: Summary,
    meta: Option<SessionMeta>,
    token_usage: Option<ThreadTokenUsage>,
    goal: Option<ThreadGoal>,
    host: Option<Value>,
    /// The records, split by turn. The first segment contains the records before all turns.
    segments: Vec<Segment>,
    /// The items for the model, in the order of the records.
    items: Vec<ResponseItem>,
    places: HashMap<TurnId, usize>,
    rolled_back: HashSet<TurnId>,
    operations: Vec<OpenOperation>,
    agreed: Vec<String>,
    amendments: Vec<Vec<String>>,
}

/// One turn, with everything recorded before the next one.
#[derive(Debug, Default)]
struct Segment {
    turn: Option<TurnBuilder>,
    model: Vec<ModelStep>,
}

#[derive(Debug)]
enum ModelStep {
    /// A range of the builder's items.
    Add(Range<usize>),
    Replace(Vec<ResponseItem>),
    Tell(Value),
}

impl HistoryBuilder {
    /// For the thread with this id; any other identity in the file is ignored.
    pub fn new(thread_id: Option<ThreadId>) -> Self {
        Self { summary: Summary::of_thread(thread_id), segments: vec![Segment::default()], ..Self::default() }
    }

    /// Allocates for this many records.
    pub(crate) fn expect(&mut self, records: usize) {
        self.items.reserve_exact((records / 2).min(MAX_EXPECTED));
    }

    pub fn add(&mut self, entry: JournalEntry) {
        let fact = match &entry.record {
            Record::Known(record) => Fact::of(record),
            // A record that this release cannot read still counts as activity.
            Record::Foreign(_) => Fact::Activity,
        };
        self.summary.apply(fact, entry.at_ms);
        let Record::Known(record) = entry.record else { return };
        match record {
            RolloutRecord::SessionMeta { meta } => self.identify(*meta),
            RolloutRecord::TurnStarted { turn_id, at_ms } => self.start(turn_id, at_ms),
            RolloutRecord::TurnContext { turn_id, context } => {
                self.host = context.get("host").cloned().or(self.host.take());
                self.model_step(turn_id, ModelStep::Tell(context));
            }
            RolloutRecord::ResponseItem { turn_id, item } => {
                if let (Some(turn_id), Some(steps)) = (&turn_id, plan_in(&item))
                    && let Some(turn) = self.turn_of(turn_id.clone())
                {
                    turn.plan(steps);
                }
                self.add_item(turn_id, item);
            }
            RolloutRecord::Compacted { turn_id, replacement, .. } => {
                self.model_step(turn_id, ModelStep::Replace(replacement));
            }
            RolloutRecord::ThreadItem { turn_id, item } => {
                if let Some(turn) = self.turn_of(turn_id) {
                    turn.upsert(item);
                }
            }
            RolloutRecord::TokenUsage { usage, .. } => self.token_usage = Some(usage),
            RolloutRecord::RolledBack { num_turns } => self.roll_back(num_turns),
            RolloutRecord::TurnEnded { turn_id, status, error, at_ms } => {
                OpenOperation::forget_ended(&mut self.operations, &turn_id);
                if let Some(turn) = self.turn_of(turn_id) {
                    turn.end(status, error, at_ms);
                }
            }
            RolloutRecord::Operation { operation } => {
                self.remember(&operation);
                let turn = self.segments.last().and_then(|segment| segment.turn.as_ref());
                OpenOperation::fold(&mut self.operations, turn.map(TurnBuilder::id), operation);
            }
            RolloutRecord::Metadata { change } => self.goal = change.goal.apply(self.goal.take()),
        }
    }

    pub fn finish(self) -> ThreadHistory {
        let Self { summary, meta, token_usage, goal, host, segments, items, operations, .. } = self;
        let (agreed, amendments) = (self.agreed, self.amendments);
        let mut history = ThreadHistory {
            summary,
            meta,
            token_usage,
            goal,
            host,
            operations,
            agreed,
            amendments,
            ..ThreadHistory::default()
        };
        // An exact allocation: growing by doubling would cost as much again for a long thread.
        history.turns.reserve_exact(segments.iter().filter(|segment| segment.turn.is_some()).count());
        let mut since_replacement = Vec::new();
        for segment in segments {
            for step in segment.model {
                match step {
                    ModelStep::Add(range) => since_replacement.push(range),
                    ModelStep::Replace(items) => {
                        history.model = items;
                        since_replacement.clear();
                        history.told_context = None;
                    }
                    ModelStep::Tell(context) => {
                        history.turn_context = Some(context.clone());
                        history.told_context = Some(context);
                    }
                }
            }
            if let Some(turn) = segment.turn {
                history.unfinished_turn = turn.is_open().then(|| turn.id().clone());
                history.turns.push(turn.finish());
            }
        }
        history.model = picked(history.model, items, &since_replacement);
        history
    }

    /// Approvals beyond one call. Those of the thread that this one was copied from do not apply.
    fn remember(&mut self, record: &OperationRecord) {
        let OperationRecord::Decided { operation_id, decision, session_keys, .. } = record else { return };
        let OperationDecision::Approve { execpolicy_amendment, .. } = decision else { return };
        let thread = self.summary.thread_id.as_ref().map_or("", ThreadId::as_str);
        if !operation_id.as_str().strip_prefix(thread).is_some_and(|rest| rest.starts_with(':')) {
            return;
        }
        self.agreed.extend(session_keys.iter().flatten().filter(|_| decision.is_for_session()).cloned());
        self.amendments.extend(execpolicy_amendment.clone());
    }

    fn identify(&mut self, meta: SessionMeta) {
        if self.meta.is_none() && self.summary.thread_id.as_ref() == Some(&meta.thread_id) {
            self.meta = Some(meta);
        }
    }

    /// A resumed turn keeps its id and its place; a rolled-back turn is never resumed.
    fn start(&mut self, turn_id: TurnId, at_ms: i64) {
        OpenOperation::forget_others(&mut self.operations, &turn_id);
        if let Some(turn) = self.turn_of(turn_id) {
            turn.start(at_ms);
        }
    }

    fn model_step(&mut self, turn_id: TurnId, step: ModelStep) {
        if let Some(segment) = self.segment_of(turn_id) {
            segment.model.push(step);
        }
    }

    fn add_item(&mut self, turn_id: Option<TurnId>, item: ResponseItem) {
        let at = self.items.len();
        let segment = match turn_id {
            Some(turn_id) => self.segment_of(turn_id),
            None => Some(self.last()),
        };
        let Some(segment) = segment else { return };
        match segment.model.last_mut() {
            Some(ModelStep::Add(range)) if range.end == at => range.end += 1,
            _ => segment.model.push(ModelStep::Add(at..at + 1)),
        }
        if at == self.items.capacity() {
            self.items.reserve_exact(16 + at / 2);
        }
        self.items.push(item);
    }

    fn last(&mut self) -> &mut Segment {
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        let last = self.segments.len() - 1;
        &mut self.segments[last]
    }

    /// The segment of a turn, created if its start is lost; none if the turn was rolled back.
    fn segment_of(&mut self, turn_id: TurnId) -> Option<&mut Segment> {
        if self.rolled_back.contains(&turn_id) {
            return None;
        }
        // Usually the turn of the previous record.
        let is_last = self
            .segments
            .last()
            .and_then(|last| last.turn.as_ref())
            .is_some_and(|turn| *turn.id() == turn_id);
        if is_last {
            return self.segments.last_mut();
        }
        let next = self.segments.len();
        let at = *self.places.entry(turn_id.clone()).or_insert(next);
        if at == next {
            let before = self.segments.last_mut().and_then(|last| last.turn.as_mut());
            let room = before.map(TurnBuilder::hand_on).unwrap_or_default();
            self.segments.push(Segment { turn: Some(TurnBuilder::new(turn_id, room)), ..Segment::default() });
        }
        self.segments.get_mut(at)
    }

    fn turn_of(&mut self, turn_id: TurnId) -> Option<&mut TurnBuilder> {
        self.segment_of(turn_id)?.turn.as_mut()
    }

    /// Drops the last turns as clients count them, and everything recorded since the first of them started.
    fn roll_back(&mut self, num_turns: u32) {
        for _ in 0..num_turns {
            let Some(at) = self.segments.iter().rposition(|segment| segment.turn.is_some()) else { break };
            let dropped = self.segments.drain(at..).filter_map(|segment| segment.turn);
            self.rolled_back.extend(dropped.map(|turn| turn.id().clone()));
        }
        let rolled_back = &self.rolled_back;
        self.places.retain(|turn_id, _| !rolled_back.contains(turn_id));
        self.operations
            .retain(|operation| operation.turn_id.as_ref().is_none_or(|id| !rolled_back.contains(id)));
    }
}

/// Appends these items. Usually these are all, in their order.
fn picked(
    mut model: Vec<ResponseItem>,
    items: Vec<ResponseItem>,
    wanted: &[Range<usize>],
) -> Vec<ResponseItem> {
    let in_order = wanted.iter().try_fold(0, |end, range| (range.start == end).then_some(range.end));
    if model.is_empty() && in_order == Some(items.len()) {
        return items;
    }
    let mut items: Vec<Option<ResponseItem>> = items.into_iter().map(Some).collect();
    model.reserve_exact(wanted.iter().map(ExactSizeIterator::len).sum());
    for range in wanted {
        let items = items.get_mut(range.clone()).unwrap_or_default();
        model.extend(items.iter_mut().filter_map(Option::take));
    }
    model
}
