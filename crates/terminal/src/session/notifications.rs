//! Notifications of the server.

use serde_json::{Value, json};

use super::TerminalState;
use super::calls::FILE_SEARCH;
use super::facts::{RunningTurn, span, text, thousands};
use crate::rows::{Ink, ScreenRow};
use crate::safe::one_line;

impl TerminalState {
    pub(super) fn message(&mut self, mut message: Value) {
        if self.is_over {
            return;
        }
        let method = message["method"].as_str().map(str::to_owned);
        match (method, message.get("id").is_some()) {
            (Some(method), true) => {
                let (id, params) = (message["id"].take(), message["params"].take());
                self.asked(id, &method, &params);
            }
            (Some(method), false) => self.told(&method, &message["params"]),
            (None, _) => self.answered(&mut message),
        }
    }

    fn told(&mut self, method: &str, params: &Value) {
        match method {
            "configWarning" | "deprecationNotice" => self.warning(params),
            "mcpServer/startupStatus/updated" if params["status"].as_str() == Some("failed") => {
                let why = format!("the MCP server {} did not start", text(&params["name"]));
                self.warning(&json!({ "summary": why, "details": params["error"] }));
            }
            "fuzzyFileSearch/sessionUpdated" if params["sessionId"] == FILE_SEARCH => {
                self.files_found(params);
            }
            "serverRequest/resolved" => self.withdrawn(&params["requestId"]),
            _ if params.get("threadId").is_some() && !self.is_ours(&params["threadId"]) => {
                self.told_of_agent(method, params);
            }
            _ => self.put_aside(|state| state.told_of_thread(method, params)),
        }
    }

    fn told_of_thread(&mut self, method: &str, params: &Value) {
        match method {
            "turn/started" => self.turn_started(&params["turn"]),
            "turn/completed" => self.turn_completed(params),
            "turn/diff/updated" => self.diff = text(&params["diff"]),
            "thread/tokenUsage/updated" => self.spent.update(&params["tokenUsage"]),
            "thread/name/updated" => {
                if let Some(thread) = &mut self.thread {
                    thread.name = params["threadName"].as_str().map(str::to_owned);
                }
            }
            "model/rerouted" => {
                self.note(&format!("the provider answers with the model {}", text(&params["toModel"])));
            }
            _ => self.told_of_items(method, params),
        }
    }

