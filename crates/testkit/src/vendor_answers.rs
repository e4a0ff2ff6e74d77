//! Responses events written as the streams of the vendors' wires.

use std::sync::atomic::{AtomicU64, Ordering};

use model_http::Wire;
use serde_json::{Value, json};

/// The text of the whole stream.
pub(crate) fn written(
    wire: Wire,
    vendor: &str,
    request: &Value,
    events: impl Iterator<Item = Value>,
) -> String {
    match wire {
        Wire::Responses => events.map(|event| format!("data: {event}\n\n")).collect(),
        Wire::Chat => ChatStream { signs: vendor == "gemini", ..ChatStream::default() }.write(events),
        Wire::Messages => MessagesStream::new(request).write(events),
    }
}

/// The text of a message that came without deltas.
fn text_of(item: &Value) -> &str {
    item["content"][0]["text"].as_str().unwrap_or_default()
}

/// The name and the arguments of a call, as JSON text.
fn call_of(item: &Value) -> Option<(&Value, String)> {
    match item["type"].as_str()? {
        "function_call" => Some((&item["name"], item["arguments"].as_str().unwrap_or("{}").to_owned())),
        "custom_tool_call" => Some((&item["name"], json!({"input": item["input"]}).to_string())),
        _ => None,
    }
}

fn thought_of(item: &Value) -> Option<&str> {
    if item["type"] != "reasoning" {
        return None;
    }
    item["summary"][0]["text"].as_str().or_else(|| item["content"][0]["text"].as_str())
}

#[derive(Default)]
struct ChatStream {
    text: String,
    calls: usize,
    has_deltas: bool,
    /// The first of parallel calls carries a signature.
    signs: bool,
}

impl ChatStream {
    fn write(mut self, events: impl Iterator<Item = Value>) -> String {
        self.chunk(&json!({"role": "assistant", "content": null}), None);
        events.for_each(|event| self.event(&event));
        self.text
    }

    fn event(&mut self, event: &Value) {
        let item = &event["item"];
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => {
                self.has_deltas = true;
                self.chunk(&json!({"content": event["delta"]}), None);
            }
            "response.output_item.done" => {
                if let Some((name, arguments)) = call_of(item) {
                    self.call(&item["call_id"], name, &arguments);
                } else if let Some(thought) = thought_of(item) {
                    self.chunk(&json!({"reasoning_content": thought}), None);
                } else if item["type"] == "message" && !std::mem::take(&mut self.has_deltas) {
                    self.chunk(&json!({"content": text_of(item)}), None);
                }
            }
            "response.completed" => {
                let reason = if self.calls > 0 { "tool_calls" } else { "stop" };
                self.chunk(&json!({}), Some(reason));
                let usage = &event["response"]["usage"];
                if usage.is_object() {
                    let usage = json!({"prompt_tokens": usage["input_tokens"],
                        "completion_tokens": usage["output_tokens"], "total_tokens": usage["total_tokens"]});
                    self.data(&json!({"id": "chatcmpl-1", "choices": [], "usage": usage}).to_string());
                }
                self.data("[DONE]");
            }
            "response.failed" => {
                let error = &event["response"]["error"];
                self.data(&json!({"error": error}).to_string());
            }
            _ => {}
        }
    }

    /// In pieces, as servers stream them.
    fn call(&mut self, id: &Value, name: &Value, arguments: &str) {
        let index = self.calls;
        self.calls += 1;
        let mut begin = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        if self.signs && index == 0 {
            begin["extra_content"] = json!({"google": {"thought_signature": "sig-of-gemini"}});
        }
        self.chunk(&json!({"tool_calls": [begin]}), None);
        let half = (0..=arguments.len() / 2).rev().find(|at| arguments.is_char_boundary(*at)).unwrap_or(0);
        for piece in [&arguments[..half], &arguments[half..]] {
            let more = json!({"index": index, "function": {"arguments": piece}});
            self.chunk(&json!({"tool_calls": [more]}), None);
        }
    }

    fn chunk(&mut self, delta: &Value, finish: Option<&str>) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.data(
            &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}).to_string(),
        );
    }

    fn data(&mut self, data: &str) {
        self.text.push_str(&format!("data: {data}\n\n"));
    }
}

