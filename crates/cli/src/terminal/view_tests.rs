//! Notifications, and the text that a person sees.
#![allow(clippy::expect_used, reason = "a test may panic")]

use super::*;
use crate::terminal::Color;
use protocol::{
    AgentMessageDeltaNotification, ItemCompletedNotification, ItemStartedNotification,
    ReasoningSummaryPartAddedNotification, ReasoningSummaryTextDeltaNotification,
    ThreadTokenUsageUpdatedNotification, TurnCompletedNotification, TurnPlanUpdatedNotification,
};
use serde_json::{Value, json};

fn heard(kind: &str, mut params: Value) -> ServerNotification {
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    macro_rules! read {
        ($name:ident: $type:ty) => {
            ServerNotification::$name(serde_json::from_value::<$type>(params).expect("a notification"))
        };
    }
    match kind {
        "started" => read!(ItemStarted: ItemStartedNotification),
        "completed" => read!(ItemCompleted: ItemCompletedNotification),
        "says" => read!(AgentMessageDelta: AgentMessageDeltaNotification),
        "thinks" => read!(ReasoningSummaryTextDelta: ReasoningSummaryTextDeltaNotification),
        "thinks on" => read!(ReasoningSummaryPartAdded: ReasoningSummaryPartAddedNotification),
        "plan" => read!(TurnPlanUpdated: TurnPlanUpdatedNotification),
        "error" => read!(Error: ErrorNotification),
        "tokens" => read!(ThreadTokenUsageUpdated: ThreadTokenUsageUpdatedNotification),
        "turn completed" => read!(TurnCompleted: TurnCompletedNotification),
        other => panic!("no notification {other}"),
    }
}

fn shown(notifications: &[(&str, Value)], color: Color, hides_reasoning: bool) -> String {
    let mut screen = Vec::new();
    let mut view = View::new(&mut screen, Paint::decide(color, false), hides_reasoning);
    for (kind, params) in notifications {
        view.on(&heard(kind, params.clone())).expect("memory takes everything");
    }
    view.finish().expect("memory takes everything");
    String::from_utf8(screen).expect("text")
}

#[track_caller]
fn check(notifications: &[(&str, Value)], expected: &str) {
    assert_eq!(shown(notifications, Color::Never, false), expected);
}

fn message(text: &str) -> Value {
    json!({ "item": { "type": "agentMessage", "id": "m", "text": text } })
}

fn says(delta: &str) -> (&'static str, Value) {
    ("says", json!({ "itemId": "m", "delta": delta }))
}

fn call(status: &str, output: Option<&str>) -> Value {
    let content = output.map(|text| json!([{ "type": "inputText", "text": text }]));
    json!({ "item": { "type": "dynamicToolCall", "id": "c", "tool": "look", "arguments": { "at": "x" },
        "status": status, "contentItems": content, "success": null, "durationMs": output.map(|_| 12) } })
}

fn ended(status: &str, error: Option<&str>) -> Value {
    let error = error.map(|message| json!({ "message": message }));
    json!({ "turn": { "id": "u", "items": [], "status": status, "error": error, "durationMs": 1500 } })
}

#[test]
fn text_appears_as_it_grows_and_once() {
    check(
        &[("started", message("")), says("Hel"), says("lo\nthere"), ("completed", message("Hello\nthere"))],
        "agent\nHello\nthere\n",
    );
    check(&[("completed", message("all at once"))], "agent\nall at once\n");
}

#[test]
fn work_stands_between_texts_with_its_outcome() {
    check(
        &[
            says("Let me see"),
            ("started", call("inProgress", None)),
            ("completed", call("completed", Some("one\ntwo\n"))),
            ("completed", call("failed", Some("no"))),
            ("completed", json!({ "item": { "type": "agentMessage", "id": "n", "text": "Done" } })),
        ],
        "agent\nLet me see\n\n\
         ... call look {\"at\":\"x\"}\n\
         ok  call look {\"at\":\"x\"} (12 ms)\n    one\n    two\n\
         no  call look {\"at\":\"x\"} (12 ms)\n    no\n\n\
         agent\nDone\n",
    );
}

#[test]
fn commands_and_edits() {
    let command = json!({ "item": { "type": "commandExecution", "id": "c", "command": "ls", "cwd": "/",
        "processId": null, "status": "failed", "commandActions": [], "aggregatedOutput": "x", "exitCode": 2,
        "durationMs": 61000 } });
    let edit = json!({ "item": { "type": "fileChange", "id": "p", "status": "declined", "changes": [
        { "path": "a", "kind": { "type": "add" }, "diff": "" },
        { "path": "b", "kind": { "type": "update", "move_path": "c" }, "diff": "" }] } });
    check(
        &[("completed", command), ("completed", edit)],
        "no  run ls (exit code 2, 1 min 1 s)\n    x\nno  edit add a, move b to c (refused)\n",
    );
}

