//! Child agents: what each does, and the one that the user looks at in place of the thread.

use serde_json::Value;

use super::TerminalState;
use super::answers::EarlierTurns;
use super::facts::{short_id, text};
use super::live::ShownItems;
use super::popup::{PickAction, PickEntry};
use crate::rows::{Ink, ScreenRow};
use crate::safe::one_line;

/// Agents that are shown at once below the thread.
const AGENT_ROWS: usize = 4;
/// Rows of the thread that are kept while the user looks at an agent.
const MOST_ASIDE: usize = 2_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ChildAgent {
    /// The words it was started with. Empty where nobody told.
    task: String,
    state: String,
    is_over: bool,
    /// The turn that can be steered.
    turn: Option<String>,
}

/// The agent that the user looks at.
#[derive(Debug)]
pub(super) struct ShownAgent {
    /// Its earlier turns are printed, so that what comes now follows them.
    has_begun: bool,
    items: ShownItems,
}

impl TerminalState {
    /// A notification about another thread than ours.
    pub(super) fn told_of_agent(&mut self, method: &str, params: &Value) {
        let thread = text(&params["threadId"]);
        match method {
            "turn/started" => {
                let agent = self.agents.entry(thread.clone()).or_default();
                (agent.state, agent.is_over) = ("running".to_owned(), false);
                agent.turn = params["turn"]["id"].as_str().map(str::to_owned);
            }
            "turn/completed" => {
                let agent = self.agents.entry(thread.clone()).or_default();
                (agent.state, agent.is_over, agent.turn) = (text(&params["turn"]["status"]), true, None);
                self.turn_left(&thread);
            }
            "item/started" => {
                if params["item"]["type"].as_str() == Some("fileChange") {
                    self.keep_patch(&thread, &params["item"]);
                }
                if let Some(what) = self.work(&params["item"]) {
                    let agent = self.agents.entry(thread.clone()).or_default();
                    (agent.state, agent.is_over) = (one_line(&what), false);
                }
            }
            _ => {}
        }
        self.in_agent(&thread, |state| match method {
            "turn/completed" => state.agent_turn_over(&params["turn"]),
            _ => state.told_of_items(method, params),
        });
    }

    /// From an item of the parent, which says how its agents stand.
    pub(super) fn agents_changed(&mut self, item: &Value) {
        for (thread, told) in item["agentsStates"].as_object().into_iter().flatten() {
            let (word, is_over) = match told["status"].as_str().unwrap_or_default() {
                "pendingInit" => ("starting", false),
                "errored" => ("failed", true),
                "shutdown" => ("closed", true),
                "notFound" => ("not there any more", true),
                word @ ("completed" | "interrupted") => (word, true),
                word => (word, false),
            };
            let said = told["message"].as_str().map(|said| format!(": {}", one_line(said)));
            let agent = self.agents.entry(thread.clone()).or_default();
            (agent.state, agent.is_over) =
                (format!("{}{}", one_line(word), said.unwrap_or_default()), is_over);
        }
        if let (Some("spawnAgent"), Some(task)) = (item["tool"].as_str(), item["prompt"].as_str()) {
            for thread in item["receiverThreadIds"].as_array().into_iter().flatten().filter_map(Value::as_str)
            {
                self.agents.entry(thread.to_owned()).or_default().task = one_line(task);
            }
        }
    }

    /// The thread's short id, and what it was started for.
    pub(super) fn agent_name(&self, thread: &str) -> String {
        let task = self.agents.get(thread).map(|agent| agent.task.as_str()).unwrap_or_default();
        let id = one_line(short_id(thread));
        if task.is_empty() { id } else { format!("{id}: {task}") }
    }

    fn waits_for_user(&self, thread: &str) -> bool {
        self.questions.iter().any(|open| open.thread == thread)
    }