struct MessagesStream {
    text: String,
    blocks: usize,
    has_calls: bool,
    has_deltas: bool,
    /// Different for each place in a thread.
    signature: String,
}

impl MessagesStream {
    fn new(request: &Value) -> Self {
        let messages = request["messages"].as_array().map_or(0, Vec::len);
        Self {
            text: String::new(),
            blocks: 0,
            has_calls: false,
            has_deltas: false,
            signature: format!("sig-{messages}"),
        }
    }

    fn write(mut self, events: impl Iterator<Item = Value>) -> String {
        // As at the vendor, no two answers have the same.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = format!("msg_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let message = json!({"id": id, "type": "message", "role": "assistant", "content": []});
        self.data("message_start", json!({"message": message}));
        self.data("ping", json!({}));
        events.for_each(|event| self.event(&event));
        self.text
    }

    fn event(&mut self, event: &Value) {
        let item = &event["item"];
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => {
                if !std::mem::replace(&mut self.has_deltas, true) {
                    self.begin(&json!({"type": "text", "text": ""}));
                }
                self.delta(&json!({"type": "text_delta", "text": event["delta"]}));
            }
            "response.output_item.done" => self.item(item),
            "response.completed" => {
                let reason = if self.has_calls { "tool_use" } else { "end_turn" };
                let mut fields = json!({"delta": {"stop_reason": reason, "stop_sequence": null}});
                let usage = &event["response"]["usage"];
                if usage.is_object() {
                    fields["usage"] = json!({"input_tokens": usage["input_tokens"], "output_tokens": usage["output_tokens"]});
                }
                self.data("message_delta", fields);
                self.data("message_stop", json!({}));
            }
            // An event of this kit only: the model pauses its answer.
            "response.paused" => {
                self.data("message_delta", json!({"delta": {"stop_reason": "pause_turn"}}));
                self.data("message_stop", json!({}));
            }
            "response.failed" => {
                let message = &event["response"]["error"]["message"];
                self.data("error", json!({"error": {"type": "api_error", "message": message}}));
            }
            _ => {}
        }
    }

    fn item(&mut self, item: &Value) {
        if let Some((name, arguments)) = call_of(item) {
            self.has_calls = true;
            self.begin(&json!({"type": "tool_use", "id": item["call_id"], "name": name, "input": {}}));
            self.delta(&json!({"type": "input_json_delta", "partial_json": ""}));
            self.delta(&json!({"type": "input_json_delta", "partial_json": arguments}));
            self.end();
        } else if let Some(thought) = thought_of(item) {
            self.begin(&json!({"type": "thinking", "thinking": "", "signature": ""}));
            self.delta(&json!({"type": "thinking_delta", "thinking": thought}));
            self.delta(&json!({"type": "signature_delta", "signature": self.signature}));
            self.end();
        } else if item["type"] == "message" {
            if !std::mem::take(&mut self.has_deltas) {
                self.begin(&json!({"type": "text", "text": ""}));
                self.delta(&json!({"type": "text_delta", "text": text_of(item)}));
            }
            self.end();
        }
    }

    fn begin(&mut self, block: &Value) {
        self.data("content_block_start", json!({"index": self.blocks, "content_block": block}));
    }

    fn delta(&mut self, delta: &Value) {
        self.data("content_block_delta", json!({"index": self.blocks, "delta": delta}));
    }

    fn end(&mut self) {
        self.data("content_block_stop", json!({"index": self.blocks}));
        self.blocks += 1;
    }

    fn data(&mut self, kind: &str, mut fields: Value) {
        fields["type"] = json!(kind);
        self.text.push_str(&format!("event: {kind}\ndata: {fields}\n\n"));
    }
}