#[test]
fn a_patch_shows_its_lines() {
    let edit = json!({ "item": { "type": "fileChange", "id": "p", "status": "completed", "changes": [
        { "path": "a", "kind": { "type": "add" }, "diff": "one\ntwo\n" },
        { "path": "b", "kind": { "type": "update" }, "diff": "@@ -1 +1 @@\n-x\n+y\n" },
        { "path": "c", "kind": { "type": "delete" }, "diff": "gone\n" }] } });
    check(
        &[("completed", edit.clone())],
        "ok  edit add a, update b, delete c\n    +one\n    +two\n    @@ -1 +1 @@\n    -x\n    +y\n    -gone\n",
    );
    let painted = shown(&[("completed", edit)], Color::Always, false);
    assert!(
        painted.contains("\u{1b}[32m+y\u{1b}[0m") && painted.contains("\u{1b}[31m-x\u{1b}[0m"),
        "{painted}"
    );
}

#[test]
fn long_output_is_cut() {
    let output: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let text = shown(&[("completed", call("completed", Some(&output)))], Color::Never, false);
    assert!(text.ends_with("    12\n    (8 more lines)\n"), "{text}");
}

#[test]
fn a_plan_is_shown_whole_and_then_by_what_changed() {
    let plan = |steps: &[(&str, &str)]| {
        let steps: Vec<Value> =
            steps.iter().map(|(step, status)| json!({ "step": step, "status": status })).collect();
        ("plan", json!({ "plan": steps }))
    };
    check(
        &[
            plan(&[("a", "inProgress"), ("b", "pending"), ("c", "pending")]),
            plan(&[("a", "completed"), ("b", "inProgress"), ("c", "pending")]),
            plan(&[("a", "completed"), ("b", "inProgress"), ("c", "pending")]),
            plan(&[("a", "completed"), ("d", "completed")]),
        ],
        "plan (0 of 3 done)\n  [>] a\n  [ ] b\n  [ ] c\n\
         plan (1 of 3 done)\n  [x] a\n  [>] b\n\
         plan (2 of 2 done)\n  [x] a\n  [x] d\n",
    );
}

#[test]
fn thoughts_are_faint_or_hidden() {
    let thoughts = [
        ("thinks", json!({ "itemId": "r", "delta": "Hm", "summaryIndex": 0 })),
        ("thinks on", json!({ "itemId": "r", "summaryIndex": 1 })),
        ("thinks", json!({ "itemId": "r", "delta": "Aha", "summaryIndex": 1 })),
        ("completed", json!({ "item": { "type": "reasoning", "id": "r", "summary": ["Hm", "Aha"] } })),
    ];
    assert_eq!(shown(&thoughts, Color::Never, false), "thinking\nHm\nAha\n");
    assert_eq!(shown(&thoughts, Color::Never, true), "");
    let faint = |text: &str| format!("\u{1b}[2m{text}\u{1b}[0m");
    let expected = format!("{}\n{}\n{}\n", faint("thinking"), faint("Hm"), faint("Aha"));
    assert_eq!(shown(&thoughts, Color::Always, false), expected);
    check(&thoughts[3..], "thinking\nHm\nAha\n");
}

#[test]
fn errors_are_told_once_and_retries_as_such() {
    let error = |message: &str, will_retry: bool| {
        let error = json!({ "message": message, "additionalDetails": will_retry.then_some("cut off") });
        ("error", json!({ "error": error, "willRetry": will_retry }))
    };
    check(
        &[error("again 1/5", true), error("gone", false), ("turn completed", ended("failed", Some("gone")))],
        "retry: again 1/5 (cut off)\nerror: gone\n\ntook 1.5 s\n",
    );
    check(&[("turn completed", ended("failed", Some("gone")))], "error: gone\n\ntook 1.5 s\n");
    check(
        &[says("I was just"), ("turn completed", ended("interrupted", None))],
        "agent\nI was just\n\ninterrupted: the turn was stopped\n\ntook 1.5 s\n",
    );
}

#[test]
fn the_end_counts_tokens() {
    let total = json!({ "totalTokens": 12, "inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 2,
        "reasoningOutputTokens": 0 });
    check(
        &[
            ("tokens", json!({ "tokenUsage": { "total": total, "last": total } })),
            ("turn completed", ended("completed", None)),
        ],
        "took 1.5 s; tokens so far: 10 in (4 cached), 2 out\n",
    );
}

#[test]
fn a_model_cannot_write_to_the_terminal_itself() {
    check(&[says("\u{1b}]0;title\u{7}a\rb")], "agent\n]0;titleab\n");
}

#[test]
fn the_heading_names_what_is_chosen() {
    let mut screen = Vec::new();
    let mut view = View::new(&mut screen, Paint::decide(Color::Never, false), false);
    let facts = vec![("folder", "/w".to_owned()), ("model", "m".to_owned())];
    let heading = Heading { title: "oarlock 1".to_owned(), facts, prompt: "do it".to_owned() };
    view.heading(&heading).expect("written");
    view.warning("odd").expect("written");
    let expected = "oarlock 1\nfolder  /w\nmodel   m\n\nyou\ndo it\n\nwarning: odd\n";
    assert_eq!(String::from_utf8(screen).expect("text"), expected);
}
