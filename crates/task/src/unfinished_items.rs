//! Items that have begun and not ended, with what they hold so far. Records have an item once it is over; whoever joins in
//! the middle of one gets the rest from here.

use std::collections::HashMap;

use parking_lot::Mutex;
use protocol::{
    AgentMessageDelta, CommandExecutionOutputDelta, ItemCompleted, ItemCompletedNotification, ItemId,
    ItemStarted, ItemStartedNotification, NotificationMethod, PlanDelta, ReasoningSummaryTextDelta,
    ReasoningTextDelta, ServerNotification, ThreadClosed, ThreadId, ThreadItem, TurnCompleted,
    TurnPlanUpdated, TurnPlanUpdatedNotification, TurnStarted, TurnSuspended,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Of a text that grows no more than its end is kept: as much as a person looks at.
const MAX_TEXT: usize = 512 * 1024;
/// Parts of reasoning that are kept apart.
const MAX_PARTS: usize = 1_000;
/// Open items of one thread. Of more, the oldest are left to the records.
const MAX_ITEMS: usize = 64;
/// Texts of all threads together. Beyond it, a thread that goes on is no longer kept.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct UnfinishedItems {
    state: Mutex<UnfinishedState>,
}

#[derive(Debug, Default)]
struct UnfinishedState {
    threads: HashMap<ThreadId, UnfinishedThread>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct UnfinishedThread {
    items: Vec<ItemStartedNotification>,
    plan: Option<TurnPlanUpdatedNotification>,
    bytes: usize,
}

impl UnfinishedItems {
    /// A notification of a runtime in this process.
    pub fn note(&self, thread: &ThreadId, notification: &ServerNotification) {
        use ServerNotification as N;
        match notification {
            N::ItemStarted(told) => self.began(thread, told.clone()),
            N::ItemCompleted(told) => self.ended(thread, told.item.id()),
            N::TurnPlanUpdated(told) => self.planned(thread, told.clone()),
            N::TurnStarted(_) | N::TurnCompleted(_) | N::TurnSuspended(_) | N::ThreadClosed(_) => {
                self.forget(thread);
            }
            delta => self.grew(thread, delta),
        }
    }

    /// A notification that a host passes on. What it adds to a text is given back as what it was read as.
    pub fn note_relayed(
        &self,
        thread: &ThreadId,
        method: &str,
        params: &RawValue,
    ) -> Option<ServerNotification> {
        match method {
            ItemStarted::METHOD => self.began(thread, read(params)?),
            ItemCompleted::METHOD => self.ended(thread, read::<ItemCompletedNotification>(params)?.item.id()),
            TurnPlanUpdated::METHOD => self.planned(thread, read(params)?),
            TurnStarted::METHOD | TurnCompleted::METHOD | TurnSuspended::METHOD | ThreadClosed::METHOD => {
                self.forget(thread);
            }
            _ => {
                let delta = delta_of(method, params)?;
                self.grew(thread, &delta);
                return Some(delta);
            }
        }
        None
    }

    pub fn forget(&self, thread: &ThreadId) {
        let mut state = self.state.lock();
        if let Some(gone) = state.threads.remove(thread) {
            state.bytes -= gone.bytes;
        }
    }

    /// As they would be notified now, the oldest first.
    pub fn of(&self, thread: &ThreadId) -> Vec<ServerNotification> {
        let state = self.state.lock();
        let Some(live) = state.threads.get(thread) else { return Vec::new() };
        let items = live.items.iter().cloned().map(ServerNotification::ItemStarted);
        items.chain(live.plan.clone().map(ServerNotification::TurnPlanUpdated)).collect()
    }

    fn began(&self, thread: &ThreadId, told: ItemStartedNotification) {
        self.change(thread, |live| {
            live.remove(told.item.id());
            if live.items.len() >= MAX_ITEMS {
                live.bytes -= live.items.first().map_or(0, |oldest| size(&oldest.item));
                live.items.remove(0);
            }
            live.bytes += size(&told.item);
            live.items.push(told);
        });
    }

    fn ended(&self, thread: &ThreadId, item: &ItemId) {
        self.change(thread, |live| live.remove(item));
    }

    fn planned(&self, thread: &ThreadId, told: TurnPlanUpdatedNotification) {
        self.change(thread, |live| live.plan = Some(told));
    }

