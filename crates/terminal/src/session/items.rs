//! Items of a turn as rows that stay.

use serde_json::Value;

use super::TerminalState;
use super::facts::{span, text};
use super::live::{LiveItem, LiveKind};
use crate::advice::{FailedWork, WriteAccess, advice};
use crate::diff::{counts, diff};
use crate::markdown::MarkdownStream;
use crate::rows::{Ink, ScreenRow, indented, rows};
use crate::safe::readable;
use crate::shell::script;

/// Rows of a finished command's output: its end says most.
const OUTPUT_ROWS: usize = 8;
/// More when it failed.
const FAILURE_ROWS: usize = 24;
const DIFF_ROWS: usize = 80;
/// The command's own lines that are shown above its output.
const SCRIPT_ROWS: usize = 6;

/// The changes of a patch that is not applied yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AskedPatch {
    pub(super) changes: Value,
    /// With a question.
    pub(super) is_shown: bool,
}

impl TerminalState {
    pub(super) fn item_started(&mut self, item: &Value) {
        let id = text(&item["id"]);
        match item["type"].as_str().unwrap_or_default() {
            "agentMessage" => {
                self.begin_live(&id, LiveKind::Message { text: MarkdownStream::default(), has_begun: false });
                // Of one that is told again, what was said so far.
                self.message_delta(&id, &text(&item["text"]));
            }
            "reasoning" => self.begin_live(&id, LiveKind::Reasoning { text: String::new() }),
            kind => {
                if kind == "fileChange" {
                    self.keep_patch(&self.items_thread(), item);
                }
                if let Some(what) = self.work(item) {
                    let tail = text(&item["aggregatedOutput"]);
                    self.begin_live(&id, LiveKind::Work { what, tail: String::new() });
                    self.output_delta(&id, &tail);
                }
            }
        }
    }

    /// Keeps the changes of a patch, to be shown if the patch is asked about.
    pub(super) fn keep_patch(&mut self, thread: &str, item: &Value) {
        let (key, changes) = ((thread.to_owned(), text(&item["id"])), item["changes"].clone());
        // Whoever opens a thread is told again of what is open.
        let known = self.asked_patches.get(&key).filter(|known| known.changes == changes);
        let is_shown = known.is_some_and(|known| known.is_shown);
        self.asked_patches.insert(key, AskedPatch { changes, is_shown });
        self.show_late_patch(thread, &item["id"]);
    }

    pub(super) fn item_completed(&mut self, item: &Value) {
        let id = text(&item["id"]);
        match item["type"].as_str().unwrap_or_default() {
            // The reviewer's prompt is no message of the user.
            "userMessage" if std::mem::take(&mut self.items.is_review_beginning) => {}
            "userMessage" => self.user_message(&item["content"]),
            // The thread's message after a review repeats it.
            "agentMessage"
                if self.items.review.take_if(|review| *review == text(&item["text"])).is_some() =>
            {
                drop(self.items.live.take(&id));
            }
            "agentMessage" => self.message_end(&id, &text(&item["text"])),
            "plan" => {
                self.items.live.take(&id);
                self.say(crate::markdown::markdown(&text(&item["text"])));
            }
            "reasoning" => self.reasoning_end(&id, &item["summary"]),
            "exitedReviewMode" => {
                let review = text(&item["review"]);
                self.say(crate::markdown::markdown(&review));
                self.items.review = Some(review);
            }
            "collabAgentToolCall" => {
                self.agents_changed(item);
                self.work_end(item);
            }
            kind => {
                self.items.is_review_beginning = kind == "enteredReviewMode";
                self.work_end(item);
            }
        }
    }

    fn user_message(&mut self, content: &Value) {
        let mut said = String::new();
        for part in content.as_array().into_iter().flatten() {
            let shown = match part["type"].as_str().unwrap_or_default() {
                "text" => text(&part["text"]),
                "localImage" | "mention" | "skill" => format!("[{}]\n", text(&part["path"])),
                "image" => "[image]\n".to_owned(),
                _ => continue,
            };
            said.push_str(&shown);
        }
        if let Some(at) = self.items.sent.iter().position(|sent| said.ends_with(sent.as_str())) {
            self.items.sent.remove(at);
        }
        let mark = self.glyphs.prompt;
        let mut shown = Vec::new();
        for (number, line) in readable(&said).lines().enumerate() {
            let head = if number == 0 { format!("{mark} ") } else { "  ".to_owned() };
            shown.push(ScreenRow::new(Ink::Strong, head).with(Ink::Strong, line).hanging(2));
        }
        self.say(shown);
    }

