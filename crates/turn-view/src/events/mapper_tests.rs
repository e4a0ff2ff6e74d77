//! Notifications, and the lines that are printed for them.
#![allow(clippy::expect_used, reason = "a test may panic")]

use super::*;
use protocol::{
    ConfigWarningNotification, ErrorNotification, ItemCompletedNotification, ItemStartedNotification,
    ModelRerouteReason, ModelReroutedNotification, ThreadTokenUsageUpdatedNotification,
    TurnCompletedNotification, TurnPlanUpdatedNotification, TurnStartedNotification,
};
use serde_json::{Value, json};

/// One notification as a test writes it.
fn heard(kind: &str, mut params: Value) -> ServerNotification {
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    macro_rules! read {
        ($name:ident: $type:ty) => {
            ServerNotification::$name(serde_json::from_value::<$type>(params).expect("a notification"))
        };
    }
    match kind {
        "turn started" => read!(TurnStarted: TurnStartedNotification),
        "turn completed" => read!(TurnCompleted: TurnCompletedNotification),
        "started" => read!(ItemStarted: ItemStartedNotification),
        "completed" => read!(ItemCompleted: ItemCompletedNotification),
        "plan" => read!(TurnPlanUpdated: TurnPlanUpdatedNotification),
        "tokens" => read!(ThreadTokenUsageUpdated: ThreadTokenUsageUpdatedNotification),
        "error" => read!(Error: ErrorNotification),
        "config warning" => read!(ConfigWarning: ConfigWarningNotification),
        other => panic!("no notification {other}"),
    }
}

fn turn(status: &str, error: Option<&str>) -> Value {
    let error = error.map(|message| json!({ "message": message }));
    json!({ "turn": { "id": "u", "items": [], "status": status, "error": error } })
}

fn item(item: impl Into<Value>) -> Value {
    let item: Value = item.into();
    json!({ "item": item })
}

#[track_caller]
fn check(notifications: &[(&str, Value)], expected: &[Value]) {
    let mut mapper = Mapper::default();
    let told = notifications.iter().flat_map(|(kind, params)| mapper.on(&heard(kind, params.clone())));
    let events: Vec<Value> = told.map(|event| json!(event)).collect();
    assert_eq!(events, expected);
}

#[test]
fn a_turn_with_an_answer() {
    let tokens = |input: i64| {
        let total = json!({ "totalTokens": input + 9, "inputTokens": input, "cachedInputTokens": 2,
            "outputTokens": 9, "reasoningOutputTokens": 4 });
        json!({ "tokenUsage": { "total": total, "last": total } })
    };
    let message = |text: &str| item(json!({ "type": "agentMessage", "id": "m", "text": text }));
    check(
        &[
            ("turn started", turn("inProgress", None)),
            ("started", item(json!({ "type": "userMessage", "id": "x", "content": [] }))),
            ("completed", item(json!({ "type": "userMessage", "id": "x", "content": [] }))),
            ("completed", item(json!({ "type": "reasoning", "id": "r", "summary": ["one", " ", "two"] }))),
            ("completed", item(json!({ "type": "reasoning", "id": "r2", "summary": [""] }))),
            ("started", message("")),
            ("completed", message("hello")),
            ("tokens", tokens(10)),
            ("tokens", tokens(30)),
            ("turn completed", turn("completed", None)),
        ],
        &[
            json!({ "type": "turn.started" }),
            json!({ "type": "item.completed", "item": { "id": "item_0", "type": "reasoning", "text": "one\ntwo" } }),
            json!({ "type": "item.completed", "item": { "id": "item_1", "type": "agent_message", "text": "hello" } }),
            json!({ "type": "turn.completed", "usage": { "input_tokens": 30, "cached_input_tokens": 2,
                "output_tokens": 9, "reasoning_output_tokens": 4 } }),
        ],
    );
}