    fn grew(&self, thread: &ThreadId, delta: &ServerNotification) {
        use ServerNotification as N;
        let (item, text, part) = match delta {
            N::AgentMessageDelta(told) => (&told.item_id, &told.delta, 0),
            N::PlanDelta(told) => (&told.item_id, &told.delta, 0),
            N::CommandExecutionOutputDelta(told) => (&told.item_id, &told.delta, 0),
            N::ReasoningSummaryTextDelta(told) => (&told.item_id, &told.delta, told.summary_index),
            N::ReasoningTextDelta(told) => (&told.item_id, &told.delta, told.content_index),
            _ => return,
        };
        let is_summary = matches!(delta, N::ReasoningSummaryTextDelta(_));
        let mut state = self.state.lock();
        let UnfinishedState { threads, bytes } = &mut *state;
        let Some(live) = threads.get_mut(thread) else { return };
        let found = live.items.iter_mut().rfind(|open| open.item.id() == item);
        let Some(grown) = found.and_then(|open| text_of(&mut open.item, is_summary, part)) else { return };
        let before = grown.len();
        grown.push_str(text);
        keep_end(grown);
        live.bytes = live.bytes + grown.len() - before;
        *bytes = *bytes + grown.len() - before;
        let is_too_much = *bytes > MAX_TOTAL;
        drop(state);
        if is_too_much {
            self.forget(thread);
        }
    }

    fn change(&self, thread: &ThreadId, change: impl FnOnce(&mut UnfinishedThread)) {
        let mut state = self.state.lock();
        let mut live = state.threads.remove(thread).unwrap_or_default();
        state.bytes -= live.bytes;
        change(&mut live);
        let is_empty = live.items.is_empty() && live.plan.is_none();
        if !is_empty && state.bytes + live.bytes <= MAX_TOTAL {
            state.bytes += live.bytes;
            state.threads.insert(thread.clone(), live);
        }
    }
}

impl UnfinishedThread {
    fn remove(&mut self, item: &ItemId) {
        if let Some(at) = self.items.iter().position(|open| open.item.id() == item) {
            self.bytes -= size(&self.items[at].item);
            self.items.remove(at);
        }
    }
}

fn read<P: DeserializeOwned>(params: &RawValue) -> Option<P> {
    serde_json::from_str(params.get()).ok()
}

fn delta_of(method: &str, params: &RawValue) -> Option<ServerNotification> {
    use ServerNotification as N;
    Some(match method {
        AgentMessageDelta::METHOD => N::AgentMessageDelta(read(params)?),
        PlanDelta::METHOD => N::PlanDelta(read(params)?),
        CommandExecutionOutputDelta::METHOD => N::CommandExecutionOutputDelta(read(params)?),
        ReasoningSummaryTextDelta::METHOD => N::ReasoningSummaryTextDelta(read(params)?),
        ReasoningTextDelta::METHOD => N::ReasoningTextDelta(read(params)?),
        _ => return None,
    })
}

/// The text of an item that grows.
fn text_of(item: &mut ThreadItem, is_summary: bool, part: i64) -> Option<&mut String> {
    match item {
        ThreadItem::AgentMessage { text, .. } | ThreadItem::Plan { text, .. } => Some(text),
        ThreadItem::CommandExecution { aggregated_output, .. } => {
            Some(aggregated_output.get_or_insert_default())
        }
        ThreadItem::Reasoning { summary, content, .. } => {
            let parts = if is_summary { summary } else { content };
            let at = usize::try_from(part).ok().filter(|at| *at < MAX_PARTS)?;
            if parts.len() <= at {
                parts.resize_with(at + 1, String::new);
            }
            parts.get_mut(at)
        }
        _ => None,
    }
}

/// Cuts the beginning of what became too long, and half of it at once: cutting is rare then.
fn keep_end(text: &mut String) {
    if text.len() > MAX_TEXT {
        let cut = text.ceil_char_boundary(text.len() - MAX_TEXT / 2);
        text.drain(..cut);
    }
}

/// About as many bytes as its texts have.
fn size(item: &ThreadItem) -> usize {
    match item {
        ThreadItem::AgentMessage { text, .. } | ThreadItem::Plan { text, .. } => text.len(),
        ThreadItem::CommandExecution { aggregated_output, .. } => {
            aggregated_output.as_ref().map_or(0, String::len)
        }
        ThreadItem::Reasoning { summary, content, .. } => {
            summary.iter().chain(content).map(String::len).sum()
        }
        ThreadItem::FileChange { changes, .. } => changes.iter().map(|change| change.diff.len()).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use protocol::NotificationMethod;
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).expect("JSON")
    }

    /// The texts that are sent to somebody who joins now.
    fn shown(live: &UnfinishedItems, thread: &ThreadId) -> Vec<String> {
        let text = |told: ServerNotification| match told {
            ServerNotification::ItemStarted(told) => match told.item {
                ThreadItem::AgentMessage { text, .. } => text,
                ThreadItem::CommandExecution { aggregated_output, .. } => {
                    aggregated_output.unwrap_or_default()
                }
                ThreadItem::Reasoning { summary, .. } => summary.join("|"),
                other => format!("{other:?}"),
            },
            ServerNotification::TurnPlanUpdated(told) => format!("a plan of {}", told.plan.len()),
            other => format!("{other:?}"),
        };
        live.of(thread).into_iter().map(text).collect()
    }

