//! Converts lines of a rollout to our records. Turns come from the events, the model's history from the items.

use protocol::{
    ContentItem, ItemId, ResponseItem, RolloutRecord, ThreadId, ThreadItem, ThreadMetadataChange,
    ThreadTokenUsage, TokenUsageBreakdown, TriState, TurnError, TurnId, TurnStatus,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::events::{Event, item_of};
use super::meta::ReferenceMeta;
use crate::time;

/// Bytes of user messages that a compaction of an old release keeps. The reference counts 20,000 tokens of about four
/// bytes.
const KEPT_BYTES: usize = 80_000;

/// One line of a rollout.
#[derive(Deserialize)]
struct RolloutLine<'a> {
    #[serde(borrow, default)]
    timestamp: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct CompactedLine {
    #[serde(default)]
    message: String,
    replacement_history: Option<Vec<ResponseItem>>,
}

#[derive(Deserialize)]
struct ContextLine {
    model: Option<String>,
    effort: Option<protocol::ReasoningEffort>,
}

/// Takes the lines of one rollout in order.
#[derive(Debug, Default)]
pub(super) struct RolloutConverter {
    thread_id: Option<ThreadId>,
    has_identity: bool,
    at_ms: i64,
    turn: Option<CurrentTurn>,
    /// The number of items per turn, for ids of items without one.
    turns: Vec<(TurnId, usize)>,
    next_item: usize,
    implicit_turns: usize,
    model: Option<String>,
    effort: Option<protocol::ReasoningEffort>,
    /// The user's messages, for compactions of old releases. Their total length is limited.
    said: Vec<String>,
}

#[derive(Debug)]
struct CurrentTurn {
    id: TurnId,
    /// Started by an event with an id, like all turns of newer releases.
    is_explicit: bool,
    error: Option<TurnError>,
    /// The last item, if further events extend it.
    reasoning: Option<ThreadItem>,
    is_aborted: bool,
}

impl RolloutConverter {
    /// For the thread with this id, or the first one found.
    pub(super) fn new(thread_id: Option<ThreadId>) -> Self {
        Self { thread_id, next_item: 1, ..Self::default() }
    }

    /// When the last line was written.
    pub(super) fn at_ms(&self) -> i64 {
        self.at_ms
    }

    /// Adds the records of one line. False if the line could not be parsed.
    pub(super) fn line(&mut self, line: &[u8], out: &mut Vec<RolloutRecord>) -> bool {
        if line.trim_ascii().is_empty() {
            return true;
        }
        let Ok(RolloutLine { timestamp, kind, payload }) = serde_json::from_slice(line) else { return false };
        self.at_ms = timestamp.as_deref().and_then(time::parse_ms).unwrap_or(self.at_ms);
        let payload = payload.get();
        let understood = match kind.as_ref() {
            "session_meta" => self.identity(payload, out),
            "turn_context" => self.context(payload, out),
            "response_item" => self.item(payload, out),
            "compacted" => self.compacted(payload, out),
            "event_msg" => {
                let event = serde_json::from_str(payload).ok().and_then(|event: Value| Event::of(&event));
                event.map(|event| self.event(event, out))
            }
            _ => None,
        };
        understood.is_some()
    }

    /// The end of the file.
    pub(super) fn end(&mut self, out: &mut Vec<RolloutRecord>) {
        if self.turn.as_ref().is_some_and(|turn| !turn.is_explicit) {
            self.close(out);
        }
    }

    /// The first identity counts: a fork contains its source's too.
    fn identity(&mut self, payload: &str, out: &mut Vec<RolloutRecord>) -> Option<()> {
        let meta = serde_json::from_str::<ReferenceMeta>(payload).ok()?.into_ours(self.at_ms)?;
        let is_it = self.thread_id.as_ref().is_none_or(|id| *id == meta.thread_id);
        if is_it && !self.has_identity {
            self.has_identity = true;
            self.thread_id = Some(meta.thread_id.clone());
            out.push(RolloutRecord::SessionMeta { meta: Box::new(meta) });
        }
        Some(())
    }

    /// Keeps only the model: the model gets the rest of the context again, in our form.
    fn context(&mut self, payload: &str, out: &mut Vec<RolloutRecord>) -> Option<()> {
        let ContextLine { model, effort } = serde_json::from_str(payload).ok()?;
        if model != self.model || effort != self.effort {
            let set = |value: Option<_>| value.map_or(TriState::Clear, TriState::Set);
            let change = ThreadMetadataChange {
                model: model.clone().map_or(TriState::Keep, TriState::Set),
                reasoning_effort: set(effort),
                ..ThreadMetadataChange::default()
            };
            (self.model, self.effort) = (model, effort);
            out.push(RolloutRecord::Metadata { change });
        }
        Some(())
    }

    fn item(&mut self, payload: &str, out: &mut Vec<RolloutRecord>) -> Option<()> {
        let item: ResponseItem = serde_json::from_str(payload).ok()?;
        if item == ResponseItem::Other {
            return None;
        }
        if let Some(text) = said(&item) {
            // In old rollouts nothing else marks the start of a turn, and this comes before the user's event.
            let is_implicit = self.turn.as_ref().is_none_or(|turn| !turn.is_explicit);
            if is_implicit && self.items_of_turn() != Some(0) {
                self.open_implicit(out);
            }
            self.remember(text);
        }
        let turn_id = self.turn.as_ref().map(|turn| turn.id.clone());
        out.push(RolloutRecord::ResponseItem { turn_id, item });
        Some(())
    }

    fn compacted(&mut self, payload: &str, out: &mut Vec<RolloutRecord>) -> Option<()> {
        let CompactedLine { message, replacement_history } = serde_json::from_str(payload).ok()?;
        let replacement = match replacement_history {
            Some(mut items) => {
                items.retain(|item| *item != ResponseItem::Other);
                items
            }
            None => self.said.iter().chain([&message]).map(|text| user_message(text)).collect(),
        };
        let turn_id = self.turn_id(out);
        out.push(RolloutRecord::Compacted { turn_id, summary: message, replacement });
        Some(())
    }

    fn event(&mut self, event: Event, out: &mut Vec<RolloutRecord>) {
        match event {
            Event::TaskStarted { turn_id } => self.open(TurnId::new(turn_id), true, out),
            Event::TaskComplete { turn_id } => self.complete(turn_id.as_deref(), out),
            Event::TurnAborted { turn_id } => self.abort(turn_id.as_deref(), out),
            Event::ThreadRolledBack { num_turns } => self.roll_back(num_turns, out),
            Event::TokenCount { info: Some(info) } => {
                let turn_id = self.turn_id(out);
                let usage = ThreadTokenUsage {
                    total: info.total_token_usage.into(),
                    last: info.last_token_usage.into(),
                    model_context_window: info.model_context_window,
                };
                out.push(RolloutRecord::TokenUsage { turn_id, usage });
            }
            Event::Error { message, affects_turn: true, info } => {
                self.turn_id(out);
                if let Some(turn) = &mut self.turn {
                    let codex_error_info = info.and_then(|info| protocol::from_value(&info).ok());
                    turn.error = Some(TurnError { message, codex_error_info, additional_details: None });
                }
            }
            Event::UserMessage { content } => {
                let joins = self.turn.as_ref().is_some_and(|turn| turn.is_explicit);
                if !joins && self.items_of_turn() != Some(0) {
                    self.open_implicit(out);
                }
                self.add(|id| ThreadItem::UserMessage { id, content }, out);
            }
            Event::Reasoning { summary, content } => self.reasoning(summary, content, out),
            Event::Unnumbered(make) => self.add(|id| item_of(*make, id), out),
            Event::Tool { turn_id, item } => self.tool(turn_id.map(TurnId::new), *item, out),
            Event::TokenCount { info: None } | Event::Error { .. } | Event::Ignored => {}
        }
    }

    fn reasoning(&mut self, summary: Option<String>, content: Option<String>, out: &mut Vec<RolloutRecord>) {
        let turn_id = self.turn_id(out);
        let before = self.turn.as_mut().and_then(|turn| turn.reasoning.take());
        let mut item = match before {
            Some(item) => item,
            None => ThreadItem::Reasoning { id: self.number(), summary: Vec::new(), content: Vec::new() },
        };
        if let ThreadItem::Reasoning { summary: summaries, content: contents, .. } = &mut item {
            summaries.extend(summary);
            contents.extend(content);
        }
        out.push(RolloutRecord::ThreadItem { turn_id, item: item.clone() });
        if let Some(turn) = &mut self.turn {
            turn.reasoning = Some(item);
        }
    }

    /// An item without an id, in the current turn.
    fn add(&mut self, make: impl FnOnce(ItemId) -> ThreadItem, out: &mut Vec<RolloutRecord>) {
        let turn_id = self.turn_id(out);
        if let Some(turn) = &mut self.turn {
            turn.reasoning = None;
        }
        let item = make(self.number());
        out.push(RolloutRecord::ThreadItem { turn_id, item });
    }

    /// An item of a call. Dropped if its turn is missing.
    fn tool(&mut self, turn_id: Option<TurnId>, item: ThreadItem, out: &mut Vec<RolloutRecord>) {
        let turn_id = match turn_id {
            Some(id) if !self.turns.iter().any(|(known, _)| *known == id) => return,
            Some(id) => id,
            None => self.turn_id(out),
        };
        if let Some(turn) = &mut self.turn {
            turn.reasoning = None;
        }
        self.count(&turn_id);
        out.push(RolloutRecord::ThreadItem { turn_id, item });
    }

    fn number(&mut self) -> ItemId {
        let id = ItemId::new(format!("item-{}", self.next_item));
        self.next_item += 1;
        if let Some(turn_id) = self.turn.as_ref().map(|turn| turn.id.clone()) {
            self.count(&turn_id);
        }
        id
    }

    fn count(&mut self, turn_id: &TurnId) {
        if let Some((_, count)) = self.turns.iter_mut().rfind(|(known, _)| known == turn_id) {
            *count += 1;
        }
    }

    fn items_of_turn(&self) -> Option<usize> {
        let turn = self.turn.as_ref()?;
        self.turns.iter().rfind(|(known, _)| *known == turn.id).map(|(_, count)| *count)
    }

    /// The current turn, started if there is none.
    fn turn_id(&mut self, out: &mut Vec<RolloutRecord>) -> TurnId {
        if let Some(turn) = &self.turn {
            return turn.id.clone();
        }
        // Events after the end of a turn, such as its tokens, belong to it.
        match self.turns.last() {
            Some((id, _)) => id.clone(),
            None => {
                self.open_implicit(out);
                self.turns.last().map_or_else(|| TurnId::new("turn-1"), |(id, _)| id.clone())
            }
        }
    }

    fn open_implicit(&mut self, out: &mut Vec<RolloutRecord>) {
        self.implicit_turns += 1;
        self.open(TurnId::new(format!("turn-{}", self.implicit_turns)), false, out);
    }

    fn open(&mut self, id: TurnId, is_explicit: bool, out: &mut Vec<RolloutRecord>) {
        self.close(out);
        out.push(RolloutRecord::TurnStarted { turn_id: id.clone(), at_ms: self.at_ms });
        self.turns.push((id.clone(), 0));
        self.turn = Some(CurrentTurn { id, is_explicit, error: None, reasoning: None, is_aborted: false });
    }

    /// Ends the current turn, whether or not its end was recorded.
    fn close(&mut self, out: &mut Vec<RolloutRecord>) {
        let Some(turn) = self.turn.take() else { return };
        let status = match (&turn.error, turn.is_explicit || turn.is_aborted) {
            (Some(_), _) => TurnStatus::Failed,
            (None, true) => TurnStatus::Interrupted,
            (None, false) => TurnStatus::Completed,
        };
        let (turn_id, error, at_ms) = (turn.id, turn.error, self.at_ms);
        out.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms });
    }

    fn complete(&mut self, turn_id: Option<&str>, out: &mut Vec<RolloutRecord>) {
        let is_current = |turn: &CurrentTurn| turn_id.is_none_or(|id| id == turn.id.as_str());
        match self.turn.take() {
            Some(turn) if is_current(&turn) => {
                let status = match (&turn.error, turn.is_aborted) {
                    (Some(_), _) => TurnStatus::Failed,
                    (None, true) => TurnStatus::Interrupted,
                    (None, false) => TurnStatus::Completed,
                };
                let (turn_id, error, at_ms) = (turn.id, turn.error, self.at_ms);
                out.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms });
            }
            // The end of an earlier turn, which was closed when this one started.
            turn => self.turn = turn,
        }
    }

    fn abort(&mut self, turn_id: Option<&str>, out: &mut Vec<RolloutRecord>) {
        match &mut self.turn {
            Some(turn) if turn_id.is_none_or(|id| id == turn.id.as_str()) => {
                turn.is_aborted = true;
                self.close(out);
            }
            _ => {}
        }
    }

    fn roll_back(&mut self, num_turns: u32, out: &mut Vec<RolloutRecord>) {
        self.close(out);
        let kept = self.turns.len().saturating_sub(num_turns as usize);
        self.turns.truncate(kept);
        self.next_item = 1 + self.turns.iter().map(|(_, count)| count).sum::<usize>();
        out.push(RolloutRecord::RolledBack { num_turns });
    }

    fn remember(&mut self, text: String) {
        self.said.push(text);
        let mut total: usize = self.said.iter().map(String::len).sum();
        while total > KEPT_BYTES && self.said.len() > 1 {
            total -= self.said.remove(0).len();
        }
        if let Some(last) = self.said.last_mut() {
            last.truncate(last.floor_char_boundary(KEPT_BYTES));
        }
    }
}

