//! Answers to our requests.

use serde_json::Value;

use super::calls::{Asked, EARLIER_TURNS};
use super::facts::{OpenThread, RunningTurn, short_id, text};
use super::popup::{PickAction, PickEntry};
use super::{SessionStart, TerminalEffect, TerminalState};
use crate::diff::diff;
use crate::rows::{Ink, ScreenRow};
use crate::safe::one_line;

/// A diff of this many lines is still shown.
const WHOLE_DIFF: usize = 5_000;
/// Ids that begin alike, as far as they are named.
const MOST_FITTING: usize = 20;
/// Names that are compared with one that nothing has.
const MOST_NAMES: usize = 1_000;

impl TerminalState {
    pub(super) fn answered(&mut self, message: &mut Value) {
        if message["id"].is_null() {
            self.left_out(&text(&message["error"]["message"]));
            return;
        }
        let Some(asked) = message["id"].as_i64().and_then(|id| self.calls.remove(&id)) else { return };
        if message.get("error").is_some() {
            self.failed(asked, &text(&message["error"]["message"]));
            return;
        }
        let result = message["result"].take();
        match asked {
            Asked::Initialize => self.connected(),
            Asked::Open { resumed, .. } => self.opened(&result, resumed),
            Asked::EarlierTurns { thread } => self.ask_open(&thread, Some(result)),
            Asked::AgentTurns { thread } => self.show_agent_turns(&thread, Ok(&result)),
            Asked::FindLast => self.found_last(&result),
            Asked::Find { wanted, fitting, names } => self.found(wanted, fitting, names, &result),
            Asked::Threads => self.choose_thread(&result),
            Asked::Models => self.choose_model(&result),
            Asked::ModelNamed(name) => self.check_model(&name, &result),
            Asked::Turn { .. } | Asked::Review => self.turn_accepted(&result["turn"]),
            Asked::Diff => self.show_diff(&result),
            Asked::Steer { .. }
            | Asked::TellAgent { .. }
            | Asked::Interrupt
            | Asked::Compact
            | Asked::Files
            | Asked::Unheard => {}
        }
    }

    /// A message was too long to be read. Without a thread, it was the one that this session waits for.
    fn left_out(&mut self, why: &str) {
        let opening = self
            .calls
            .iter()
            .find(|(_, asked)| matches!(asked, Asked::Open { .. } | Asked::EarlierTurns { .. }));
        match opening.map(|(id, _)| *id).and_then(|id| self.calls.remove(&id)) {
            Some(asked) => self.failed(asked, why),
            None => self.note(why),
        }
    }

    fn failed(&mut self, asked: Asked, why: &str) {
        match asked {
            Asked::Initialize | Asked::FindLast | Asked::Find { .. } => self.give_up(why),
            Asked::EarlierTurns { thread } => self.ask_open(&thread, None),
            Asked::AgentTurns { thread } => self.show_agent_turns(&thread, Err(why)),
            Asked::TellAgent { thread, text } => self.agent_not_told(&thread, &text, why),
            Asked::Open { resumed, choices } => {
                // Of a thread that was to begin anew, nothing is for the one that goes on.
                if resumed.is_some() {
                    self.choices.fill_from(choices);
                }
                self.give_up(why);
            }
            Asked::Turn { text, choices } => {
                self.turn = None;
                self.choices.fill_from(choices);
                self.items.sent.retain(|sent| *sent != text);
                self.trouble(why);
                self.queue.push_front(text);
                self.give_queue_back();
            }
            Asked::Steer { text } => {
                // The turn was over, or takes no input: then it is for the next one.
                self.items.sent.retain(|sent| *sent != text);
                self.queue.push_back(text);
                if self.turn.is_none() {
                    self.next_in_queue();
                }
            }
            Asked::Review | Asked::Compact => {
                self.turn = None;
                self.trouble(why);
            }
            Asked::Files => self.is_searching_files = false,
            Asked::Interrupt | Asked::Unheard | Asked::ModelNamed(_) => {}
            Asked::Threads | Asked::Models | Asked::Diff => self.trouble(why),
        }
    }

    /// Without a thread there is nothing to do here.
    fn give_up(&mut self, why: &str) {
        self.trouble(why);
        if self.thread.is_some() {
            return;
        }
        self.is_over = true;
        self.effects.push(TerminalEffect::Leave { is_good: false });
    }

