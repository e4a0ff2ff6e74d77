//! A history from the host: exactly as recorded, or rebuilt from what clients saw. Validated like any other input
//! before a thread is opened with it.

use std::collections::HashSet;

use engine::digest_of;
use journal::{HistoryBuilder, JournalEntry, Record, ThreadHistory};
use protocol::{
    ContentItem, HistoryFidelity, ResponseItem, RolloutItem, RolloutRecord, ThreadId, ThreadItem, Turn,
    UserInput,
};
use serde_json::json;

use crate::DelegationError;

/// The newest record format that this release reads.
const NEWEST_SCHEMA: u32 = 1;

/// A history from the host, and its fidelity.
#[derive(Debug)]
pub struct ImportedHistory {
    pub history: ThreadHistory,
    pub entries: Vec<JournalEntry>,
    pub fidelity: HistoryFidelity,
    /// The parts that had to be rebuilt.
    pub rebuilt: Vec<String>,
    /// Digest of what the host sent.
    pub digest: String,
}

impl ImportedHistory {
    /// From the original records.
    pub fn exact(items: Vec<RolloutItem>, of: Option<&ThreadId>) -> Result<Self, DelegationError> {
        let digest = digest_of(&json!(items));
        check(&items, of)?;
        let mut at_ms = 0;
        let mut entries = Vec::with_capacity(items.len());
        for RolloutItem { ordinal, record, .. } in items {
            at_ms = time_of(&record).unwrap_or(at_ms);
            entries.push(JournalEntry { seq: ordinal, at_ms, record: Record::Known(record) });
        }
        let (fidelity, rebuilt) = (HistoryFidelity::Exact, Vec::new());
        Ok(Self { history: read(&entries, of), entries, fidelity, rebuilt, digest })
    }

    /// From the clients' items. The model's context is lost, and is sent again.
    pub fn lossy(turns: Vec<Turn>, thread: &ThreadId) -> Self {
        let digest = digest_of(&json!(turns));
        let mut records = Vec::new();
        let mut dropped = false;
        for turn in turns {
            let at_ms = |seconds: Option<i64>| seconds.unwrap_or(0).saturating_mul(1_000);
            let (began, ended) = (at_ms(turn.started_at), at_ms(turn.completed_at.or(turn.started_at)));
            let turn_id = turn.id.clone();
            records.push(RolloutRecord::TurnStarted { turn_id: turn_id.clone(), at_ms: began });
            for item in turn.items {
                match spoken(&item) {
                    Some(item) => {
                        records.push(RolloutRecord::ResponseItem { turn_id: Some(turn_id.clone()), item });
                    }
                    None => dropped = true,
                }
                records.push(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item });
            }
            let (status, error) = (turn.status, turn.error);
            records.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms: ended });
        }
        let numbered = records.into_iter().zip(0..);
        let entry = |(record, seq)| JournalEntry {
            seq,
            at_ms: time_of(&record).unwrap_or(0),
            record: Record::Known(record),
        };
        let entries: Vec<_> = numbered.map(entry).collect();
        let mut rebuilt = vec!["context".to_owned(), "reasoning".to_owned()];
        rebuilt.extend(dropped.then(|| "toolCalls".to_owned()));
        let fidelity = HistoryFidelity::Lossy;
        Self { history: read(&entries, Some(thread)), entries, fidelity, rebuilt, digest }
    }
}

fn read(entries: &[JournalEntry], thread: Option<&ThreadId>) -> ThreadHistory {
    let mut builder = HistoryBuilder::new(thread.cloned());
    entries.iter().for_each(|entry| builder.add(entry.clone()));
    builder.finish()
}

fn time_of(record: &RolloutRecord) -> Option<i64> {
    match record {
        RolloutRecord::SessionMeta { meta } => Some(meta.created_at_ms),
        RolloutRecord::TurnStarted { at_ms, .. } | RolloutRecord::TurnEnded { at_ms, .. } => Some(*at_ms),
        _ => None,
    }
}

/// The item as the model would have seen it.
fn spoken(item: &ThreadItem) -> Option<ResponseItem> {
    let (role, content) = match item {
        ThreadItem::UserMessage { content, .. } => ("user", content.iter().filter_map(input_of).collect()),
        ThreadItem::AgentMessage { text, .. } => {
            ("assistant", vec![ContentItem::OutputText { text: text.clone() }])
        }
        _ => return None,
    };
    // A user message, even if it looks like context.
    let id = Some(item.id().to_string()).filter(|_| role == "user");
    Some(ResponseItem::Message { id, role: role.to_owned(), content, end_turn: None, phase: None })
}

fn input_of(input: &UserInput) -> Option<ContentItem> {
    match input {
        UserInput::Text { text, .. } => Some(ContentItem::InputText { text: text.clone() }),
        UserInput::Image { url } => Some(ContentItem::InputImage { image_url: url.clone() }),
        UserInput::LocalImage { .. } | UserInput::Skill { .. } | UserInput::Mention { .. } => None,
    }
}