/// The text of a person's message. Context from programs is in tags or under its own heading.
fn said(item: &ResponseItem) -> Option<String> {
    let ResponseItem::Message { role, content, .. } = item else { return None };
    let texts = content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let start = text.trim_start();
    let is_context = start.starts_with('<') || start.starts_with("# AGENTS.md");
    (role == "user" && !is_context).then_some(text)
}

fn user_message(text: &str) -> ResponseItem {
    let content = vec![ContentItem::InputText { text: text.to_owned() }];
    ResponseItem::Message { id: None, role: "user".to_owned(), content, end_turn: None, phase: None }
}

/// Token counts in the reference's form.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReferenceTokens {
    input_tokens: i64,
    cached_input_tokens: i64,
    output_tokens: i64,
    reasoning_output_tokens: i64,
    total_tokens: i64,
}

impl From<ReferenceTokens> for TokenUsageBreakdown {
    fn from(tokens: ReferenceTokens) -> Self {
        Self {
            total_tokens: tokens.total_tokens,
            input_tokens: tokens.input_tokens,
            cached_input_tokens: tokens.cached_input_tokens,
            output_tokens: tokens.output_tokens,
            reasoning_output_tokens: tokens.reasoning_output_tokens,
            cache_write_input_tokens: None,
            is_estimated: false,
        }
    }
}

/// The totals after a response.
#[derive(Debug, Deserialize)]
pub(super) struct ReferenceUsage {
    #[serde(default)]
    total_token_usage: ReferenceTokens,
    #[serde(default)]
    last_token_usage: ReferenceTokens,
    model_context_window: Option<i64>,
}