    fn connected(&mut self) {
        self.tell_initialized();
        match self.options.start.clone() {
            SessionStart::New(_) => self.ask_start(),
            SessionStart::Last(_) => self.ask_threads(Asked::FindLast, 1, self.options.remote.is_none()),
            SessionStart::Named(wanted, _) if wanted.len() == 36 => self.ask_resume(&wanted),
            SessionStart::Named(wanted, _) => self.ask_for_named(wanted),
            SessionStart::Choose(_) => self.ask_threads(Asked::Threads, 20, self.options.remote.is_none()),
        }
    }

    fn found_last(&mut self, page: &Value) {
        match page["data"][0]["id"].as_str() {
            Some(id) => self.ask_resume(id),
            None => {
                self.note("there is no earlier thread of this folder; a new one begins");
                self.ask_start();
            }
        }
    }

    /// Those used last come first, so that of a name the newest counts.
    fn found(&mut self, wanted: String, mut fitting: Vec<String>, mut names: Vec<String>, page: &Value) {
        let threads = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(named) = threads.iter().find(|thread| thread["name"].as_str() == Some(wanted.as_str())) {
            self.ask_resume(&text(&named["id"]));
            return;
        }
        let begins = threads.iter().filter_map(|thread| thread["id"].as_str());
        let begin = plain_id(&wanted);
        fitting.extend(begins.filter(|id| plain_id(id).starts_with(&begin)).map(str::to_owned));
        fitting.truncate(MOST_FITTING);
        names.extend(threads.iter().filter_map(|thread| thread["name"].as_str().map(str::to_owned)));
        names.truncate(MOST_NAMES);
        if let Some(cursor) = page["nextCursor"].as_str() {
            self.ask_for_more_named(Asked::Find { wanted, fitting, names }, Some(cursor));
            return;
        }
        match fitting.as_slice() {
            [id] => self.ask_resume(id),
            [] => {
                let near = match (self.options.nearest)(&wanted, &names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`oarlock resume` lists them".to_owned(),
                };
                self.give_up(&format!("no thread is named `{wanted}` or has an id that begins so; {near}"));
            }
            several => self.give_up(&format!("`{wanted}` could be any of these:\n{}", several.join("\n"))),
        }
    }

    fn opened(&mut self, answer: &Value, resumed: Option<Option<Value>>) {
        let Some(mut thread) = OpenThread::read(answer) else {
            self.give_up("the server's answer names no thread");
            return;
        };
        self.turn = None;
        self.spent = super::Spending::default();
        self.show_thread();
        self.agents.clear();
        self.close_files();
        self.header(&thread, resumed.is_some());
        // Chosen while the thread was being opened: for its first turn.
        thread.choose(&self.choices);
        if let Some(earlier) = self.thread.take().filter(|earlier| earlier.id != thread.id) {
            self.tell_unsubscribe(&earlier.id);
        }
        self.thread = Some(thread);
        if let Some(page) = resumed {
            // An idle thread may have been busy when its turns were read.
            let is_idle = answer["thread"]["status"]["type"].as_str() == Some("idle");
            let turns = EarlierTurns::read(page.as_ref(), &answer["thread"]["turns"]);
            self.earlier_turns(turns, is_idle);
        }
        if let Some(prompt) = self.options.prompt.take() {
            self.queue.push_front(prompt);
        }
        if self.turn.is_none() {
            self.next_in_queue();
        }
    }

    fn header(&mut self, thread: &OpenThread, is_resumed: bool) {
        let between = self.glyphs.between;
        let place =
            self.options.remote.as_deref().map(|remote| format!("{between}{remote}")).unwrap_or_default();
        let first = ScreenRow::new(Ink::Strong, "oarlock")
            .with(Ink::Faint, format!(" {}{between}{}{place}", self.options.version, thread.folder));
        let rules = format!("sandbox {}, approvals {}", thread.sandbox, thread.approvals);
        let second = format!("{} ({}){between}{rules}{between}/help", thread.model, thread.provider);
        let mut shown = vec![first.hanging(2), ScreenRow::new(Ink::Faint, second).hanging(2)];
        if is_resumed {
            let name = thread.name.as_deref().map(|name| format!(" {}", one_line(name))).unwrap_or_default();
            shown.push(ScreenRow::new(Ink::Faint, format!("going on with {}{name}", thread.short_id())));
        }
        self.say(shown);
    }

