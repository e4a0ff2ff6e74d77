//! One turn for clients, built from its records.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use protocol::{
    CollabAgentToolCallStatus, CommandExecutionStatus, DynamicToolCallStatus, ItemId, McpToolCallStatus,
    PatchApplyStatus, ResponseItem, ThreadItem, Turn, TurnError, TurnId, TurnPlanStep, TurnPlanStepStatus,
    TurnStatus,
};
use serde::Deserialize;

#[derive(Debug)]
pub(crate) struct TurnBuilder {
    id: TurnId,
    room: Room,
    started_at_ms: Option<i64>,
    end: Option<Box<RecordedEnd>>,
    plan: Option<Vec<TurnPlanStep>>,
}

/// Buffers for the items of a turn, reused by the next.
#[derive(Debug, Default)]
pub(crate) struct Room {
    items: Vec<ThreadItem>,
    /// The index of each item by a hash of its id, in a turn with many: some have tens of thousands.
    places: HashMap<u64, usize>,
}

/// Fewer items than this are searched linearly.
const FEW: usize = 32;

#[derive(Debug)]
struct RecordedEnd {
    status: TurnStatus,
    error: Option<TurnError>,
    at_ms: i64,
}

impl TurnBuilder {
    pub(crate) fn new(id: TurnId, room: Room) -> Self {
        Self { id, room, started_at_ms: None, end: None, plan: None }
    }

    /// Another turn starts: moves this one's items to an exact allocation, and returns the buffers for the next.
    pub(crate) fn hand_on(&mut self) -> Room {
        let items = Vec::with_capacity(self.room.items.len());
        let mut room = std::mem::replace(&mut self.room, Room { items, places: HashMap::new() });
        self.room.items.append(&mut room.items);
        room.places.clear();
        room
    }

    pub(crate) fn id(&self) -> &TurnId {
        &self.id
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.is_none()
    }

    pub(crate) fn start(&mut self, at_ms: i64) {
        self.started_at_ms.get_or_insert(at_ms);
        self.end = None;
    }

    pub(crate) fn end(&mut self, status: TurnStatus, error: Option<TurnError>, at_ms: i64) {
        self.end = Some(Box::new(RecordedEnd { status, error, at_ms }));
    }

    /// A plan of the agent; it replaces earlier ones.
    pub(crate) fn plan(&mut self, steps: Vec<TurnPlanStep>) {
        self.plan = Some(steps);
    }

    /// An item recorded again replaces its earlier version and keeps its position.
    pub(crate) fn upsert(&mut self, item: ThreadItem) {
        self.room.upsert(item);
    }

    pub(crate) fn finish(self) -> Turn {
        let Self { id, room: Room { mut items, .. }, started_at_ms, end, plan } = self;
        // Nothing is running in a turn that is read from disk.
        items.iter_mut().for_each(settle);
        items.shrink_to_fit();
        let duration_ms = match (started_at_ms, &end) {
            (Some(started), Some(end)) => Some(end.at_ms.saturating_sub(started).max(0)),
            _ => None,
        };
        let completed_at = end.as_ref().map(|end| end.at_ms.div_euclid(1_000));
        let (status, error) = match end.map(|end| *end) {
            Some(RecordedEnd { status: TurnStatus::InProgress, error, .. }) => {
                (TurnStatus::Interrupted, error)
            }
            Some(RecordedEnd { status, error, .. }) => (status, error),
            None => (TurnStatus::Interrupted, None),
        };
        let started_at = started_at_ms.map(|at_ms| at_ms.div_euclid(1_000));
        Turn { id, items, status, error, started_at, completed_at, duration_ms, plan }
    }
}

impl Room {
    fn upsert(&mut self, item: ThreadItem) {
        if let Some(at) = self.place_of(&item) {
            self.items[at] = item;
            return;
        }
        if self.items.len() == self.items.capacity() {
            // Items are large, and an allocation that is not passed on stays until all records are read.
            self.items.reserve_exact(1 + self.items.len() / 2);
        }
        self.items.push(item);
    }

    /// `None` for a new item, whose index is recorded.
    fn place_of(&mut self, item: &ThreadItem) -> Option<usize> {
        let Self { items, places } = self;
        let look = || items.iter().position(|known| is_same(known, item));
        if items.len() < FEW {
            return look();
        }
        if places.is_empty() {
            places.extend(items.iter().map(hash).zip(0..));
        }
        let at = *places.entry(hash(item)).or_insert(items.len());
        // Two items with the same hash: the second has no entry of its own.
        if is_same(items.get(at)?, item) { Some(at) } else { look() }
    }
}

