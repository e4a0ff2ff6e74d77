//! One turn as clients see it, put together from its records.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use protocol::{
    CollabAgentToolCallStatus, CommandExecutionStatus, DynamicToolCallStatus, ItemId, McpToolCallStatus,
    PatchApplyStatus, ThreadItem, Turn, TurnError, TurnId, TurnStatus,
};

#[derive(Debug)]
pub(crate) struct TurnBuilder {
    id: TurnId,
    items: Vec<ThreadItem>,
    /// Where the items are, by a hash of their ids, in a turn of many: some hold tens of thousands.
    places: Option<HashMap<u64, usize>>,
    started_at_ms: Option<i64>,
    end: Option<Box<End>>,
}

/// Fewer items than this are found by looking at each.
const FEW: usize = 32;

#[derive(Debug)]
struct End {
    status: TurnStatus,
    error: Option<TurnError>,
    at_ms: i64,
}

impl TurnBuilder {
    pub(crate) fn new(id: TurnId) -> Self {
        Self { id, items: Vec::new(), places: None, started_at_ms: None, end: None }
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
        self.end = Some(Box::new(End { status, error, at_ms }));
    }

    /// An item recorded again replaces its former self and keeps its place.
    pub(crate) fn upsert(&mut self, item: ThreadItem) {
        if let Some(at) = self.place_of(item.id()) {
            self.items[at] = item;
            return;
        }
        if self.items.len() == self.items.capacity() {
            // Most turns have a handful of large items, and a thread has many turns: room to spare adds up.
            self.items.reserve_exact(1 + self.items.len() / 2);
        }
        self.items.push(item);
        if self.items.len() == FEW {
            let places = self.items.iter().map(|item| hash(item.id())).zip(0..);
            self.places = Some(places.collect());
        }
    }

    /// None for an item that is new; its place is noted as the next.
    fn place_of(&mut self, id: &ItemId) -> Option<usize> {
        let items = &self.items;
        let look = || items.iter().position(|item| item.id() == id);
        let Some(places) = &mut self.places else { return look() };
        let at = *places.entry(hash(id)).or_insert(items.len());
        // Two ids of one hash: the second has no entry of its own.
        if items.get(at)?.id() == id { Some(at) } else { look() }
    }

    pub(crate) fn finish(self) -> Turn {
        let Self { id, mut items, started_at_ms, end, .. } = self;
        // Nothing runs any more in a turn that is read from disk.
        items.iter_mut().for_each(settle);
        let duration_ms = match (started_at_ms, &end) {
            (Some(started), Some(end)) => Some(end.at_ms.saturating_sub(started).max(0)),
            _ => None,
        };
        let completed_at = end.as_ref().map(|end| end.at_ms.div_euclid(1_000));
        let (status, error) = match end.map(|end| *end) {
            Some(End { status: TurnStatus::InProgress, error, .. }) => (TurnStatus::Interrupted, error),
            Some(End { status, error, .. }) => (status, error),
            None => (TurnStatus::Interrupted, None),
        };
        let started_at = started_at_ms.map(|at_ms| at_ms.div_euclid(1_000));
        Turn { id, items, status, error, started_at, completed_at, duration_ms }
    }
}

fn hash(id: &ItemId) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A tool that was running when its turn stopped being one: it never said that it succeeded.
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
