//! What the model has seen so far.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{ContentItem, FunctionCallOutputBody, ResponseItem};
use serde_json::Value;

use crate::context::MARKERS;

/// The items of a thread in order, shared with the requests made from them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    items: Vec<Arc<ResponseItem>>,
}

/// The output of a call nobody answered.
const ABORTED: &str = "aborted";

impl History {
    pub fn new(items: Vec<ResponseItem>) -> Self {
        let mut history = Self::default();
        items.into_iter().for_each(|item| history.push(item));
        history
    }

    pub fn items(&self) -> &[Arc<ResponseItem>] {
        &self.items
    }

    /// Whether this is something a request may repeat.
    pub(crate) fn keeps(item: &ResponseItem) -> bool {
        match item {
            ResponseItem::Message { role, .. } => role != "system",
            ResponseItem::Other => false,
            _ => true,
        }
    }

    pub(crate) fn push(&mut self, mut item: ResponseItem) {
        if Self::keeps(&item) {
            forget_id(&mut item);
            self.items.push(Arc::new(item));
        }
    }

    pub(crate) fn replace(&mut self, items: Vec<ResponseItem>) {
        *self = Self::new(items);
    }

    /// The items as a request sends them: every call has an output, every output a call, and nothing that only the
    /// record needs.
    pub(crate) fn prompt(&self) -> Vec<Arc<ResponseItem>> {
        let outputs: HashSet<&str> = self.items.iter().filter_map(|item| output_of(item)).collect();
        let mut called: HashSet<&str> = HashSet::new();
        let mut prompt = Vec::with_capacity(self.items.len());
        for item in &self.items {
            if matches!(**item, ResponseItem::GhostSnapshot { .. }) {
                continue;
            }
            if let Some(call_id) = output_of(item) {
                if called.contains(call_id) {
                    prompt.push(Arc::clone(item));
                }
                continue;
            }
            prompt.push(Arc::clone(item));
            if let Some(call_id) = call_of(item) {
                called.insert(call_id);
                if !outputs.contains(call_id) {
                    prompt.extend(missing_output(item, call_id).map(Arc::new));
                }
            }
        }
        prompt
    }
}

/// Providers do not want their own item ids back.
fn forget_id(item: &mut ResponseItem) {
    match item {
        ResponseItem::Message { id, .. }
        | ResponseItem::Reasoning { id, .. }
        | ResponseItem::LocalShellCall { id, .. }
        | ResponseItem::FunctionCall { id, .. }
        | ResponseItem::ToolSearchCall { id, .. }
        | ResponseItem::CustomToolCall { id, .. }
        | ResponseItem::WebSearchCall { id, .. } => *id = None,
        _ => {}
    }
}

fn call_of(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::FunctionCall { call_id, .. } | ResponseItem::CustomToolCall { call_id, .. } => {
            Some(call_id)
        }
        ResponseItem::LocalShellCall { call_id, .. } | ResponseItem::ToolSearchCall { call_id, .. } => {
            call_id.as_deref()
        }
        _ => None,
    }
}

fn output_of(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::FunctionCallOutput { call_id, .. }
        | ResponseItem::CustomToolCallOutput { call_id, .. } => Some(call_id),
        ResponseItem::ToolSearchOutput { call_id, .. } => call_id.as_deref(),
        _ => None,
    }
}

fn missing_output(call: &ResponseItem, call_id: &str) -> Option<ResponseItem> {
    let (call_id, output) = (call_id.to_owned(), FunctionCallOutputBody::Text(ABORTED.to_owned()));
    match call {
        ResponseItem::CustomToolCall { .. } => {
            Some(ResponseItem::CustomToolCallOutput { call_id, name: None, output })
        }
        ResponseItem::ToolSearchCall { execution, .. } => Some(ResponseItem::ToolSearchOutput {
            call_id: Some(call_id),
            status: "completed".to_owned(),
            execution: execution.clone(),
            tools: Vec::<Value>::new(),
        }),
        _ => Some(ResponseItem::FunctionCallOutput { call_id, output }),
    }
}

/// Whether a user-role message is context this program wrote rather than what a person said.
pub fn is_contextual(content: &[ContentItem]) -> bool {
    content.iter().any(|part| match part {
        ContentItem::InputText { text } => {
            let text = text.trim().to_ascii_lowercase();
            let marked = |(start, end): &(&str, &str)| {
                text.starts_with(&start.to_ascii_lowercase()) && text.ends_with(&end.to_ascii_lowercase())
            };
            MARKERS.iter().any(marked) || is_external(&text)
        }
        _ => false,
    })
}

/// `<external_KEY>…</external_KEY>`, with the same key at both ends.
fn is_external(text: &str) -> bool {
    let Some(key) = text.strip_prefix("<external_").and_then(|rest| rest.split_once('>')).map(|(key, _)| key)
    else {
        return false;
    };
    text.ends_with(&format!("</external_{key}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(call_id: &str) -> ResponseItem {
        serde_json::from_value(serde_json::json!({
            "type": "function_call", "id": "fc_1", "name": "f", "arguments": "{}", "call_id": call_id
        }))
        .expect("a call")
    }
    fn output(call_id: &str, text: &str) -> ResponseItem {
        ResponseItem::FunctionCallOutput {
            call_id: call_id.into(),
            output: FunctionCallOutputBody::Text(text.into()),
        }
    }

    #[test]
    fn calls_and_outputs_are_paired() {
        let history = History::new(vec![output("lost", "x"), call("a"), call("b"), output("b", "done")]);
        let prompt: Vec<ResponseItem> = history.prompt().iter().map(|item| (**item).clone()).collect();
        let plain = |call_id: &str| {
            let mut call = call(call_id);
            forget_id(&mut call);
            call
        };
        assert_eq!(prompt, vec![plain("a"), output("a", "aborted"), plain("b"), output("b", "done")]);
    }

    #[test]
    fn context_is_not_a_user_turn() {
        for (text, contextual) in [
            ("<environment_context>\n</environment_context>", true),
            ("  <TURN_ABORTED>x</TURN_ABORTED> ", true),
            ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nhi\n</INSTRUCTIONS>", true),
            ("<external_browser>x</external_browser>", true),
            ("<external_browser>x</external_other>", false),
            ("<environment_context> is a tag", false),
            ("hello", false),
        ] {
            assert_eq!(is_contextual(&[ContentItem::InputText { text: text.into() }]), contextual, "{text}");
        }
    }

    #[test]
    fn what_providers_do_not_want_back_is_not_kept() {
        let system = ResponseItem::Message {
            id: None,
            role: "system".into(),
            content: vec![],
            end_turn: None,
            phase: None,
        };
        assert_eq!(History::new(vec![system, ResponseItem::Other]), History::default());
    }
}