    /// Agents that are at work, also after our own turn. Those that wait for the user come first.
    pub(super) fn agent_rows(&self) -> Vec<ScreenRow> {
        if self.shown_agent.is_some() {
            return Vec::new();
        }
        let mut busy: Vec<_> = self.agents.iter().filter(|(_, agent)| !agent.is_over).collect();
        busy.sort_by_key(|(thread, _)| !self.waits_for_user(thread));
        let row = |(thread, agent): &(&String, &ChildAgent)| {
            let (mark, ink, waits) = match self.waits_for_user(thread) {
                true => (self.glyphs.ask, Ink::Careful, "waits for you: "),
                false => (self.glyphs.busy, Ink::Busy, ""),
            };
            ScreenRow::new(ink, format!("{mark} agent {} ", one_line(short_id(thread))))
                .with(Ink::Faint, format!("{waits}{}", agent.state))
        };
        let mut shown: Vec<ScreenRow> = busy.iter().take(AGENT_ROWS).map(row).collect();
        if busy.len() > AGENT_ROWS {
            let more = format!("  and {} more; /agents has them all", busy.len() - AGENT_ROWS);
            shown.push(ScreenRow::new(Ink::Faint, more));
        }
        shown
    }

    /// The list of agents. Whoever looks at one can go back.
    pub(super) fn slash_agents(&mut self, _rest: &str) {
        if self.agents.is_empty() {
            self.note("no agent was started in this thread");
            return;
        }
        let mut entries = Vec::new();
        if self.shown_agent.is_some() {
            let label = "back to the thread".to_owned();
            entries.push(PickEntry { label, detail: String::new(), action: PickAction::Thread });
        }
        entries.extend(self.agents.iter().map(|(thread, agent)| {
            let waits = if self.waits_for_user(thread) { "waits for you: " } else { "" };
            PickEntry {
                label: self.agent_name(thread),
                detail: format!("{waits}{}", agent.state),
                action: PickAction::Agent(thread.clone()),
            }
        }));
        self.pick("Look at which agent?", entries);
    }

    /// From now on the items of this agent are shown in place of those of the thread.
    pub(super) fn show_agent(&mut self, thread: &str) {
        let items = ShownItems { agent: Some(thread.to_owned()), ..ShownItems::default() };
        self.shown_agent = Some(ShownAgent { has_begun: false, items });
        let title = format!("agent {}", self.agent_name(thread));
        let back = format!("  ({} goes back)", self.way_back());
        self.say(vec![ScreenRow::new(Ink::Strong, title).with(Ink::Faint, back).hanging(2)]);
        self.ask_agent_turns(thread);
    }

    /// The agent's last turns, from the server. Where it has none of them, what comes now is shown all the same.
    pub(super) fn show_agent_turns(&mut self, thread: &str, page: Result<&Value, &str>) {
        let Some(shown) = &mut self.shown_agent else { return };
        if shown.items.agent.as_deref() != Some(thread) {
            return;
        }
        shown.has_begun = true;
        let page = match page {
            Ok(page) => page,
            Err(why) => {
                self.note(&format!("its earlier turns cannot be shown: {why}"));
                self.repeat_question(thread);
                return;
            }
        };
        let earlier = EarlierTurns::read(Some(page), &Value::Null);
        if earlier.has_more {
            self.note(&format!("{} earlier turns", self.glyphs.cut));
        }
        for turn in earlier.turns {
            let is_running = turn["status"].as_str() == Some("inProgress");
            if let (true, Some(agent)) = (is_running, self.agents.get_mut(thread)) {
                agent.turn = turn["id"].as_str().map(str::to_owned);
            }
            for item in turn["items"].as_array().into_iter().flatten() {
                let is_open = is_running && item["status"].as_str() == Some("inProgress");
                self.in_agent(thread, |state| match is_open {
                    true => state.item_started(item),
                    false => state.item_completed(item),
                });
            }
            if !is_running {
                self.in_agent(thread, |state| state.agent_turn_over(turn));
            }
        }
        self.repeat_question(thread);
    }

