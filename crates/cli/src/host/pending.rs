//! The output of `oarlock pending`: for each operation what would run, where, why it waits and since when, and the
//! commands that answer it.

use std::fmt::Write as _;

use engine::digest_of;
use serde_json::{Value, json};

use super::table::age;
use crate::terminal::clean;

/// More lines of a command or a patch are cut.
const MAX_LINES: usize = 20;
/// Letters of a code.
const CODE: usize = 8;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The command or the call, as it is.
pub(crate) fn what(operation: &Value) -> String {
    let arguments = &operation["arguments"];
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
        let text_of = what(operation);
        let lines: Vec<&str> = text_of.lines().collect();
        for line in lines.iter().take(MAX_LINES) {
            let _ = writeln!(shown, "   | {}", clean(line));
        }
        if lines.len() > MAX_LINES {
            let _ = writeln!(shown, "   | … {} more lines; see them with --json", lines.len() - MAX_LINES);
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
}
