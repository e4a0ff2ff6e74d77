//! The items that the model has seen so far.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use protocol::{ContentItem, FunctionCallOutputBody, ResponseItem};
use serde_json::Value;

use crate::calls::{ToolCall, call_in};
use crate::context::looks_contextual;

/// The items of a thread in order, shared with the requests made from them.
///
/// Encoders cache the bytes of an item by its address, so an item is the same allocation in every request.
#[derive(Debug, Clone, Default)]
pub struct History {
    items: Vec<Arc<ResponseItem>>,
    /// Each item in the form that requests send, at the same index.
    sendable: Vec<Arc<ResponseItem>>,
    /// Placeholder outputs of unanswered calls, by the index of the call.
    missing: HashMap<usize, Arc<ResponseItem>>,
}

/// The other fields are derived from the items.
impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

/// The placeholder output of an unanswered call.
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

    /// The model's last message since the last user message.
    pub(crate) fn last_assistant_text(&self) -> Option<String> {
        self.of_turn().iter().rev().find_map(|item| match &**item {
            ResponseItem::Message { role, content, .. } if role == "assistant" => {
                let texts = content.iter().filter_map(|part| match part {
                    ContentItem::OutputText { text, .. } => Some(text.as_str()),
                    _ => None,
                });
                Some(texts.collect())
            }
            _ => None,
        })
    }

    /// Whether requests may contain this item.
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
            let item = Arc::new(item);
            self.sendable.push(sendable(&item));
            self.items.push(item);
        }
    }

    pub(crate) fn replace(&mut self, items: Vec<ResponseItem>) {
        *self = Self::new(items);
    }

    /// Unanswered calls, in order.
    pub(crate) fn open_calls(&self) -> Vec<ToolCall> {
        let outputs: HashSet<&str> = self.items.iter().filter_map(|item| output_of(item)).collect();
        let calls = self.items.iter().filter_map(|item| call_in(item));
        calls.filter(|call| !outputs.contains(call.call_id.as_str())).collect()
    }

    /// Ids of the calls since the last user message.
    pub(crate) fn calls_of_turn(&self) -> HashSet<String> {
        self.of_turn().iter().filter_map(|item| call_of(item)).map(str::to_owned).collect()
    }

    /// The number of model responses since the last user message.
    pub(crate) fn segments(&self) -> u32 {
        let mut count = 0;
        let mut within = false;
        for item in self.of_turn() {
            let generated = is_generated(item);
            count += u32::from(generated && !within);
            within = generated;
        }
        count
    }

    fn of_turn(&self) -> &[Arc<ResponseItem>] {
        let from = self.items.iter().rposition(|item| is_user_turn(item)).map_or(0, |at| at + 1);
        &self.items[from..]
    }

    /// The items as a request sends them: every call has an output, every output a call, and fields that only the
    /// record needs are removed.
    pub fn prompt(&mut self) -> Vec<Arc<ResponseItem>> {
        let outputs: HashSet<&str> = self.items.iter().filter_map(|item| output_of(item)).collect();
        let mut called: HashSet<&str> = HashSet::new();
        let mut prompt = Vec::with_capacity(self.items.len());
        for (index, (item, sendable)) in self.items.iter().zip(&self.sendable).enumerate() {
            if matches!(**item, ResponseItem::GhostSnapshot { .. }) {
                continue;
            }
            if output_of(item).is_some_and(|call_id| !called.contains(call_id)) {
                continue;
            }
            prompt.push(Arc::clone(sendable));
            if let Some(call_id) = call_of(item) {
                called.insert(call_id);
                if !outputs.contains(call_id) {
                    let missing = self.missing.entry(index);
                    prompt
                        .push(Arc::clone(missing.or_insert_with(|| Arc::new(missing_output(item, call_id)))));
                }
            }
        }
        prompt
    }
}

/// Items that a model writes, calls included.
pub(crate) fn is_generated(item: &ResponseItem) -> bool {
    match item {
        ResponseItem::Message { role, .. } => role == "assistant",
        ResponseItem::Reasoning { .. }
        | ResponseItem::LocalShellCall { .. }
        | ResponseItem::FunctionCall { .. }
        | ResponseItem::CustomToolCall { .. }
        | ResponseItem::ToolSearchCall { .. }
        | ResponseItem::WebSearchCall { .. } => true,
        _ => false,
    }
}

/// Removes the provider's item ids, which providers do not accept back. Ids of user messages are our own.
fn forget_id(item: &mut ResponseItem) {
    match item {
        ResponseItem::Message { id, role, .. } if role != "user" => *id = None,
        ResponseItem::Reasoning { id, .. }
        | ResponseItem::LocalShellCall { id, .. }
        | ResponseItem::FunctionCall { id, .. }
        | ResponseItem::ToolSearchCall { id, .. }
        | ResponseItem::CustomToolCall { id, .. }
        | ResponseItem::WebSearchCall { id, .. } => *id = None,
        _ => {}
    }
}

/// Removes the id of a message, which only the record needs.
fn sendable(item: &Arc<ResponseItem>) -> Arc<ResponseItem> {
    match &**item {
        ResponseItem::Message { id: Some(_), role, content, end_turn, phase } => {
            let (role, content, end_turn, phase) = (role.clone(), content.clone(), *end_turn, *phase);
            Arc::new(ResponseItem::Message { id: None, role, content, end_turn, phase })
        }
        _ => Arc::clone(item),
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

fn missing_output(call: &ResponseItem, call_id: &str) -> ResponseItem {
    let (call_id, output) = (call_id.to_owned(), FunctionCallOutputBody::Text(ABORTED.to_owned()));
    match call {
        ResponseItem::CustomToolCall { .. } => {
            ResponseItem::CustomToolCallOutput { call_id, name: None, output }
        }
        ResponseItem::ToolSearchCall { execution, .. } => ResponseItem::ToolSearchOutput {
            call_id: Some(call_id),
            status: "completed".to_owned(),
            execution: execution.clone(),
            tools: Vec::<Value>::new(),
        },
        _ => ResponseItem::FunctionCallOutput { call_id, output },
    }
}

/// Whether a person wrote this message. One that only looks like context carries its item's id.
pub fn is_user_turn(item: &ResponseItem) -> bool {
    match item {
        ResponseItem::Message { id, role, content, .. } => {
            role == "user" && (id.is_some() || !looks_contextual(content))
        }
        _ => false,
    }
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
        let mut history = History::new(vec![output("lost", "x"), call("a"), call("b"), output("b", "done")]);
        let prompt: Vec<ResponseItem> = history.prompt().iter().map(|item| (**item).clone()).collect();
        let plain = |call_id: &str| {
            let mut call = call(call_id);
            forget_id(&mut call);
            call
        };
        assert_eq!(prompt, vec![plain("a"), output("a", "aborted"), plain("b"), output("b", "done")]);
    }

    #[test]
    fn every_request_shares_the_items_of_the_one_before() {
        let said = ResponseItem::Message {
            id: Some("item-1".into()),
            role: "user".into(),
            content: vec![ContentItem::InputText { text: "go".into() }],
            end_turn: None,
            phase: None,
        };
        // A message with an id, and a call with a placeholder output, are the items that a request changes.
        let mut history = History::new(vec![said, call("a"), call("b"), output("b", "done")]);
        let first = history.prompt();
        history.push(output("c", "lost"));
        history.push(call("d"));
        let second = history.prompt();
        assert_eq!((first.len(), second.len()), (5, 7));
        assert!(first.iter().zip(&second).all(|(first, second)| Arc::ptr_eq(first, second)));
    }

    #[test]
    fn items_that_providers_reject_are_not_kept() {
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