/// Each row is an item as the thread has it, and as the line has it.
#[test]
fn items_begin_and_end_under_one_id() {
    let command = |status: &str, code: Option<i32>| {
        json!({ "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/", "processId": null,
            "status": status, "commandActions": [], "aggregatedOutput": code.map(|_| "a\n"), "exitCode": code })
    };
    let told_command = |status: &str, code: Option<i32>, output: &str| {
        json!({ "id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": output,
            "exit_code": code, "status": status })
    };
    let patch = |status: &str| {
        json!({ "type": "fileChange", "id": "p", "status": status, "changes": [
            { "path": "a", "kind": { "type": "add" }, "diff": "" },
            { "path": "b", "kind": { "type": "update", "move_path": "c" }, "diff": "" },
            { "path": "d", "kind": { "type": "delete" }, "diff": "" }] })
    };
    let told_patch = |status: &str| {
        json!({ "id": "item_0", "type": "file_change", "status": status, "changes": [
            { "path": "a", "kind": "add" }, { "path": "b", "kind": "update" }, { "path": "d", "kind": "delete" }] })
    };
    let mcp = |status: &str, result: Value, error: Value| {
        json!({ "type": "mcpToolCall", "id": "t", "server": "s", "tool": "f", "status": status,
            "arguments": { "a": 1 }, "result": result, "error": error })
    };
    let told_mcp = |status: &str, result: Value, error: Value| {
        json!({ "id": "item_0", "type": "mcp_tool_call", "server": "s", "tool": "f", "arguments": { "a": 1 },
            "result": result, "error": error, "status": status })
    };
    let agents = |status: &str, states: Value| {
        json!({ "type": "collabAgentToolCall", "id": "a", "tool": "resumeAgent", "status": status,
            "senderThreadId": "t", "receiverThreadIds": ["k"], "prompt": null, "agentsStates": states })
    };
    let told_agents = |status: &str, states: Value| {
        json!({ "id": "item_0", "type": "collab_tool_call", "tool": "wait", "sender_thread_id": "t",
            "receiver_thread_ids": ["k"], "prompt": null, "agents_states": states, "status": status })
    };
    let search = |action: Value| json!({ "type": "webSearch", "id": "w", "query": "q", "action": action });
    let told_search =
        |action: Value| json!({ "id": "item_0", "type": "web_search", "query": "q", "action": action });
    let rows = [
        (
            command("inProgress", None),
            told_command("in_progress", None, ""),
            command("failed", Some(2)),
            told_command("failed", Some(2), "a\n"),
        ),
        (
            command("inProgress", None),
            told_command("in_progress", None, ""),
            command("declined", None),
            told_command("declined", None, ""),
        ),
        (patch("inProgress"), told_patch("in_progress"), patch("completed"), told_patch("completed")),
        (patch("inProgress"), told_patch("in_progress"), patch("declined"), told_patch("declined")),
        (
            mcp("inProgress", Value::Null, Value::Null),
            told_mcp("in_progress", Value::Null, Value::Null),
            mcp("completed", json!({ "content": ["x"], "structuredContent": null }), Value::Null),
            told_mcp("completed", json!({ "content": ["x"], "structured_content": null }), Value::Null),
        ),
        (
            mcp("inProgress", Value::Null, Value::Null),
            told_mcp("in_progress", Value::Null, Value::Null),
            mcp("failed", Value::Null, json!({ "message": "no" })),
            told_mcp("failed", Value::Null, json!({ "message": "no" })),
        ),
        (
            agents("inProgress", json!({})),
            told_agents("in_progress", json!({})),
            agents("completed", json!({ "k": { "status": "pendingInit", "message": null } })),
            told_agents("completed", json!({ "k": { "status": "pending_init", "message": null } })),
        ),
        (
            search(Value::Null),
            told_search(json!({ "type": "other" })),
            search(json!({ "type": "openPage", "url": "u" })),
            told_search(json!({ "type": "open_page", "url": "u" })),
        ),
    ];
    for (begun, told_begun, ended, told_ended) in rows {
        check(
            &[("started", item(begun)), ("completed", item(ended))],
            &[
                json!({ "type": "item.started", "item": told_begun }),
                json!({ "type": "item.completed", "item": told_ended }),
            ],
        );
    }
}

#[test]
fn the_plan_grows_and_ends_with_the_turn() {
    let plan = |first: &str| json!({ "plan": [{ "step": "a", "status": first }, { "step": "b", "status": "pending" }] });
    let told = |kind: &str, is_done: bool| {
        json!({ "type": kind, "item": { "id": "item_0", "type": "todo_list", "items": [
            { "text": "a", "completed": is_done }, { "text": "b", "completed": false }] } })
    };
    check(
        &[
            ("plan", plan("inProgress")),
            ("plan", plan("completed")),
            ("turn completed", turn("interrupted", None)),
            ("plan", plan("pending")),
        ],
        &[
            told("item.started", false),
            told("item.updated", true),
            told("item.completed", true),
            interrupted(),
            json!({ "type": "item.started", "item": { "id": "item_1", "type": "todo_list", "items": [
                { "text": "a", "completed": false }, { "text": "b", "completed": false }] } }),
        ],
    );
}

#[test]
fn errors_retries_and_warnings() {
    let error = |message: &str, details: Option<&str>, will_retry: bool| json!({ "error": { "message": message, "additionalDetails": details }, "willRetry": will_retry });
    check(
        &[
            ("error", error("Reconnecting... 1/5", Some("cut off"), true)),
            ("error", error("gone", None, false)),
            ("turn completed", turn("failed", Some("gone"))),
            ("turn completed", turn("failed", None)),
            ("config warning", json!({ "summary": "odd key", "details": "x" })),
        ],
        &[
            json!({ "type": "error", "message": "Reconnecting... 1/5 (cut off)" }),
            json!({ "type": "error", "message": "gone" }),
            json!({ "type": "turn.failed", "error": { "message": "gone" } }),
            json!({ "type": "turn.failed", "error": { "message": "the turn failed" } }),
            json!({ "type": "item.completed", "item": { "id": "item_0", "type": "error", "message": "odd key (x)" } }),
        ],
    );
    let mut mapper = Mapper::default();
    let rerouted = ModelReroutedNotification {
        thread_id: "t".into(),
        turn_id: "u".into(),
        from_model: "a".to_owned(),
        to_model: "b".to_owned(),
        reason: ModelRerouteReason::HighRiskCyberActivity,
    };
    let told = mapper.on(&ServerNotification::ModelRerouted(rerouted));
    assert_eq!(told, [Mapper::default().warning("the provider answered with b instead of a".to_owned())]);
}

#[test]
fn what_never_ended_is_closed_with_the_turn() {
    let command = json!({ "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/", "processId": null,
        "status": "inProgress", "commandActions": [], "aggregatedOutput": null, "exitCode": null });
    let told = |status: &str| {
        json!({ "id": "item_0", "type": "command_execution", "command": "ls", "aggregated_output": "",
            "exit_code": null, "status": status })
    };
    check(
        &[("started", item(command)), ("turn completed", turn("interrupted", None))],
        &[
            json!({ "type": "item.started", "item": told("in_progress") }),
            json!({ "type": "item.completed", "item": told("failed") }),
            interrupted(),
        ],
    );
}

fn interrupted() -> Value {
    json!({ "type": "turn.interrupted" })
}

#[test]
fn the_type_is_the_first_key_of_a_line() {
    let line = serde_json::to_string(&ExecEvent::ThreadStarted { thread_id: "t".to_owned() }).expect("JSON");
    assert_eq!(line, r#"{"type":"thread.started","thread_id":"t"}"#);
}
