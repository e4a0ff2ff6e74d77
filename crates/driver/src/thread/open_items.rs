//! Items that clients saw start and not end. Some of them are not recorded, and the record does not say which are still
//! running.

use protocol::{ServerNotification, ThreadItem, Turn, TurnId};

#[derive(Debug, Default)]
pub(crate) struct OpenItems(Vec<(TurnId, ThreadItem)>);

impl OpenItems {
    /// Updates from the next notification.
    pub(crate) fn note(&mut self, told: &ServerNotification) {
        match told {
            ServerNotification::ItemStarted(begun) if is_call(&begun.item) => {
                self.0.retain(|(_, item)| item.id() != begun.item.id());
                self.0.push((begun.turn_id.clone(), begun.item.clone()));
            }
            ServerNotification::ItemCompleted(ended) => {
                self.0.retain(|(turn_id, item)| (turn_id, item.id()) != (&ended.turn_id, ended.item.id()));
            }
            // A suspended turn runs nothing; resuming it starts its items again.
            ServerNotification::TurnSuspended(suspended) => {
                self.0.retain(|(turn_id, _)| *turn_id != suspended.turn_id);
            }
            _ => {}
        }
    }

    /// Inserts them into turns that were read from the record.
    pub(crate) fn show_in(&self, turns: &mut [Turn]) {
        for (turn_id, item) in &self.0 {
            let Some(turn) = turns.iter_mut().rfind(|turn| turn.id == *turn_id) else { continue };
            match turn.items.iter_mut().find(|known| known.id() == item.id()) {
                Some(known) => known.clone_from(item),
                None => turn.items.push(item.clone()),
            }
        }
    }
}

fn is_call(item: &ThreadItem) -> bool {
    matches!(
        item,
        ThreadItem::CommandExecution { .. }
            | ThreadItem::FileChange { .. }
            | ThreadItem::McpToolCall { .. }
            | ThreadItem::DynamicToolCall { .. }
            | ThreadItem::CollabAgentToolCall { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(method: &str, turn_id: &str, item: &Value) -> ServerNotification {
        let mut params = json!({"threadId": "t", "turnId": turn_id, "item": item});
        match method {
            "item/started" => {
                params["startedAtMs"] = json!(1);
                ServerNotification::ItemStarted(serde_json::from_value(params).expect("begun"))
            }
            _ => {
                params["completedAtMs"] = json!(1);
                ServerNotification::ItemCompleted(serde_json::from_value(params).expect("ended"))
            }
        }
    }

    fn call(id: &str, status: &str) -> Value {
        json!({"type": "dynamicToolCall", "id": id, "tool": "x", "arguments": {}, "status": status,
               "contentItems": null, "success": null, "durationMs": null})
    }

    fn shown(open: &OpenItems, items: &Value) -> Value {
        let turn = json!({"id": "u1", "items": items, "status": "inProgress", "error": null});
        let mut turns: Vec<Turn> = serde_json::from_value(json!([turn])).expect("turns");
        open.show_in(&mut turns);
        let items = turns[0].items.iter().map(|item| {
            let item = serde_json::to_value(item).expect("plain data");
            json!([item["id"], item["status"]])
        });
        items.collect()
    }

    #[test]
    fn a_started_item_is_in_progress_until_it_ends() {
        let mut open = OpenItems::default();
        for id in ["a", "b"] {
            open.note(&told("item/started", "u1", &call(id, "inProgress")));
        }
        let message =
            json!({"type": "agentMessage", "id": "m", "text": "", "phase": null, "memoryCitation": null});
        open.note(&told("item/started", "u1", &message));
        let recorded = json!([call("a", "failed"), call("z", "completed")]);
        let expected = json!([["a", "inProgress"], ["z", "completed"], ["b", "inProgress"]]);
        assert_eq!(shown(&open, &recorded), expected);
        open.note(&told("item/completed", "u1", &call("a", "completed")));
        open.note(&told("item/completed", "u2", &call("b", "completed")));
        assert_eq!(shown(&open, &json!([])), json!([["b", "inProgress"]]));
        let suspended = json!({"threadId": "t", "turnId": "u1", "pendingOperations": []});
        open.note(&ServerNotification::TurnSuspended(serde_json::from_value(suspended).expect("put away")));
        assert_eq!(shown(&open, &json!([])), json!([]));
    }
}