    fn message(id: &str) -> Value {
        json!({ "type": "agentMessage", "id": id, "text": "", "phase": null, "memoryCitation": null })
    }

    fn notification(method: &str, params: &Value) -> ServerNotification {
        use ServerNotification as N;
        fn of<T: DeserializeOwned>(params: &Value) -> T {
            protocol::from_value(params).expect("a notification")
        }
        match method {
            ItemStarted::METHOD => N::ItemStarted(of(params)),
            ItemCompleted::METHOD => N::ItemCompleted(of(params)),
            TurnPlanUpdated::METHOD => N::TurnPlanUpdated(of(params)),
            AgentMessageDelta::METHOD => N::AgentMessageDelta(of(params)),
            CommandExecutionOutputDelta::METHOD => N::CommandExecutionOutputDelta(of(params)),
            ReasoningSummaryTextDelta::METHOD => N::ReasoningSummaryTextDelta(of(params)),
            other => panic!("{other} is not in these tests"),
        }
    }

    /// Tells the same by both ways.
    struct Told {
        relayed: UnfinishedItems,
        own: UnfinishedItems,
        thread: ThreadId,
    }

    impl Told {
        fn new() -> Self {
            let thread = ThreadId::new("t");
            Self { relayed: UnfinishedItems::default(), own: UnfinishedItems::default(), thread }
        }

        fn tell(&self, method: &str, mut params: Value) {
            params["threadId"] = json!("t");
            params["turnId"] = json!("u");
            self.relayed.note_relayed(&self.thread, method, &raw(&params));
            self.own.note(&self.thread, &notification(method, &params));
        }

        fn check(&self, expected: &[&str]) {
            assert_eq!(shown(&self.relayed, &self.thread), expected);
            assert_eq!(shown(&self.own, &self.thread), expected);
        }
    }

    #[test]
    fn who_joins_gets_what_is_open_as_far_as_it_has_grown() {
        let told = Told::new();
        told.tell(ItemStarted::METHOD, json!({ "item": message("a"), "startedAtMs": 1 }));
        for delta in ["one ", "two "] {
            told.tell(AgentMessageDelta::METHOD, json!({ "itemId": "a", "delta": delta }));
        }
        told.check(&["one two "]);
        let command = json!({
            "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/", "processId": null, "source": "agent",
            "status": "inProgress", "commandActions": [], "aggregatedOutput": null, "exitCode": null, "durationMs": null,
        });
        told.tell(ItemStarted::METHOD, json!({ "item": command, "startedAtMs": 1 }));
        told.tell(CommandExecutionOutputDelta::METHOD, json!({ "itemId": "c", "delta": "line" }));
        told.tell(TurnPlanUpdated::METHOD, json!({ "explanation": null, "plan": [] }));
        told.check(&["one two ", "line", "a plan of 0"]);
        told.tell(ItemCompleted::METHOD, json!({ "item": message("a"), "completedAtMs": 2 }));
        told.check(&["line", "a plan of 0"]);
        // Of an item that nobody began, nothing is kept.
        told.tell(AgentMessageDelta::METHOD, json!({ "itemId": "b", "delta": "lost" }));
        told.check(&["line", "a plan of 0"]);
        told.own.forget(&told.thread);
        assert!(told.own.of(&told.thread).is_empty());
        assert_eq!(told.own.state.lock().bytes, 0);
    }

    #[test]
    fn parts_of_reasoning_are_kept_apart() {
        let told = Told::new();
        let reasoning = json!({ "type": "reasoning", "id": "r", "summary": [], "content": [] });
        told.tell(ItemStarted::METHOD, json!({ "item": reasoning, "startedAtMs": 1 }));
        for (index, delta) in [(0, "a"), (1, "b"), (0, "c"), (1_000_000, "far away")] {
            let params = json!({ "itemId": "r", "delta": delta, "summaryIndex": index });
            told.tell(ReasoningSummaryTextDelta::METHOD, params);
        }
        told.check(&["ac|b"]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let told = Told::new();
        told.tell(ItemStarted::METHOD, json!({ "item": message("a"), "startedAtMs": 1 }));
        let piece = "é".repeat(100_000);
        for _ in 0..20 {
            told.tell(AgentMessageDelta::METHOD, json!({ "itemId": "a", "delta": piece }));
        }
        for live in [&told.relayed, &told.own] {
            let kept: usize = shown(live, &told.thread).iter().map(String::len).sum();
            assert!((1..=MAX_TEXT).contains(&kept), "{kept}");
            assert_eq!(live.state.lock().bytes, kept);
        }
        for id in 0..2 * MAX_ITEMS {
            told.tell(ItemStarted::METHOD, json!({ "item": message(&id.to_string()), "startedAtMs": 1 }));
        }
        assert_eq!(told.own.of(&told.thread).len(), MAX_ITEMS);
        assert_eq!(told.own.state.lock().bytes, 0);
    }
}