/// Start and end of a review share the turn's id, and are two items. Any other id belongs to one item.
fn key(item: &ThreadItem) -> (&ItemId, bool) {
    (item.id(), matches!(item, ThreadItem::ExitedReviewMode { .. }))
}

fn is_same(known: &ThreadItem, item: &ThreadItem) -> bool {
    key(known) == key(item)
}

fn hash(item: &ThreadItem) -> u64 {
    let mut hasher = DefaultHasher::new();
    key(item).hash(&mut hasher);
    hasher.finish()
}

/// A tool that was running when its turn ended: it never reported success.
fn settle(item: &mut ThreadItem) {
    match item {
        ThreadItem::CommandExecution { status, .. } if *status == CommandExecutionStatus::InProgress => {
            *status = CommandExecutionStatus::Failed;
        }
        ThreadItem::FileChange { status, .. } if *status == PatchApplyStatus::InProgress => {
            *status = PatchApplyStatus::Failed;
        }
        ThreadItem::McpToolCall { status, .. } if *status == McpToolCallStatus::InProgress => {
            *status = McpToolCallStatus::Failed;
        }
        ThreadItem::DynamicToolCall { status, .. } if *status == DynamicToolCallStatus::InProgress => {
            *status = DynamicToolCallStatus::Failed;
        }
        ThreadItem::CollabAgentToolCall { status, .. }
            if *status == CollabAgentToolCallStatus::InProgress =>
        {
            *status = CollabAgentToolCallStatus::Failed;
        }
        _ => {}
    }
}

/// The tool by which an agent shows its plan. No item has the plan, only the call.
const TOOL: &str = "update_plan";

#[derive(Deserialize)]
struct ToldPlan {
    plan: Vec<ToldStep>,
}

#[derive(Deserialize)]
struct ToldStep {
    step: String,
    status: ToldStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ToldStatus {
    Pending,
    InProgress,
    Completed,
}

/// The steps in a call of that tool. `None` if the tool could not parse it.
pub(crate) fn plan_in(item: &ResponseItem) -> Option<Vec<TurnPlanStep>> {
    let ResponseItem::FunctionCall { name, namespace: None, arguments, .. } = item else { return None };
    let told: ToldPlan = (name == TOOL).then(|| serde_json::from_str(arguments).ok())??;
    let step = |ToldStep { step, status }| {
        let status = match status {
            ToldStatus::Pending => TurnPlanStepStatus::Pending,
            ToldStatus::InProgress => TurnPlanStepStatus::InProgress,
            ToldStatus::Completed => TurnPlanStepStatus::Completed,
        };
        TurnPlanStep { step, status }
    };
    Some(told.plan.into_iter().map(step).collect())
}

#[cfg(test)]
mod tests {
    use protocol::ItemId;

    use super::*;

    fn message(id: usize, text: &str) -> ThreadItem {
        let id = ItemId::new(id.to_string());
        ThreadItem::AgentMessage { id, text: text.to_owned(), phase: None, memory_citation: None }
    }

    /// Two turns of this many items, every other one of which is recorded again once both are there.
    fn check(count: usize) {
        let mut first = TurnBuilder::new(TurnId::new("first"), Room::default());
        (0..count).for_each(|id| first.upsert(message(id, "first")));
        let mut second = TurnBuilder::new(TurnId::new("second"), first.hand_on());
        (0..count).for_each(|id| second.upsert(message(id, "second")));
        for turn in [&mut first, &mut second] {
            (0..count).step_by(2).for_each(|id| turn.upsert(message(id, "again")));
            turn.upsert(message(count, "late"));
        }
        for (turn, text) in [(first, "first"), (second, "second")] {
            let again = |id: usize| if id.is_multiple_of(2) { "again" } else { text };
            let expected = (0..count).map(|id| message(id, again(id)));
            let expected: Vec<_> = expected.chain([message(count, "late")]).collect();
            assert_eq!(turn.finish().items, expected, "{count} items");
        }
    }

    #[test]
    fn a_turn_keeps_its_items_and_their_places_when_another_begins() {
        [0, 1, FEW - 1, FEW, 3 * FEW].into_iter().for_each(check);
    }
}
