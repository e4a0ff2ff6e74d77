//! Notifications, and the text that a person sees.
#![allow(clippy::expect_used, reason = "a test may panic")]

use super::*;
use crate::Color;
use protocol::{
    AgentMessageDeltaNotification, CommandExecutionOutputDeltaNotification, ItemCompletedNotification,
    ItemStartedNotification, ReasoningSummaryPartAddedNotification, ReasoningSummaryTextDeltaNotification,
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
        "output" => read!(CommandExecutionOutputDelta: CommandExecutionOutputDeltaNotification),
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

fn command(status: &str, output: &str) -> Value {
    json!({ "item": { "type": "commandExecution", "id": "c", "command": "make", "cwd": "/", "processId": null,
        "status": status, "commandActions": [], "aggregatedOutput": output, "exitCode": 2, "durationMs": 10 } })
}

#[test]
fn of_a_failure_the_end_is_shown() {
    let output: String = (1..=20).map(|line| format!("{line}\n")).collect();
    let text = shown(&[("completed", command("failed", &output))], Color::Never, false);
    let expected = "no  run make (exit code 2, 10 ms)\n    (8 lines before)\n    9\n";
    assert!(text.starts_with(expected) && text.ends_with("    20\n"), "{text}");
}

#[track_caller]
fn check_advice(access: WriteAccess, item: Value, expected: &str) {
    let mut screen = Vec::new();
    let mut view = View::new(&mut screen, Paint::decide(Color::Never, false), false);
    view.set_access(access);
    view.on(&heard("completed", item)).expect("memory takes everything");
    assert_eq!(String::from_utf8(screen).expect("text"), expected);
}

#[test]
fn what_was_refused_comes_with_the_flag_that_would_allow_it() {
    let reason = "`rm -rf x` was rejected: it deletes without asking back, and nobody can be asked about it";
    check_advice(
        WriteAccess::Folder,
        command("declined", reason),
        &format!(
            "no  run make (refused, 10 ms)\n    {reason}\n    -> --sandbox danger-full-access lets it run, without a \
             sandbox; a rule can allow it inside of one\n"
        ),
    );
    let mut in_shell = command("declined", "`/bin/sh -c 'rm -rf x'` was rejected: a rule forbids it");
    in_shell["item"]["command"] = "/bin/sh -c 'rm -rf x'".into();
    let text = shown(&[("completed", in_shell)], Color::Never, false);
    assert!(text.contains("run rm -rf x (refused, 10 ms)\n    `rm -rf x` was rejected: a rule"), "{text}");
    check_advice(
        WriteAccess::Nowhere,
        command("failed", "touch: cannot touch 'x': Read-only file system"),
        "no  run make (exit code 2, 10 ms)\n    touch: cannot touch 'x': Read-only file system\n    -> the sandbox is \
         read-only: --sandbox workspace-write lets commands write to the folder\n",
    );
    check_advice(
        WriteAccess::Everywhere,
        command("failed", "Permission denied"),
        "no  run make (exit code 2, 10 ms)\n    Permission denied\n",
    );
}

#[test]
fn a_refused_patch_says_why_and_what_would_allow_it() {
    let patch = |reason: &str| {
        json!({ "item": { "type": "fileChange", "id": "p", "status": "declined", "reason": reason, "changes": [
            { "path": "/x/a", "kind": { "type": "add" }, "diff": "one\n" }] } })
    };
    let outside = "patch rejected: /x/a is outside of what may be written to (sandbox `read-only`), and nobody can be \
                   asked (approval policy `never`)";
    check_advice(
        WriteAccess::Nowhere,
        patch(outside),
        &format!(
            "no  edit add /x/a (refused)\n    +one\n    {outside}\n    -> the sandbox is read-only: --sandbox \
             workspace-write lets files be changed\n"
        ),
    );
    let protected = "patch rejected: /x/a is protected: it decides what agents or git do later";
    check_advice(
        WriteAccess::Folder,
        patch(protected),
        &format!(
            "no  edit add /x/a (refused)\n    +one\n    {protected}\n    -> --sandbox danger-full-access lets it be \
             written, without a sandbox\n"
        ),
    );
}

#[test]
fn what_is_looked_at_is_a_line() {
    let look = |command: &str, action: Value, status: &str, output: Option<&str>| {
        json!({ "item": { "type": "commandExecution", "id": "c", "command": command, "cwd": "/w", "processId": null,
            "status": status, "commandActions": [action], "aggregatedOutput": output, "exitCode": 0,
            "durationMs": 3 } })
    };
    let read = json!({ "type": "read", "command": "x", "name": "a", "path": "/w/a" });
    let list = json!({ "type": "listFiles", "command": "x", "path": "/w" });
    let search = json!({ "type": "search", "command": "x", "path": "src", "query": "fn main" });
    check(
        &[
            ("completed", look("read_file /w/a", read.clone(), "completed", None)),
            ("completed", look("list_dir /w", list, "completed", None)),
            ("completed", look("grep_files 'fn main' src", search, "completed", None)),
            (
                "completed",
                look("read_file /w/a", read.clone(), "declined", Some("/w/a is not among what you may read")),
            ),
            // A command of the shell is shown as it ran.
            ("completed", look("cat /w/a", read, "completed", None)),
        ],
        "ok  read /w/a (3 ms)\nok  list /w (3 ms)\nok  search src for fn main (3 ms)\n\
         no  read /w/a (refused, 3 ms)\n    /w/a is not among what you may read\n\
         ok  run cat /w/a (exit code 0, 3 ms)\n",
    );
}

#[test]
fn a_failure_is_one_line_and_its_details_are_for_those_who_ask() {
    let failed = json!({ "turn": { "id": "u", "items": [], "status": "failed", "durationMs": 1500,
        "error": { "message": "the provider refused the key:\nno", "additionalDetails": "url: U" } } });
    let lines = |is_verbose| {
        let mut screen = Vec::new();
        let view = View::new(&mut screen, Paint::decide(Color::Never, false), false);
        view.verbose(is_verbose)
            .on(&heard("turn completed", failed.clone()))
            .expect("memory takes everything");
        String::from_utf8(screen).expect("text")
    };
    assert!(lines(false).starts_with("error: the provider refused the key: no\n"), "{}", lines(false));
    assert!(lines(true).starts_with("error: the provider refused the key: no (url: U)\n"), "{}", lines(true));
}

/// The screen after the notifications and seconds, as a terminal shows it.
fn live(steps: &[(&str, Value)]) -> String {
    let mut screen = Vec::new();
    let view = View::new(&mut screen, Paint::decide(Color::Never, false), false);
    let mut view = view.live(LiveScreen { columns: 40, rows: 24, is_ascii: false });
    for (kind, params) in steps {
        match *kind {
            "tick" => view.tick(Duration::from_secs(params.as_u64().unwrap_or_default()), None),
            kind => view.on(&heard(kind, params.clone())),
        }
        .expect("memory takes everything");
    }
    emulated(&String::from_utf8(screen).expect("text"))
}

/// Does what a terminal does with the two commands that are used.
fn emulated(text: &str) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some(command) = rest.strip_prefix("\u{1b}[") {
            let end = command.find(char::is_alphabetic).expect("a command");
            match &command[end..=end] {
                "A" => {
                    let up: usize = command[..end].parse().expect("a number");
                    lines.truncate(lines.len() - up);
                }
                "J" => {
                    lines.last_mut().expect("a line").clear();
                }
                other => panic!("{other}"),
            }
            rest = &command[end + 1..];
            continue;
        }
        match letter {
            '\n' => lines.push(String::new()),
            '\r' => {}
            letter => lines.last_mut().expect("a line").push(letter),
        }
        rest = &rest[letter.len_utf8()..];
    }
    lines.join("\n")
}

