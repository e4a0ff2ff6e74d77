//! What waits in a host, and the tasks it belongs to, in lines: for each operation what would run, where, why it waits and
//! since when, and the commands that answer it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::safe::{clean, clean_line};
use crate::table::age;

/// More lines of a command are cut.
const MAX_LINES: usize = 20;
/// More lines of a patch are cut. Who agrees to it has read it, so this is many.
const MAX_PATCH_LINES: usize = 400;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The command or the call, as it is; of a patch, its files.
pub fn operation_line(operation: &Value) -> String {
    let arguments = &operation["arguments"];
    if is_patch(operation) {
        let files = arguments["files"].as_array().into_iter().flatten().map(text);
        return format!("edit {}", files.collect::<Vec<_>>().join(", "));
    }
    let command = arguments["command"].as_array().map(|words| {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        match words.as_slice() {
            [_, "-lc" | "-c", script] => (*script).to_owned(),
            words => words.join(" "),
        }
    });
    let line = command
        .or_else(|| arguments["cmd"].as_str().map(str::to_owned))
        .or_else(|| arguments["input"].as_str().map(str::to_owned))
        .or_else(|| arguments["patch"].as_str().map(str::to_owned));
    line.unwrap_or_else(|| format!("{} {arguments}", text(&operation["tool"])))
}

fn is_patch(operation: &Value) -> bool {
    operation["type"] == "fileChange" && operation["arguments"]["files"].is_array()
}

/// The changes of a patch, line by line.
fn patch(operation: &Value) -> Vec<String> {
    let Some(changes) = operation["changes"].as_array() else {
        let hint = "(the changes are too long to be kept here; the console shows them while the task runs)";
        return vec![operation_line(operation), hint.to_owned()];
    };
    let mut lines = Vec::new();
    for change in changes {
        let kind = text(&change["kind"]["type"]);
        let to = change["kind"]["move_path"].as_str().map(|to| format!(" to {to}")).unwrap_or_default();
        lines.push(format!("{kind} {}{to}", text(&change["path"])));
        // Of a whole file the lines have no marks.
        let mark = match kind {
            "add" => "+",
            "delete" => "-",
            _ => "",
        };
        lines.extend(text(&change["diff"]).lines().map(|line| format!("  {mark}{line}")));
    }
    lines
}

/// What is agreed to, line by line.
fn lines(operation: &Value) -> Vec<String> {
    let (all, most) = match is_patch(operation) {
        true => (patch(operation), MAX_PATCH_LINES),
        false => (operation_line(operation).lines().map(str::to_owned).collect(), MAX_LINES),
    };
    // Nobody agrees to what cannot be seen: hidden characters are shown by their numbers.
    let shown = |line: &String| clean(&policy::escape_for_display(line)).into_owned();
    let mut lines: Vec<String> = all.iter().take(most).map(shown).collect();
    if all.len() > most {
        lines.push(format!("… {} more lines; see them with --json", all.len() - most));
    }
    lines
}

/// `titles` gives a task's name, preview and folder, `code` the name that the commands take for an operation; `host` the flags
/// with which they reach the same host.
pub fn operations_text(
    operations: &[Value],
    titles: impl Fn(&str) -> (String, String, String),
    code: impl Fn(&Value) -> String,
    host: &str,
    now_ms: i64,
) -> String {
    let mut shown = String::new();
    for operation in operations {
        let (name, preview, cwd) = titles(text(&operation["taskId"]));
        let title = if name.is_empty() { preview } else { name };
        let since = age(operation["createdAtMs"].as_i64().unwrap_or(now_ms), now_ms);
        let title: String = title.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        let kind = text(&operation["type"]);
        // Writing to a text cannot fail.
        let code = code(operation);
        let _ = writeln!(shown, "{code}  {kind}, waits since {since}: {}", clean(&title));
        let _ = writeln!(shown, "   task {}", text(&operation["taskId"]));
        for line in lines(operation) {
            let _ = writeln!(shown, "   | {line}");
        }
        let folder = operation["arguments"]["cwd"].as_str().unwrap_or(&cwd);
        if !folder.is_empty() {
            let _ = writeln!(shown, "   in {}", clean(folder));
        }
        if let Some(reason) = operation["reason"].as_str() {
            let _ = writeln!(shown, "   because {}", clean(reason));
        }
        if text(&operation["state"]) == "unknown" {
            let attempt = &operation["attempt"];
            let _ = writeln!(
                shown,
                "   attempt {attempt} was started, and nobody saw it end: look before you repeat it"
            );
        }
        for answer in answers(operation) {
            let _ = writeln!(shown, "   oarlock {}", answer.replace("CODE", &format!("{code}{host}")));
        }
        shown.push('\n');
    }
    shown.pop();
    shown
}

