//! From records to a history: the model's items, the clients' turns, and the summary.

use oarlock_journal::{HistoryBuilder, JournalEntry, ThreadHistory};
use protocol::{ContentItem, ResponseItem};
use serde_json::{Value, json};

use crate::support::{NOW, ended, meta, meta_with, record, started, thread_id, told, user};

fn history(records: &[Value]) -> ThreadHistory {
    let mut builder = HistoryBuilder::new(Some(thread_id(1)));
    for (seq, json) in (1..).zip(records) {
        let at_ms = NOW + i64::try_from(seq).unwrap();
        builder.add(JournalEntry { seq, at_ms, record: record(json.clone()).into() });
    }
    builder.finish()
}

/// The model's view, as one line of texts.
fn model(history: &ThreadHistory) -> String {
    let text = |item: &ResponseItem| match item {
        ResponseItem::Message { content, .. } => match &content[..] {
            [ContentItem::OutputText { text }] => text.clone(),
            _ => "?".to_owned(),
        },
        _ => "?".to_owned(),
    };
    history.model.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// The clients' view: each turn with its status and items.
fn turns(history: &ThreadHistory) -> String {
    let turns = history.turns.iter().map(|turn| {
        let status = serde_json::to_value(turn.status).unwrap();
        let items = turn.items.iter().map(|item| {
            let item = serde_json::to_value(item).unwrap();
            format!("{}={}", item["id"].as_str().unwrap(), item["status"].as_str().unwrap_or("-"))
        });
        format!("{}:{}[{}]", turn.id, status.as_str().unwrap(), items.collect::<Vec<_>>().join(" "))
    });
    turns.collect::<Vec<_>>().join(" ")
}

fn check(records: &[Value], expected_model: &str, expected_turns: &str) {
    let history = history(records);
    assert_eq!(model(&history), expected_model);
    assert_eq!(turns(&history), expected_turns);
}

fn command(turn: &str, id: &str, status: &str) -> Value {
    let item = json!({"type": "commandExecution", "id": id, "command": "ls", "cwd": "/", "processId": null,
        "status": status, "commandActions": [], "aggregatedOutput": null, "exitCode": null, "durationMs": null});
    json!({"kind": "threadItem", "turnId": turn, "item": item})
}

fn compacted(turn: &str, texts: &[&str]) -> Value {
    let items: Vec<Value> = texts.iter().map(|text| told(turn, text)["item"].clone()).collect();
    json!({"kind": "compacted", "turnId": turn, "summary": "s", "replacement": items})
}

fn rolled_back(turns: u32) -> Value {
    json!({"kind": "rolledBack", "numTurns": turns})
}

#[test]
fn turns_keep_their_items_statuses_and_errors() {
    let error = json!({"message": "no space", "codexErrorInfo": "other", "additionalDetails": null});
    let mut failed = ended("b", "failed");
    failed["error"] = error.clone();
    let records = [
        meta(&thread_id(1)),
        started("a"),
        user("a", "hi"),
        told("a", "A1"),
        command("a", "c1", "inProgress"),
        command("a", "c1", "completed"),
        ended("a", "completed"),
        started("b"),
        command("b", "c2", "failed"),
        failed,
    ];
    check(&records, "A1", "a:completed[a-u=- c1=completed] b:failed[c2=failed]");
    let turn = serde_json::to_value(&history(&records).turns[1]).unwrap();
    assert_eq!(turn["error"], error);
    assert_eq!(
        (&turn["startedAt"], &turn["completedAt"], &turn["durationMs"]),
        (&json!(NOW / 1_000), &json!((NOW + 1_500) / 1_000), &json!(1_500))
    );
}

#[test]
fn a_turn_has_the_last_plan_of_the_agent() {
    let call = |turn: &str, arguments: &str| {
        let item =
            json!({"type": "function_call", "name": "update_plan", "arguments": arguments, "call_id": "c"});
        json!({"kind": "responseItem", "turnId": turn, "item": item})
    };
    let records = [
        started("a"),
        call(
            "a",
            r#"{"plan": [{"step": "look", "status": "in_progress"}, {"step": "mend", "status": "pending"}]}"#,
        ),
        call(
            "a",
            r#"{"plan": [{"step": "look", "status": "completed"}, {"step": "mend", "status": "in_progress"}]}"#,
        ),
        call("a", r#"{"plan": "not a plan"}"#),
        ended("a", "completed"),
        started("b"),
        told("b", "B1"),
        ended("b", "completed"),
    ];
    let turns = serde_json::to_value(history(&records).turns).unwrap();
    let expected = json!([{"step": "look", "status": "completed"}, {"step": "mend", "status": "inProgress"}]);
    assert_eq!(turns[0]["plan"], expected);
    assert_eq!(turns[1].get("plan"), None);
}

#[test]
fn a_turn_that_never_ended_is_interrupted_and_nothing_in_it_runs() {
    let records = [started("a"), user("a", "hi"), command("a", "c1", "inProgress")];
    check(&records, "", "a:interrupted[a-u=- c1=failed]");
    assert_eq!(history(&records).unfinished_turn.unwrap().as_str(), "a");
    let resumed = [&records[..], &[started("a"), command("a", "c1", "completed"), ended("a", "completed")]];
    check(&resumed.concat(), "", "a:completed[a-u=- c1=completed]");
}

#[test]
fn a_late_item_belongs_to_its_own_turn() {
    let records = [started("a"), ended("a", "completed"), started("b"), command("a", "c1", "completed")];
    check(&records, "", "a:completed[c1=completed] b:interrupted[]");
}

#[test]
fn a_lost_beginning_does_not_lose_the_turn() {
    check(&[user("a", "hi"), told("a", "A"), ended("a", "completed")], "A", "a:completed[a-u=-]");
}

#[test]
fn compaction_replaces_what_was_before_it() {
    let records = [
        started("a"),
        told("a", "A1"),
        compacted("a", &["S1", "S2"]),
        told("a", "A2"),
        ended("a", "completed"),
    ];
    check(&records, "S1 S2 A2", "a:completed[]");
}

#[test]
fn rollback_removes_turns_for_model_and_clients() {
    let turn = |id: &str| [started(id), told(id, id), user(id, "x"), ended(id, "completed")];
    let three = [turn("a"), turn("b"), turn("c")].concat();
    let and = |more: &[Value]| [&three[..], more].concat();
    check(&and(&[rolled_back(1)]), "a b", "a:completed[a-u=-] b:completed[b-u=-]");
    check(&and(&[rolled_back(9)]), "", "");
    check(&and(&[rolled_back(2), started("d"), told("d", "d")]), "a d", "a:completed[a-u=-] d:interrupted[]");
    check(&and(&[rolled_back(1), rolled_back(1)]), "a", "a:completed[a-u=-]");
    let late = and(&[rolled_back(1), told("c", "late"), user("c", "late"), ended("c", "completed")]);
    check(&late, "a b", "a:completed[a-u=-] b:completed[b-u=-]");
}

#[test]
fn rolling_back_a_compaction_restores_the_replaced_items() {
    let records = [
        json!({"kind": "responseItem", "turnId": null, "item": told("", "before")["item"]}),
        started("a"),
        told("a", "A"),
        started("b"),
        compacted("b", &["S"]),
        told("b", "B"),
    ];
    check(&records, "S B", "a:interrupted[] b:interrupted[]");
    check(&[&records[..], &[rolled_back(1)]].concat(), "before A", "a:interrupted[]");
    check(&[&records[..], &[rolled_back(2)]].concat(), "before", "");
}

#[test]
fn the_last_settings_are_those_of_the_last_remaining_turn() {
    let context = |turn: &str, model: &str| json!({"kind": "turnContext", "turnId": turn, "context": {"model": model, "effort": "high"}});
    let records = [started("a"), context("a", "m-a"), started("b"), context("b", "m-b")];
    assert_eq!(history(&records).turn_context.unwrap()["model"], "m-b");
    let records = [&records[..], &[rolled_back(1)]].concat();
    assert_eq!(history(&records).turn_context.unwrap()["model"], "m-a");
}

#[test]
fn facts_of_the_thread() {
    let usage = |total: i64| {
        let breakdown = json!({"totalTokens": total, "inputTokens": 2, "cachedInputTokens": 3,
            "outputTokens": 4, "reasoningOutputTokens": 5});
        json!({"kind": "tokenUsage", "turnId": "a", "usage": {"total": breakdown, "last": breakdown,
            "modelContextWindow": 9}})
    };
    let git = json!({"sha": "abc", "branch": null, "originUrl": null});
    let records = [
        meta(&thread_id(1)),
        meta_with(&thread_id(2), json!({"cwd": "/parent"})),
        started("a"),
        user("a", ""),
        user("a", "first words"),
        user("a", "second words"),
        usage(10),
        usage(25),
        json!({"kind": "turnContext", "turnId": "a", "context": {"model": "m-2", "effort": "low"}}),
        json!({"kind": "metadata", "change": {"name": "A name", "gitInfo": git}}),
    ];
    let history = history(&records);
    let summary = &history.summary;
    assert_eq!(summary.preview.as_deref(), Some("first words"));
    assert_eq!(summary.cwd.as_deref(), Some("/work"));
    assert_eq!(summary.tokens, Some(25));
    assert_eq!(summary.model.as_deref(), Some("m-2"));
    assert_eq!(serde_json::to_value(summary.reasoning_effort).unwrap(), "low");
    assert_eq!(summary.name.as_deref(), Some("A name"));
    assert_eq!(summary.git_info.as_ref().unwrap().sha.as_deref(), Some("abc"));
    assert_eq!(summary.created_at_ms, NOW);
    assert_eq!(summary.updated_at_ms, NOW + 9, "an edit is not activity");
    assert_eq!(history.meta.unwrap().thread_id, thread_id(1));
    assert_eq!(history.token_usage.unwrap().total.total_tokens, 25);
}

#[test]
fn operations_that_matter_after_a_restart() {
    let proposed = |id: &str| {
        json!({"kind": "operation", "state": "proposed", "operationId": id, "type": "command", "tool": "shell",
            "itemId": id, "agentPath": [], "arguments": {}, "argumentsDigest": "d", "effects": "once",
            "createdAtMs": NOW})
    };
    let state = |id: &str, state: &str| match state {
        "started" => {
            json!({"kind": "operation", "state": state, "operationId": id, "attempt": 1, "executor": "e"})
        }
        "finished" => json!({"kind": "operation", "state": state, "operationId": id, "attempt": 1,
            "success": true, "output": []}),
        _ => json!({"kind": "operation", "state": state, "operationId": id}),
    };
    let records = [
        started("a"),
        proposed("waits"),
        proposed("unknown"),
        state("unknown", "started"),
        proposed("done"),
        state("done", "started"),
        started("b"),
        state("done", "finished"),
        proposed("gone"),
        state("gone", "withdrawn"),
        proposed("later"),
    ];
    let open = |records: &[Value]| -> Vec<(String, usize)> {
        let operations = history(records).operations;
        operations.iter().map(|open| (open.operation_id.to_string(), open.records.len())).collect()
    };
    // The turn has no end, so the model may not have got what finished in it.
    let kept = |ids: &[(&str, usize)]| ids.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(open(&records), kept(&[("waits", 1), ("unknown", 2), ("done", 3), ("later", 1)]));
    // Nothing in an ended turn is decided any more.
    let ended = [&records[..], &[ended("b", "completed")]].concat();
    assert_eq!(open(&ended), kept(&[("waits", 1), ("unknown", 2)]));
    // A request of a turn that was rolled back no longer counts.
    let records = [&records[..], &[rolled_back(1)]].concat();
    assert!(!open(&records).iter().any(|(id, _)| id == "later"));
    // A resumed turn may still need what finished in it.
    let again = [started("a"), proposed("c"), state("c", "started"), state("c", "finished"), started("a")];
    assert_eq!(open(&again), kept(&[("c", 3)]));
}

#[test]
fn lasting_approvals_belong_to_the_thread() {
    let decided = |id: &str, decision: Value| {
        json!({"kind": "operation", "state": "decided", "operationId": id, "decision": decision,
            "argumentsDigest": "d", "sessionKeys": [id], "decidedAtMs": NOW})
    };
    let own = |call: &str| format!("{}:a:{call}", thread_id(1));
    let records = [
        started("a"),
        decided(&own("once"), json!({"type": "approve", "scope": "call"})),
        decided(&own("kept"), json!({"type": "approve", "scope": "session"})),
        decided(&own("rule"), json!({"type": "approve", "execpolicyAmendment": ["npm", "test"]})),
        decided(&format!("{}:a:copied", thread_id(2)), json!({"type": "approve", "scope": "session"})),
        ended("a", "completed"),
    ];
    let history = history(&records);
    assert_eq!(history.agreed, [own("kept")]);
    assert_eq!(history.amendments, [["npm", "test"]]);
}