    fn reasoning_end(&mut self, id: &str, summary: &Value) {
        self.items.live.take(id);
        let parts = summary.as_array().into_iter().flatten().filter_map(Value::as_str);
        let summary: String = parts.map(|part| format!("{}\n", part.trim().replace("**", ""))).collect();
        if !summary.trim().is_empty() {
            self.say(indented(rows(Ink::Faint, &readable(&summary)), 2));
        }
    }

    /// The work of an item, in the form "run ls". None for items that are shown otherwise, or not at all.
    pub(super) fn work(&self, item: &Value) -> Option<String> {
        let what = match item["type"].as_str()? {
            "commandExecution" => {
                looked_at(item).unwrap_or_else(|| format!("run {}", script(&text(&item["command"]))))
            }
            "fileChange" => format!("edit {}", self.changed_files(&item["changes"])),
            "mcpToolCall" => format!("call {}.{}", text(&item["server"]), text(&item["tool"])),
            "dynamicToolCall" => format!("call {}", text(&item["tool"])),
            "collabAgentToolCall" => {
                let what = match item["tool"].as_str().unwrap_or_default() {
                    "spawnAgent" => "start an agent",
                    "sendInput" => "tell an agent",
                    "resumeAgent" => "wake an agent",
                    "wait" => "wait for agents",
                    _ => "end an agent",
                };
                let prompt = item["prompt"].as_str().map(|prompt| format!(": {prompt}")).unwrap_or_default();
                format!("{what}{prompt}")
            }
            "webSearch" => format!("search the web for {}", text(&item["query"])),
            "imageView" => format!("look at {}", text(&item["path"])),
            "imageGeneration" => "make an image".to_owned(),
            "functionCallOutput" => format!("hear from {}", text(&item["name"])),
            "enteredReviewMode" => format!("review {}", text(&item["review"])),
            "contextCompaction" => "shorten the history to a summary".to_owned(),
            _ => return None,
        };
        Some(what)
    }

    fn changed_files(&self, changes: &Value) -> String {
        let folder = format!("{}/", self.folder());
        let seen = |path: &Value| text(path).strip_prefix(&folder).map_or_else(|| text(path), str::to_owned);
        let files = changes.as_array().into_iter().flatten().map(|change| {
            let (path, kind) = (seen(&change["path"]), &change["kind"]);
            match (kind["type"].as_str().unwrap_or_default(), kind["move_path"].as_str()) {
                ("add", _) => format!("{path} (new)"),
                ("delete", _) => format!("{path} (deleted)"),
                (_, Some(_)) => format!("{path} (now {})", seen(&kind["move_path"])),
                _ => path,
            }
        });
        files.collect::<Vec<_>>().join(", ")
    }

    fn work_end(&mut self, item: &Value) {
        let live = self.items.live.take(&text(&item["id"]));
        let Some(what) = self.work(item) else { return };
        let status = item["status"].as_str().unwrap_or("completed");
        let (mark, ink) = match status {
            "completed" => (self.glyphs.good, Ink::Good),
            "inProgress" => (self.glyphs.busy, Ink::Busy),
            _ => (self.glyphs.bad, Ink::Bad),
        };
        let mut shown = Vec::new();
        let ending = ending(item, status);
        let what = readable(&what);
        let count = what.lines().count();
        for (number, line) in what.lines().take(SCRIPT_ROWS).enumerate() {
            let row =
                if number == 0 { ScreenRow::new(ink, format!("{mark} ")) } else { ScreenRow::plain("  ") };
            shown.push(row.with(Ink::Plain, line).hanging(2));
        }
        if count > SCRIPT_ROWS {
            shown.push(ScreenRow::new(Ink::Faint, format!("  {}", self.glyphs.cut)));
        }
        if let (Some(last), false) = (shown.last_mut(), ending.is_empty()) {
            last.push(Ink::Faint, &format!(" ({ending})"));
        }
        shown.extend(self.work_output(item, status, live));
        let advice = self.way_out(item, status);
        shown.extend(advice.map(|advice| ScreenRow::new(Ink::Careful, format!("  -> {advice}")).hanging(5)));
        self.say(shown);
    }

