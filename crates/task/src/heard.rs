//! How much of a turn a client has heard through another host. When that host dies, what it had recorded and not passed on is
//! read from the store, and told once.

use std::collections::BTreeSet;

use protocol::{
    ItemCompleted, ItemCompletedNotification, ItemId, NotificationMethod, RequestMethod, ServerNotification,
    ThreadId, ThreadItem, ThreadResume, Turn, TurnCompleted, TurnCompletedNotification, TurnId, TurnStart,
    TurnStarted, TurnStatus,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Ends of items that are kept for one turn. Of a turn with more, some may be told twice.
const MAX_ITEMS: usize = 10_000;

/// The last turn of one thread, as far as one client has heard of it.
#[derive(Debug, Default)]
pub struct HeardTurn {
    /// The client waits for the end of a turn.
    is_running: bool,
    /// Unknown for one that was under way when the client began to listen.
    turn: Option<TurnId>,
    /// Items of it whose end the client has heard.
    ended: BTreeSet<ItemId>,
    /// The last turn whose end it has heard.
    last_ended: Option<TurnId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventHead {
    #[serde(default)]
    turn_id: Option<TurnId>,
    #[serde(default)]
    turn: Option<TurnHead>,
    #[serde(default)]
    item: Option<ItemHead>,
}

#[derive(Deserialize)]
struct TurnHead {
    id: TurnId,
}

#[derive(Deserialize)]
struct ItemHead {
    id: ItemId,
}

#[derive(Deserialize)]
struct OpeningAnswer {
    thread: OpeningThread,
}

#[derive(Deserialize)]
struct OpeningThread {
    status: OpeningStatus,
}

#[derive(Deserialize)]
struct OpeningStatus {
    r#type: String,
}

impl HeardTurn {
    /// The client's own request was answered.
    pub fn answered(&mut self, method: &str, result: &RawValue) {
        match method {
            ThreadResume::METHOD => {
                let opening = serde_json::from_str::<OpeningAnswer>(result.get());
                self.is_running = opening.is_ok_and(|opening| opening.thread.status.r#type == "active");
            }
            TurnStart::METHOD => {
                let head = serde_json::from_str::<EventHead>(result.get()).ok();
                // The answer may come after the end of its turn.
                if let Some(turn) = head.and_then(|head| head.turn)
                    && self.last_ended.as_ref() != Some(&turn.id)
                {
                    self.begin(turn.id);
                }
            }
            _ => {}
        }
    }

    /// The client is about to hear this. False when it has heard so before.
    pub fn note(&mut self, method: &str, params: &RawValue) -> bool {
        if ![TurnStarted::METHOD, ItemCompleted::METHOD, TurnCompleted::METHOD].contains(&method) {
            return true;
        }
        let Ok(head) = serde_json::from_str::<EventHead>(params.get()) else { return true };
        let turn = head.turn.map(|turn| turn.id).or(head.turn_id);
        match (method, turn, head.item) {
            (TurnStarted::METHOD, Some(turn), _) => {
                self.begin(turn);
                true
            }
            (TurnCompleted::METHOD, Some(turn), _) => self.end(turn),
            // A terminal that outlives its turn belongs to none that runs.
            (ItemCompleted::METHOD, Some(turn), Some(item)) if self.is_of(&turn) => self.end_item(item.id),
            _ => true,
        }
    }

    /// Whether the client waits for the end of a turn.
    pub fn is_running(&self) -> bool {
        self.is_running
    }

    /// Ends that the record has and the client has not heard, as notifications. `turns` are those of the record, without
    /// items that have not ended.
    pub fn catch_up(&mut self, thread: &ThreadId, turns: Vec<Turn>) -> Vec<ServerNotification> {
        let is_wanted = |turn: &Turn| self.turn.as_ref().is_none_or(|wanted| turn.id == *wanted);
        let found = turns.into_iter().rfind(is_wanted).filter(|_| self.is_running);
        let Some(mut turn) = found else { return Vec::new() };
        let at_ms = turn.completed_at.or(turn.started_at).unwrap_or_default().saturating_mul(1_000);
        let mut missed = Vec::new();
        for item in std::mem::take(&mut turn.items) {
            // Prompts of hooks are shown with the history only.
            if !matches!(item, ThreadItem::HookPrompt { .. }) && self.end_item(item.id().clone()) {
                missed.push(ServerNotification::ItemCompleted(ItemCompletedNotification {
                    item,
                    thread_id: thread.clone(),
                    turn_id: turn.id.clone(),
                    completed_at_ms: at_ms,
                }));
            }
        }
        if turn.status != TurnStatus::InProgress && self.end(turn.id.clone()) {
            turn.plan = None;
            let told = TurnCompletedNotification { thread_id: thread.clone(), turn, cost: None };
            missed.push(ServerNotification::TurnCompleted(told));
        }
        missed
    }

    fn is_of(&self, turn: &TurnId) -> bool {
        self.turn.as_ref().is_none_or(|running| running == turn)
    }

    fn begin(&mut self, turn: TurnId) {
        self.is_running = true;
        // One that another runtime takes up begins again.
        if self.turn.as_ref() != Some(&turn) {
            self.ended.clear();
            self.turn = Some(turn);
        }
    }

    fn end(&mut self, turn: TurnId) -> bool {
        if self.last_ended.as_ref() == Some(&turn) {
            return false;
        }
        if self.is_of(&turn) {
            (self.is_running, self.turn) = (false, None);
            self.ended.clear();
        }
        self.last_ended = Some(turn);
        true
    }

    fn end_item(&mut self, item: ItemId) -> bool {
        self.ended.len() >= MAX_ITEMS || self.ended.insert(item)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        to_raw_value(value).expect("JSON")
    }

    fn hear(heard: &mut HeardTurn, method: &str, params: &Value) -> bool {
        heard.note(method, &raw(params))
    }

    fn message(id: &str) -> Value {
        json!({ "type": "agentMessage", "id": id, "text": "hello", "phase": null, "memoryCitation": null })
    }

    fn turn(id: &str, status: &str, items: &[Value]) -> Turn {
        let turn = json!({
            "id": id, "items": items, "status": status, "error": null, "startedAt": 5, "completedAt": null, "durationMs": null,
        });
        protocol::from_value(&turn).expect("a turn")
    }

    /// As words.
    fn missed(heard: &mut HeardTurn, turns: &[Turn]) -> Vec<String> {
        let thread = ThreadId::new("t");
        let word = |told: ServerNotification| match told {
            ServerNotification::ItemCompleted(told) => told.item.id().to_string(),
            ServerNotification::TurnCompleted(told) => {
                assert!(told.turn.items.is_empty());
                format!("end of {}", told.turn.id)
            }
            other => panic!("{other:?}"),
        };
        heard.catch_up(&thread, turns.to_vec()).into_iter().map(word).collect()
    }

    #[test]
    fn what_was_recorded_and_not_passed_on_is_told_once() {
        let mut heard = HeardTurn::default();
        assert!(hear(&mut heard, "turn/started", &json!({"turn": {"id": "u2"}})));
        for id in ["a", "b"] {
            assert!(hear(&mut heard, "item/completed", &json!({"turnId": "u2", "item": message(id)})));
        }
        let done = turn("u1", "completed", &[message("old")]);
        let ended = [message("a"), message("b"), message("c")];
        let turns = [done.clone(), turn("u2", "inProgress", &ended)];
        assert_eq!(missed(&mut heard, &turns), ["c"]);
        assert_eq!(missed(&mut heard, &turns), [""; 0]);
        assert!(!hear(&mut heard, "item/completed", &json!({"turnId": "u2", "item": message("c")})));
        assert!(hear(&mut heard, "item/completed", &json!({"turnId": "u1", "item": message("c")})));
        let ended = [done, turn("u2", "completed", &[message("c"), message("d")])];
        assert_eq!(missed(&mut heard, &ended), ["d", "end of u2"]);
        assert!(!heard.is_running());
        assert!(!hear(&mut heard, "turn/completed", &json!({"turn": {"id": "u2"}})));
        assert_eq!(missed(&mut heard, &ended), [""; 0]);
    }

    #[test]
    fn a_turn_that_another_runtime_takes_up_is_the_same_turn() {
        let mut heard = HeardTurn::default();
        for _ in 0..2 {
            assert!(hear(&mut heard, "turn/started", &json!({"turn": {"id": "u"}})));
            hear(&mut heard, "item/completed", &json!({"turnId": "u", "item": message("a")}));
        }
        assert_eq!(missed(&mut heard, &[turn("u", "inProgress", &[message("a")])]), [""; 0]);
        assert!(hear(&mut heard, "turn/started", &json!({"turn": {"id": "v"}})));
        assert_eq!(missed(&mut heard, &[turn("v", "inProgress", &[message("a")])]), ["a"]);
    }

    #[test]
    fn answers_tell_whether_a_turn_runs() {
        let mut heard = HeardTurn::default();
        let ended = [turn("u", "failed", &[])];
        let opening = |kind: &str| raw(&json!({"thread": {"status": {"type": kind}}}));
        heard.answered("thread/resume", &opening("idle"));
        assert_eq!(missed(&mut heard, &ended), [""; 0], "nobody waits for it");
        heard.answered("thread/resume", &opening("active"));
        assert_eq!(missed(&mut heard, &ended), ["end of u"]);
        heard.answered("turn/start", &raw(&json!({"turn": {"id": "u"}})));
        assert!(!heard.is_running(), "the answer came after the end");
        heard.answered("turn/start", &raw(&json!({"turn": {"id": "v"}})));
        assert!(heard.is_running());
    }
}