fn check(items: &[RolloutItem], thread: Option<&ThreadId>) -> Result<(), DelegationError> {
    let mut calls: HashSet<&str> = HashSet::new();
    let first = items.first().map_or(0, |item| item.ordinal);
    for (at, (item, expected)) in items.iter().zip(first..).enumerate() {
        let invalid = |code, problem: String| {
            Err(DelegationError::Invalid { code, field: format!("initialItems[{at}]"), problem })
        };
        if item.ordinal != expected {
            return invalid(
                "ordinalConflict",
                format!("has ordinal {}, and {expected} comes next", item.ordinal),
            );
        }
        if item.schema > NEWEST_SCHEMA {
            let problem = format!("has schema {}, and this release reads up to {NEWEST_SCHEMA}", item.schema);
            return invalid("schemaTooNew", problem);
        }
        match &item.record {
            RolloutRecord::SessionMeta { meta } if thread.is_some_and(|thread| meta.thread_id != *thread) => {
                let problem = format!("is of thread {}, which is not the one asked for", meta.thread_id);
                return invalid("invalidHistory", problem);
            }
            RolloutRecord::ResponseItem { item, .. } => {
                if let Some(orphan) = orphan(item, &mut calls) {
                    return invalid(
                        "orphanOutput",
                        format!("is the output of call {orphan}, which is not there"),
                    );
                }
            }
            RolloutRecord::Compacted { replacement, .. } => {
                calls.clear();
                if let Some(orphan) = replacement.iter().find_map(|item| orphan(item, &mut calls)) {
                    return invalid(
                        "orphanOutput",
                        format!("keeps the output of call {orphan} without the call"),
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The id of the missing call, if the item is an output without a call.
fn orphan<'a>(item: &'a ResponseItem, calls: &mut HashSet<&'a str>) -> Option<&'a str> {
    match item {
        ResponseItem::FunctionCall { call_id, .. } | ResponseItem::CustomToolCall { call_id, .. } => {
            calls.insert(call_id);
            None
        }
        ResponseItem::LocalShellCall { call_id, id, .. } => {
            calls.extend(call_id.as_deref().or(id.as_deref()));
            None
        }
        ResponseItem::FunctionCallOutput { call_id, .. }
        | ResponseItem::CustomToolCallOutput { call_id, .. } => {
            (!calls.contains(call_id.as_str())).then_some(call_id.as_str())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: &str = "0199e0a0-0000-7000-8000-000000000001";

    fn items(records: serde_json::Value) -> Vec<RolloutItem> {
        serde_json::from_value(records).expect("items")
    }

    fn problem(records: serde_json::Value) -> String {
        let error =
            ImportedHistory::exact(items(records), Some(&ThreadId::new(THREAD))).expect_err("refused");
        format!("{}: {error}", error.code())
    }

    #[test]
    fn invalid_histories_are_refused_by_field() {
        let output = json!({ "type": "function_call_output", "call_id": "c", "output": "x" });
        let cases = [
            (
                json!([{ "ordinal": 0, "kind": "responseItem", "turnId": null, "item": output }]),
                "orphanOutput: initialItems[0] is the output of call c, which is not there",
            ),
            (
                json!([
                    { "ordinal": 3, "kind": "turnStarted", "turnId": "u", "atMs": 1 },
                    { "ordinal": 5, "kind": "turnStarted", "turnId": "v", "atMs": 1 },
                ]),
                "ordinalConflict: initialItems[1] has ordinal 5, and 4 comes next",
            ),
            (
                json!([{ "ordinal": 0, "schema": 2, "kind": "turnStarted", "turnId": "u", "atMs": 1 }]),
                "schemaTooNew: initialItems[0] has schema 2, and this release reads up to 1",
            ),
        ];
        for (records, expected) in cases {
            assert_eq!(problem(records), expected);
        }
    }

    #[test]
    fn messages_are_rebuilt_from_client_items() {
        let turns: Vec<Turn> = serde_json::from_value(json!([{
            "id": "u", "status": "completed", "error": null, "startedAt": 1, "completedAt": 2, "durationMs": 1,
            "items": [
                { "type": "userMessage", "id": "a", "content": [{ "type": "text", "text": "hi" }] },
                { "type": "reasoning", "id": "r", "summary": [], "content": [] },
                { "type": "agentMessage", "id": "b", "text": "hello", "phase": null, "memoryCitation": null },
            ],
        }]))
        .expect("turns");
        let brought = ImportedHistory::lossy(turns, &ThreadId::new(THREAD));
        assert_eq!(brought.history.model.len(), 2);
        assert_eq!(brought.history.turns[0].items.len(), 3);
        assert_eq!(brought.rebuilt, ["context", "reasoning", "toolCalls"]);
        assert_eq!(brought.history.unfinished_turn, None);
    }
}