    /// What would allow it, unless it was the user who said no.
    fn way_out(&self, item: &Value, status: &str) -> Option<&'static str> {
        let access = match self.thread.as_ref()?.sandbox.as_str() {
            "read-only" => WriteAccess::Nowhere,
            "workspace-write" => WriteAccess::Folder,
            "danger-full-access" => WriteAccess::Everywhere,
            _ => return None,
        };
        let is_edit = match item["type"].as_str()? {
            "fileChange" => true,
            "commandExecution" => false,
            _ => return None,
        };
        let is_refused = status == "declined";
        let was_asked = self.asked_items.contains(item["id"].as_str()?);
        if (is_refused && was_asked) || !(is_refused || status == "failed") {
            return None;
        }
        let output = item["aggregatedOutput"].as_str().unwrap_or_default();
        let reason = item["reason"].as_str().unwrap_or_default();
        let failed = FailedWork { is_edit, is_refused, output, reason };
        advice(&failed, access).map(|advice| advice.session)
    }

    fn work_output(&self, item: &Value, status: &str, live: Option<LiveItem>) -> Vec<ScreenRow> {
        let most = if status == "failed" { FAILURE_ROWS } else { OUTPUT_ROWS };
        match item["type"].as_str().unwrap_or_default() {
            "commandExecution" => {
                let tail = live.and_then(|live| match live.kind {
                    LiveKind::Work { tail, .. } => Some(tail),
                    _ => None,
                });
                let mut output =
                    item["aggregatedOutput"].as_str().map(str::to_owned).or(tail).unwrap_or_default();
                if status == "declined" {
                    // The reason names the command as it would have been run, which says less to a person.
                    let command = text(&item["command"]);
                    output = output.replacen(&command, &script(&command), 1);
                }
                self.end_of(&output, most)
            }
            // A patch that was asked about has been shown whole.
            "fileChange" if self.has_shown_patch(item) => Vec::new(),
            "fileChange" => {
                let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
                let whole: String = changes.iter().map(diff_of).collect();
                let mut rows = indented(diff(&whole, DIFF_ROWS), 2);
                rows.extend(self.end_of(&text(&item["reason"]), most));
                rows
            }
            "mcpToolCall" => {
                let error = item["error"]["message"].as_str().map(str::to_owned);
                let content = item["result"]["content"].as_array().into_iter().flatten();
                let said: String =
                    content.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
                self.end_of(&error.unwrap_or(said), most)
            }
            "dynamicToolCall" => {
                let content = item["contentItems"].as_array().into_iter().flatten();
                let said: String =
                    content.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
                self.end_of(&said, most)
            }
            _ => Vec::new(),
        }
    }

    fn has_shown_patch(&self, item: &Value) -> bool {
        let key = (self.items_thread(), text(&item["id"]));
        self.asked_patches.get(&key).is_some_and(|patch| patch.is_shown)
    }

    /// The last lines, and how many came before.
    pub(super) fn end_of(&self, output: &str, most: usize) -> Vec<ScreenRow> {
        let output = readable(output);
        let lines: Vec<&str> = output.trim_end().lines().collect();
        let from = if lines.len() > most { lines.len() - most + 1 } else { 0 };
        let mark = format!("  {} ", self.glyphs.output);
        let mut shown = Vec::new();
        if from > 0 {
            shown.push(ScreenRow::new(Ink::Faint, format!("{mark}{} {from} lines before", self.glyphs.cut)));
        }
        for line in &lines[from..] {
            shown.push(ScreenRow::new(Ink::Faint, &mark).with(Ink::Faint, line).hanging(4).literal());
        }
        shown
    }
}

/// The path or pattern of a tool that looks at files. Such tools are shown as commands with one action.
fn looked_at(item: &Value) -> Option<String> {
    let command = item["command"].as_str()?;
    let [action] = item["commandActions"].as_array()?.as_slice() else { return None };
    let path = text(&action["path"]);
    match command.split_once(' ')?.0 {
        "read_file" => Some(format!("read {path}")),
        "list_dir" => Some(format!("list {path}")),
        "grep_files" => Some(format!("search {path} for {}", text(&action["query"]))),
        _ => None,
    }
}

/// How it ended, in a few words.
fn ending(item: &Value, status: &str) -> String {
    let code = item["exitCode"].as_i64().filter(|code| *code != 0 || status == "failed");
    let code = code.map(|code| if code < 0 { "not started".to_owned() } else { format!("exit code {code}") });
    let word = match (item["type"].as_str(), status) {
        (_, "declined") => Some("not allowed".to_owned()),
        (Some("fileChange"), "failed") => Some("not applied".to_owned()),
        (Some("fileChange"), _) => {
            let changes = item["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let (came, went) = counts(&changes.iter().map(diff_of).collect::<String>());
            Some(format!("+{came} -{went}"))
        }
        _ => code,
    };
    let time = item["durationMs"].as_i64().map(span);
    word.into_iter().chain(time).collect::<Vec<_>>().join(", ")
}

/// The lines of one file that came and went; of a new or deleted one, all.
pub(super) fn diff_of(change: &Value) -> String {
    let diff = change["diff"].as_str().unwrap_or_default();
    let marked = |mark: char| diff.lines().map(|line| format!("{mark}{line}\n")).collect();
    match change["kind"]["type"].as_str() {
        Some("add") => marked('+'),
        Some("delete") => marked('-'),
        _ => format!("{}\n", diff.trim_end_matches('\n')),
    }
}