/// The commands that this operation takes.
fn answers(operation: &Value) -> Vec<&'static str> {
    let has = |word: &str| {
        operation["availableDecisions"]
            .as_array()
            .is_some_and(|words| words.iter().any(|known| known == word))
    };
    [
        ("accept", "approve CODE"),
        ("acceptWithCommandOverride", "approve CODE --command \"another command\""),
        ("retry", "retry CODE"),
        ("decline", "reject CODE --message \"why\""),
        ("reject", "reject CODE --message \"why\""),
        ("respond", "respond CODE \"the result\""),
    ]
    .into_iter()
    .filter(|(word, _)| has(word))
    .map(|(_, command)| command)
    .collect()
}

/// Text of its own.
fn words(value: &Value) -> String {
    text(value).to_owned()
}

/// The name of a task, or how it began.
pub fn task_title(task: &Value) -> String {
    let name = words(&task["name"]);
    if name.is_empty() { words(&task["preview"]) } else { name }
}

/// The facts of a task, a line each, and what waits in it.
pub fn task_text(answer: &Value, code: impl Fn(&Value) -> String, host: &str, now_ms: i64) -> String {
    let task = &answer["task"];
    let since = |key: &str| format!("{} ago", age(task[key].as_i64().unwrap_or(now_ms), now_ms));
    let runtime = if task["hasRuntime"] == true { "" } else { ", without a runtime" };
    let archived = if task["isArchived"] == true { ", archived" } else { "" };
    let labels = task["labels"].as_object().into_iter().flatten();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={}", words(value))).collect();
    let last = &task["lastTurn"];
    let why = last["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
    let children = task["children"].as_u64().filter(|count| *count > 0);
    let facts = [
        ("task", words(&task["id"])),
        ("title", task_title(task)),
        ("state", format!("{}{runtime}{archived}", words(&task["state"]))),
        ("last turn", format!("{}{why}", words(&last["status"]))),
        ("folder", words(&task["cwd"])),
        ("model", words(&task["model"])),
        ("placement", words(&task["placementId"])),
        ("labels", labels.join(", ")),
        ("agent", words(&task["agent"])),
        ("agents", children.map(|count| count.to_string()).unwrap_or_default()),
        ("begun", since("createdAtMs")),
        ("changed", since("updatedAtMs")),
    ];
    let mut shown = String::new();
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a text cannot fail.
        let _ = writeln!(shown, "{name:<10} {}", clean_line(value));
    }
    let operations = answer["operations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !operations.is_empty() {
        let titles = |_: &str| (words(&task["name"]), words(&task["preview"]), words(&task["cwd"]));
        let _ = write!(shown, "\n{}", operations_text(operations, titles, code, host, now_ms));
    }
    shown
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(operation: &Value) -> String {
        text(&operation["operationId"]).replace(':', "")
    }

    #[test]
    fn it_says_what_would_run_where_and_how_to_answer() {
        let operations = [
            json!({
                "operationId": "t1:u1:call_1", "taskId": "t1", "state": "proposed", "type": "command",
                "arguments": {"command": ["bash", "-lc", "make deploy\nmake check"], "cwd": "/srv/app"},
                "availableDecisions": ["accept", "decline"], "reason": "it writes outside of the workspace",
                "createdAtMs": 0, "attempt": 0,
            }),
            json!({
                "operationId": "t1:u1:call_2", "taskId": "t1", "state": "unknown", "type": "function",
                "tool": "refund", "arguments": {"order": "A\u{1b}[31m"}, "reason": null,
                "availableDecisions": ["retry", "respond", "reject"], "createdAtMs": 3_600_000, "attempt": 1,
            }),
        ];
        let titles = |_: &str| ("Ship it".to_owned(), String::new(), "/srv/x".to_owned());
        let shown = operations_text(&operations, titles, code, " --host unix:///h.sock", 7_200_000);
        let [deploy, refund] = [code(&operations[0]), code(&operations[1])];
        let expected = format!(
            "\
{deploy}  command, waits since 2h: Ship it
   task t1
   | make deploy
   | make check
   in /srv/app
   because it writes outside of the workspace
   oarlock approve {deploy} --host unix:///h.sock
   oarlock reject {deploy} --host unix:///h.sock --message \"why\"

{refund}  function, waits since 1h: Ship it
   task t1
   | refund {{\"order\":\"A\\u001b[31m\"}}
   in /srv/x
   attempt 1 was started, and nobody saw it end: look before you repeat it
   oarlock retry {refund} --host unix:///h.sock
   oarlock reject {refund} --host unix:///h.sock --message \"why\"
   oarlock respond {refund} --host unix:///h.sock \"the result\"
"
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_patch_is_shown_whole() {
        let mut operation = json!({
            "operationId": "t1:u1:call_1", "taskId": "t1", "state": "proposed", "type": "fileChange",
            "tool": "apply_patch", "arguments": {"files": ["/srv/a.txt", "/srv/b.txt"], "cwd": "/srv"},
            "changes": [
                {"path": "/srv/a.txt", "kind": {"type": "update", "move_path": "/srv/c.txt"},
                    "diff": "@@ -1 +1 @@\n-old\n+n\u{202e}ew\n"},
                {"path": "/srv/b.txt", "kind": {"type": "add"}, "diff": "one\ntwo\n"},
            ],
            "availableDecisions": ["accept"], "reason": null, "createdAtMs": 0, "attempt": 0,
        });
        let shown = |operation: &Value| {
            let titles = |_: &str| (String::new(), String::new(), String::new());
            operations_text(std::slice::from_ref(operation), titles, code, "", 0)
        };
        let expected = "\
   | update /srv/a.txt to /srv/c.txt
   |   @@ -1 +1 @@
   |   -old
   |   +n\\u{202e}ew
   | add /srv/b.txt
   |   +one
   |   +two
   in /srv
";
        let whole = shown(&operation);
        assert!(whole.contains(expected), "{whole}");
        assert_eq!(operation_line(&operation), "edit /srv/a.txt, /srv/b.txt");
        operation["changes"] = Value::Null;
        let cut = shown(&operation);
        assert!(cut.contains("   | edit /srv/a.txt, /srv/b.txt\n   | (the changes are too long"), "{cut}");
    }

    #[test]
    fn a_task_is_shown_in_lines() {
        let operation = json!({
            "operationId": "o", "taskId": "t1", "state": "proposed", "type": "command",
            "arguments": { "command": ["bash", "-lc", "make deploy"], "cwd": "/srv/app" },
            "availableDecisions": ["accept"], "reason": null, "createdAtMs": 0, "attempt": 0,
        });
        let task = json!({
            "id": "t1", "name": null, "preview": "ship\nit\u{1b}[2J", "state": "suspended", "hasRuntime": false,
            "cwd": "/srv/app", "model": "m", "placementId": null, "labels": { "team": "web" }, "agent": null,
            "children": 0, "isArchived": false, "createdAtMs": 0, "updatedAtMs": 3_600_000,
            "lastTurn": { "id": "u", "status": "failed", "error": "429" },
        });
        let shown = task_text(&json!({ "task": task, "operations": [operation] }), code, "", 7_200_000);
        let expected = "\
task       t1
title      ship it[2J
state      suspended, without a runtime
last turn  failed: 429
folder     /srv/app
model      m
labels     team=web
begun      2h ago
changed    1h ago

";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.contains("   | make deploy\n   in /srv/app\n   oarlock approve "), "{shown}");
    }
}