#[test]
fn a_live_screen_has_a_clock_a_tail_and_one_line_for_each_step() {
    let running = {
        let mut item = command("inProgress", "");
        item["item"]["exitCode"] = Value::Null;
        item
    };
    let steps = [
        ("tick", json!(2)),
        ("started", running),
        ("output", json!({ "itemId": "c", "delta": "compiling\nlinking" })),
        ("tick", json!(65)),
    ];
    assert_eq!(
        live(&steps),
        "• run make · 1 min 03 s\n  │ compiling\n  │ linking\n• working · 1 min 05 s · Ctrl-C stops\n"
    );
    let mut more = steps.to_vec();
    more.push(("completed", command("completed", "compiling\nlinking\n")));
    more.push(says("# Done\n\nIt **works** as far as anybody can tell from here.\n- one\n- tw"));
    assert_eq!(
        live(&more),
        "✓ run make (exit code 2, 10 ms)\n    compiling\n    linking\n\nagent\nDone\n\nIt works as far as anybody can \
         tell\nfrom here.\n- one\n- tw\n• answering · 1 min 05 s · Ctrl-C stops\n"
    );
    more.push(("turn completed", ended("completed", None)));
    let text = live(&more);
    assert!(text.ends_with("- one\n- tw\n\ntook 1.5 s\n"), "{text}");
}

#[test]
fn sentences_of_a_live_screen_are_broken_between_words() {
    let error = json!({ "message": "a sentence that is longer than forty columns of a screen" });
    let text = live(&[("error", json!({ "error": error, "willRetry": false }))]);
    assert_eq!(
        text,
        "error: a sentence that is longer than\n  forty columns of a screen\n• thinking · 0 s · Ctrl-C stops\n"
    );
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
        &[
            error("again 1/5", true),
            error("again 2/5", true),
            error("gone", false),
            ("turn completed", ended("failed", Some("gone"))),
        ],
        "retry: cut off\nerror: gone\n\ntook 1.5 s\n",
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