    /// Notifications that are shown alike for the thread and for an agent.
    pub(super) fn told_of_items(&mut self, method: &str, params: &Value) {
        let (item, delta) = (text(&params["itemId"]), text(&params["delta"]));
        match method {
            "turn/plan/updated" => self.plan_updated(params),
            "item/started" => self.item_started(&params["item"]),
            "item/completed" => self.item_completed(&params["item"]),
            "item/agentMessage/delta" => self.message_delta(&item, &delta),
            "item/plan/delta" => self.reasoning_delta(&item, &delta),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                self.output_delta(&item, &delta);
            }
            "item/mcpToolCall/progress" => {
                self.output_delta(&item, &format!("{}\n", text(&params["message"])));
            }
            "item/reasoning/summaryTextDelta" => self.reasoning_delta(&item, &delta),
            "item/reasoning/summaryPartAdded" => self.reasoning_delta(&item, "\n"),
            "error" => self.error(params),
            _ => {}
        }
    }

    /// The turn of a thread is over, and with it what was asked in it. Agents work on after the turn of their parent.
    pub(super) fn turn_left(&mut self, thread: &str) {
        self.withdraw_all(thread);
        self.asked_patches.retain(|(of, _), _| of != thread);
    }

    fn warning(&mut self, params: &Value) {
        let details = params["details"].as_str().map(|details| format!(": {details}")).unwrap_or_default();
        let summary = text(&params["summary"]);
        let summary = if details.is_empty() { summary.as_str() } else { summary.trim_end_matches('.') };
        let line = one_line(&format!("{summary}{details}"));
        self.say(vec![ScreenRow::new(Ink::Careful, format!("! {line}")).hanging(2)]);
    }

    fn turn_started(&mut self, turn: &Value) {
        let id = turn["id"].as_str().map(str::to_owned);
        self.diff.clear();
        self.retry_reason = None;
        self.items.plan.clear();
        if let Some(thread) = &mut self.thread {
            thread.has_turns = true;
        }
        match &mut self.turn {
            Some(running) => running.id = id,
            None => self.turn = Some(RunningTurn { id, began: self.now, is_stopping: false }),
        }
    }

    fn turn_completed(&mut self, params: &Value) {
        self.flush_live();
        self.turn_left(&self.own_id());
        self.items.sent.clear();
        self.asked_items.clear();
        let turn = &params["turn"];
        if let Some(cost) = params["cost"]["amount"].as_f64() {
            self.spent.cost = Some(self.spent.cost.unwrap_or_default() + cost);
        }
        match turn["status"].as_str().unwrap_or_default() {
            "failed" => {
                // One line: what lies behind it is in the record, and in `exec -v`.
                self.trouble(&text(&turn["error"]["message"]));
            }
            "interrupted" => self.say(vec![ScreenRow::new(Ink::Careful, "stopped")]),
            _ => self.turn_summary(turn),
        }
        self.turn = None;
        match turn["status"].as_str() {
            Some("completed") => self.next_in_queue(),
            // What waited was meant for after a good end: the user sends it, or does not.
            _ => self.give_queue_back(),
        }
    }

    pub(super) fn give_queue_back(&mut self) {
        let waited = self.queue.drain(..).collect::<Vec<_>>().join("\n");
        if waited.is_empty() {
            return;
        }
        if self.options.style.can_redraw {
            self.put_before_input(&waited);
        } else {
            self.note(&format!("not sent: {waited}"));
        }
    }

    fn turn_summary(&mut self, turn: &Value) {
        let between = self.glyphs.between;
        let mut parts = Vec::new();
        parts.extend(turn["durationMs"].as_i64().map(|time| format!("took {}", span(time))));
        if self.spent.input + self.spent.output > 0 {
            let (input, output) = (thousands(self.spent.input), thousands(self.spent.output));
            parts.push(format!("tokens so far: {input} in, {output} out"));
        }
        parts.extend(self.spent.money());
        if !parts.is_empty() {
            self.note(&parts.join(between));
        }
    }

    fn plan_updated(&mut self, params: &Value) {
        let mut shown = Vec::new();
        if let Some(why) = params["explanation"].as_str().filter(|why| !why.trim().is_empty()) {
            shown.push(ScreenRow::new(Ink::Faint, one_line(why)));
        }
        for step in params["plan"].as_array().into_iter().flatten() {
            let (mark, ink) = match step["status"].as_str().unwrap_or_default() {
                "completed" => (self.glyphs.good, Ink::Good),
                "inProgress" => (self.glyphs.busy, Ink::Busy),
                _ => (self.glyphs.open_step, Ink::Faint),
            };
            let row =
                ScreenRow::new(ink, format!("{mark} ")).with(Ink::Plain, one_line(&text(&step["step"])));
            shown.push(row.hanging(2));
        }
        if shown != self.items.plan {
            self.items.plan.clone_from(&shown);
            self.say(shown);
        }
    }

    /// An error that ends the turn is told with its end.
    fn error(&mut self, params: &Value) {
        if params["willRetry"].as_bool() == Some(true) {
            let error = &params["error"];
            let details = error["additionalDetails"].as_str().filter(|details| !details.trim().is_empty());
            let why = one_line(details.unwrap_or(&text(&error["message"])));
            // A provider that fails in the same way again and again is told of once.
            if self.retry_reason.as_ref() != Some(&why) {
                self.say(vec![ScreenRow::new(Ink::Careful, format!("! {why}; trying again")).hanging(2)]);
                self.retry_reason = Some(why);
            }
        }
    }
}
