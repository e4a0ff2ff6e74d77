//! What the model has seen so far.

use std::collections::HashSet;
use std::sync::Arc;

use protocol::{FunctionCallOutputBody, ResponseItem};
use serde_json::Value;

use crate::calls::{ToolCall, call_in};
use crate::context::looks_contextual;

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

    /// The calls that nobody has answered yet, in their order.
    pub(crate) fn open_calls(&self) -> Vec<ToolCall> {
        let outputs: HashSet<&str> = self.items.iter().filter_map(|item| output_of(item)).collect();
        let calls = self.items.iter().filter_map(|item| call_in(item));
        calls.filter(|call| !outputs.contains(call.call_id.as_str())).collect()
    }

    /// The calls since a person last spoke.
    pub(crate) fn calls_of_turn(&self) -> HashSet<String> {
        self.of_turn().iter().filter_map(|item| call_of(item)).map(str::to_owned).collect()
    }

    /// How many responses of the model there are since a person last spoke.
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

    /// The items as a request sends them: every call has an output, every output a call, and nothing that only the
    /// record needs.
    pub fn prompt(&self) -> Vec<Arc<ResponseItem>> {
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
            prompt.push(sendable(item));
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

/// What a model wrote, calls included.
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

/// Providers do not want their own item ids back. Those of user messages are ours.
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

/// What only the record needs to know of a message is not sent.
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

/// Whether a person said this. A message that only looks like context carries the id of the item it was shown as.
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