    /// While a question waits, Esc answers it.
    fn way_back(&self) -> &'static str {
        if self.options.style.can_redraw && self.questions.is_empty() { "Esc" } else { "/agents" }
    }

    fn agent_turn_over(&mut self, turn: &Value) {
        self.flush_live();
        self.items.sent.clear();
        match turn["status"].as_str().unwrap_or_default() {
            "failed" => self.trouble(&text(&turn["error"]["message"])),
            "interrupted" => self.say(vec![ScreenRow::new(Ink::Careful, "the agent was stopped")]),
            _ => self.note("the agent has ended its turn"),
        }
    }

    /// Shows the thread again, with what came meanwhile.
    pub(super) fn show_thread(&mut self) {
        if self.shown_agent.take().is_none() {
            return;
        }
        self.say(vec![ScreenRow::new(Ink::Strong, "back in the thread")]);
        let missed: Vec<ScreenRow> = self.aside.drain(..).collect();
        self.print(missed);
    }

    /// Words of the user for the agent that is shown.
    pub(super) fn tell_agent(&mut self, text: &str) {
        let thread = self.shown_agent.as_ref().and_then(|shown| shown.items.agent.clone());
        let Some(thread) = thread else { return };
        let Some(turn) = self.agents.get(&thread).and_then(|agent| agent.turn.clone()) else {
            self.trouble(
                "this agent does nothing right now, and only its thread can give it more; Esc goes back",
            );
            self.put_before_input(text);
            return;
        };
        if let Some(shown) = &mut self.shown_agent {
            shown.items.sent.push_back(text.to_owned());
        }
        self.ask_steer_agent(&thread, &turn, text);
    }

    pub(super) fn agent_not_told(&mut self, thread: &str, text: &str, why: &str) {
        if let Some(shown) = &mut self.shown_agent
            && shown.items.agent.as_deref() == Some(thread)
        {
            shown.items.sent.retain(|sent| sent != text);
        }
        self.trouble(why);
        self.put_before_input(text);
    }

    /// The status line while an agent is shown.
    pub(super) fn agent_status(&self) -> Option<ScreenRow> {
        let thread = self.shown_agent.as_ref()?.items.agent.as_deref()?;
        let state = self.agents.get(thread).map(|agent| agent.state.as_str()).unwrap_or_default();
        let between = self.glyphs.between;
        let state = if self.waits_for_user(thread) { "waits for you" } else { state };
        let row = ScreenRow::new(Ink::Busy, format!("agent {}", one_line(short_id(thread))));
        let row = row.with(Ink::Faint, format!("{between}{} goes back{between}{state}", self.way_back()));
        Some(row)
    }

    /// The items that are drawn: of the agent that the user looks at, else of the thread.
    pub(super) fn items_in_view(&self) -> &ShownItems {
        self.shown_agent.as_ref().map_or(&self.items, |shown| &shown.items)
    }

    /// The thread that the items at hand belong to.
    pub(super) fn items_thread(&self) -> String {
        self.items.agent.clone().unwrap_or_else(|| self.own_id())
    }

    /// Runs `work` on the items of this agent, if it is the one that is shown.
    fn in_agent(&mut self, thread: &str, work: impl FnOnce(&mut Self)) {
        let Some(mut shown) =
            self.shown_agent.take_if(|shown| shown.has_begun && shown.items.agent.as_deref() == Some(thread))
        else {
            return;
        };
        std::mem::swap(&mut self.items, &mut shown.items);
        work(self);
        std::mem::swap(&mut self.items, &mut shown.items);
        self.shown_agent = Some(shown);
    }

    /// Runs `work` on the thread's own items. While an agent is shown, rows are kept for later.
    pub(super) fn put_aside(&mut self, work: impl FnOnce(&mut Self)) {
        self.is_aside = self.shown_agent.is_some();
        work(self);
        self.is_aside = false;
    }

    /// Prints at once, whatever is shown: questions are for the user in either case.
    pub(super) fn print_now(&mut self, work: impl FnOnce(&mut Self)) {
        let earlier = std::mem::replace(&mut self.is_aside, false);
        work(self);
        self.is_aside = earlier;
    }

    /// The oldest rows go where there are too many.
    pub(super) fn keep_for_later(&mut self, rows: Vec<ScreenRow>) {
        self.aside.extend(rows);
        let surplus = self.aside.len().saturating_sub(MOST_ASIDE);
        if surplus > 0 {
            self.aside.drain(..=surplus);
            self.aside.push_front(ScreenRow::new(Ink::Faint, format!("{} earlier rows", self.glyphs.cut)));
        }
    }
}
