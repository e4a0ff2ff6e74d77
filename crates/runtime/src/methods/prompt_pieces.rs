//! `thread/prompt/read`, and the pieces that a described request is shown in.

use engine::{FragmentText, approximate_tokens, fragments_of};
use protocol::{
    PromptPiece, PromptPieces, ResponseItem, ThreadPromptReadParams, ThreadPromptReadResponse,
    ThreadResumeParams,
};
use serde_json::{Value, json};
use support::blocking;

use crate::error::RuntimeError;
use crate::methods::debug_prompt::{PromptDescription, PromptOf};
use crate::runtime::Runtime;
use driver::check_thread_id;

const DEFAULT_PIECES: u32 = 100;
const MAX_PIECES: u32 = 1_000;
/// In bytes. A longer text is cut: a picture, or a file that was read whole.
const MAX_TEXT: usize = 100_000;
/// The bytes of all texts of a history.
const MAX_HISTORY: usize = 2_000_000;

impl Runtime {
    /// A thread that is loaded tells itself; of any other the record does, and it is not loaded for that.
    pub async fn read_prompt(
        &self,
        params: &ThreadPromptReadParams,
    ) -> Result<ThreadPromptReadResponse, RuntimeError> {
        let id = check_thread_id(&params.thread_id)?;
        let described = match self.state.loaded(&id) {
            Some(loaded) => {
                let next = loaded.handle.next_request().await?;
                blocking(move || PromptDescription::of_loaded(id, next)).await?
            }
            None => {
                let runtime = self.clone();
                let stored: ThreadResumeParams =
                    protocol::from_value(&json!({ "threadId": id })).map_err(|_| RuntimeError::Defect)?;
                blocking(move || runtime.describe_prompt(&PromptOf::Stored(Box::new(stored)))).await??
            }
        };
        let limit = params.history_limit.unwrap_or(DEFAULT_PIECES).clamp(1, MAX_PIECES);
        Ok(described.answer(limit as usize))
    }
}

impl PromptDescription {
    /// Every piece whole, in the order in which the model reads them.
    pub fn pieces(&self) -> PromptPieces {
        let instructions = self.instructions.iter();
        let fragment = |one: &FragmentText| piece(one.role, one.name, one.text.clone());
        PromptPieces {
            instructions: instructions
                .map(|one| piece("system", one.name.clone(), one.text.clone()))
                .collect(),
            tools: self.tools.iter().map(|tool| piece("tool", tool_name(tool), tool.to_string())).collect(),
            history: self.history.iter().flat_map(|item| pieces_of(item)).collect(),
            next: self.next.iter().map(fragment).collect(),
        }
    }

    fn answer(&self, limit: usize) -> ThreadPromptReadResponse {
        let mut pieces = self.pieces();
        let all = [&pieces.instructions, &pieces.tools, &pieces.history, &pieces.next];
        let tokens = all.into_iter().flatten().map(|piece| piece.tokens).sum();
        let PromptPieces { instructions, tools, history, next } = &mut pieces;
        for piece in instructions.iter_mut().chain(tools).chain(&mut *history).chain(next) {
            piece.text.truncate(piece.text.floor_char_boundary(MAX_TEXT));
        }
        let mut room = MAX_HISTORY;
        let fits = |piece: &&PromptPiece| {
            let is_room = piece.text.len() <= room;
            room = room.saturating_sub(piece.text.len());
            is_room
        };
        let kept = history.iter().rev().take(limit).take_while(fits).count();
        let omitted = history.len() - kept;
        history.drain(..omitted);
        ThreadPromptReadResponse {
            model: self.model.clone(),
            model_provider: self.model_provider.clone(),
            cwd: self.cwd.clone(),
            context_window: self.context_window,
            tokens,
            omitted_history: u32::try_from(omitted).unwrap_or(u32::MAX),
            pieces,
        }
    }
}

fn piece(role: &str, name: impl Into<String>, text: String) -> PromptPiece {
    PromptPiece {
        role: role.to_owned(),
        name: name.into(),
        bytes: text.len() as u64,
        tokens: approximate_tokens(text.len()),
        text,
        is_message: false,
    }
}

fn message(role: &str, name: impl Into<String>, text: String) -> PromptPiece {
    PromptPiece { is_message: true, ..piece(role, name, text) }
}

/// Tools of a provider have a type and no name.
fn tool_name(tool: &Value) -> String {
    tool["name"].as_str().or(tool["type"].as_str()).unwrap_or("?").to_owned()
}

/// Context is shown by its fragments, everything else as one piece.
fn pieces_of(item: &ResponseItem) -> Vec<PromptPiece> {
    let fragments = fragments_of(item);
    if !fragments.is_empty() {
        let named = |fragment: FragmentText| piece(fragment.role, fragment.name, fragment.text);
        return fragments.into_iter().map(named).collect();
    }
    let Ok(value) = serde_json::to_value(item) else { return Vec::new() };
    let text = |key: &str| match &value[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let kind = value["type"].as_str().unwrap_or("?");
    vec![match kind {
        "message" => message(role(&value), "message", message_text(&value)),
        "function_call" => message("assistant", format!("call {}", text("name")), text("arguments")),
        "custom_tool_call" => message("assistant", format!("call {}", text("name")), text("input")),
        "function_call_output" | "custom_tool_call_output" => message("tool", "output", text("output")),
        other => message("assistant", other, value.to_string()),
    }]
}

fn role(message: &Value) -> &'static str {
    match message["role"].as_str() {
        Some("assistant") => "assistant",
        Some("developer") => "developer",
        _ => "user",
    }
}

fn message_text(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let texts = parts.map(|part| part["text"].as_str().unwrap_or("[image]"));
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn described(messages: &[String]) -> PromptDescription {
        let item = |text: &String| {
            let content = json!([{ "type": "input_text", "text": text }]);
            let item = json!({ "type": "message", "role": "user", "content": content });
            Arc::new(serde_json::from_value(item).expect("an item"))
        };
        PromptDescription {
            thread_id: None,
            model: "m".to_owned(),
            model_provider: "p".to_owned(),
            cwd: "/w".to_owned(),
            context_window: None,
            instructions: Vec::new(),
            tools: vec![Arc::new(json!({ "type": "web_search" }))],
            history: messages.iter().map(item).collect(),
            next: Vec::new(),
        }
    }

    #[test]
    fn of_a_long_history_the_end_is_given_and_all_of_it_is_counted() {
        let messages: Vec<String> = (0..30).map(|number| format!("{number:04}")).collect();
        let answer = described(&messages).answer(10);
        let texts: Vec<&str> = answer.pieces.history.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!((texts[0], texts.len(), answer.omitted_history), ("0020", 10, 20));
        let tools: i64 = answer.pieces.tools.iter().map(|piece| piece.tokens).sum();
        assert_eq!(answer.tokens, 30 + tools);
    }

    #[test]
    fn long_texts_are_cut_and_the_whole_is_bounded() {
        let long = "\u{e9}".repeat(MAX_TEXT);
        let answer = described(&vec![long; 50]).answer(1_000);
        let history = &answer.pieces.history;
        assert!(history.iter().all(|piece| piece.text.len() == MAX_TEXT && piece.bytes == 200_000));
        assert_eq!(history.len(), MAX_HISTORY / MAX_TEXT);
        assert_eq!(answer.omitted_history as usize, 50 - history.len());
    }
}
