//! The output of `oarlock pending`: for each operation what would run, where, why it waits and since when, and the
//! commands that answer it.

use std::fmt::Write as _;

use engine::digest_of;
use serde_json::{Value, json};

use super::table::age;
use crate::terminal::clean;

/// More lines of a command are cut.
const MAX_LINES: usize = 20;
/// More lines of a patch are cut. Who agrees to it has read it, so this is many.
const MAX_PATCH_LINES: usize = 400;
/// Letters of a code.
const CODE: usize = 8;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The command or the call, as it is; of a patch, its files.
pub(crate) fn what(operation: &Value) -> String {
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

/// What a patch would change, line by line.
fn patch(operation: &Value) -> Vec<String> {
    let Some(changes) = operation["changes"].as_array() else {
        let hint = "(the changes are too long to be kept here; the console shows them while the task runs)";
        return vec![what(operation), hint.to_owned()];
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
        false => (what(operation).lines().map(str::to_owned).collect(), MAX_LINES),
    };
    // Nobody agrees to what cannot be seen: hidden characters are shown by their numbers.
    let shown = |line: &String| clean(&policy::escape_for_display(line)).into_owned();
    let mut lines: Vec<String> = all.iter().take(most).map(shown).collect();
    if all.len() > most {
        lines.push(format!("… {} more lines; see them with --json", all.len() - most));
    }
    lines
}

/// A short name for an operation and exactly what it would run. Unlike a place in a list, it never comes to mean
/// something else between looking and answering.
pub(crate) fn code(operation: &Value) -> String {
    let digest = digest_of(&json!([operation["operationId"], operation["argumentsDigest"]]));
    let letters = digest.rsplit(':').next().unwrap_or_default();
    letters.chars().take(CODE).collect()
}

/// `titles` gives a task's name, preview and folder; `host` the flags with which the commands reach the same host.
pub(crate) fn listed(
    operations: &[Value],
    titles: impl Fn(&str) -> (String, String, String),
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let shown = listed(&operations, titles, " --host unix:///h.sock", 7_200_000);
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
            listed(std::slice::from_ref(operation), titles, "", 0)
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
        assert_eq!(what(&operation), "edit /srv/a.txt, /srv/b.txt");
        operation["changes"] = Value::Null;
        let cut = shown(&operation);
        assert!(cut.contains("   | edit /srv/a.txt, /srv/b.txt\n   | (the changes are too long"), "{cut}");
    }
}