    /// The end of the transcript, and the turn that still runs.
    fn earlier_turns(&mut self, earlier: EarlierTurns<'_>, is_idle: bool) {
        if earlier.has_more {
            self.note(&format!("{} earlier turns", self.glyphs.cut));
        }
        if let (Some(thread), false) = (&mut self.thread, earlier.turns.is_empty()) {
            thread.has_turns = true;
        }
        for turn in earlier.turns {
            let is_running = turn["status"].as_str() == Some("inProgress") && !is_idle;
            for item in turn["items"].as_array().into_iter().flatten() {
                match (is_running, item["status"].as_str()) {
                    (true, Some("inProgress")) => self.item_started(item),
                    _ => self.item_completed(item),
                }
            }
            match turn["status"].as_str() {
                Some("failed") => self.trouble(&text(&turn["error"]["message"])),
                Some("interrupted") => self.say(vec![ScreenRow::new(Ink::Careful, "stopped")]),
                _ => {}
            }
            if is_running {
                let id = turn["id"].as_str().map(str::to_owned);
                self.turn = Some(RunningTurn { id, began: self.now, is_stopping: false });
            }
        }
    }

    fn turn_accepted(&mut self, turn: &Value) {
        let Some(running) = &mut self.turn else { return };
        if running.id.is_none() {
            running.id = turn["id"].as_str().map(str::to_owned);
        }
        if running.is_stopping
            && let Some((thread, turn)) = self.running()
        {
            self.tell_interrupt(&thread, &turn);
        }
    }

    fn choose_thread(&mut self, page: &Value) {
        let threads = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let own = self.thread.as_ref().map(|thread| thread.id.clone());
        let entry = |thread: &Value| {
            let id = text(&thread["id"]);
            let name = thread["name"].as_str().filter(|name| !name.is_empty());
            let label = one_line(name.unwrap_or_else(|| thread["preview"].as_str().unwrap_or_default()));
            PickEntry { label, detail: short_id(&id).to_owned(), action: PickAction::Resume(id) }
        };
        let others = threads.iter().filter(|thread| thread["id"].as_str() != own.as_deref());
        let entries: Vec<PickEntry> = others.map(entry).collect();
        if entries.is_empty() {
            self.note("there is no other thread");
            if self.thread.is_none() {
                self.ask_start();
            }
            return;
        }
        self.pick("Go on with which thread?", entries);
    }

    fn choose_model(&mut self, page: &Value) {
        let models = page["data"].as_array().into_iter().flatten();
        let current = self.thread.as_ref().map(|thread| thread.model.clone()).unwrap_or_default();
        let entry = |model: &Value| {
            let name = text(&model["model"]);
            let now = if name == current { " (now)" } else { "" };
            let label = format!("{name}{now}");
            PickEntry {
                label,
                detail: one_line(&text(&model["description"])),
                action: PickAction::Model(name),
            }
        };
        let entries: Vec<PickEntry> = models.map(entry).collect();
        if entries.is_empty() {
            self.note("the provider lists no models; `/model NAME` takes any name");
            return;
        }
        self.pick("Which model?", entries);
    }

    /// A name that the provider does not list may be right all the same: it is taken, and said.
    fn check_model(&mut self, name: &str, page: &Value) {
        let models = page["data"].as_array().into_iter().flatten();
        let names: Vec<String> = models.map(|model| text(&model["model"])).collect();
        if names.is_empty() || names.iter().any(|known| known == name) {
            return;
        }
        let near = (self.options.nearest)(name, &names);
        let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        self.note(&format!("no model {} is listed{near}", one_line(name)));
    }

    fn show_diff(&mut self, result: &Value) {
        let (code, out) = (result["exitCode"].as_i64().unwrap_or(-1), text(&result["stdout"]));
        let whole = if code == 0 { out } else { self.diff.clone() };
        match whole.trim().is_empty() {
            true if code == 0 => self.note("git sees no changes"),
            true => self
                .note(&format!("no changes in this turn; git says: {}", one_line(&text(&result["stderr"])))),
            false => self.say(diff(&whole, WHOLE_DIFF)),
        }
    }
}

/// Ids are compared without their dashes, in small letters.
fn plain_id(id: &str) -> String {
    id.chars().filter(|letter| *letter != '-').map(|letter| letter.to_ascii_lowercase()).collect()
}

/// The last turns of a thread, the oldest first.
pub(super) struct EarlierTurns<'a> {
    pub(super) turns: Vec<&'a Value>,
    pub(super) has_more: bool,
}

impl<'a> EarlierTurns<'a> {
    /// From a page, whose newest turn comes first, or from the whole thread.
    pub(super) fn read(page: Option<&'a Value>, all: &'a Value) -> Self {
        let list = |turns: &'a Value| turns.as_array().map(Vec::as_slice).unwrap_or_default();
        match page {
            Some(page) => Self {
                turns: list(&page["data"]).iter().rev().collect(),
                has_more: page["nextCursor"].is_string(),
            },
            None => {
                let from = list(all).len().saturating_sub(EARLIER_TURNS);
                Self { turns: list(all)[from..].iter().collect(), has_more: from > 0 }
            }
        }
    }
}
