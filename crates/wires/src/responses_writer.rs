//! Encodes stream events as a Responses stream, for programs that use this format only.

use model::protocol::{ResponseItem, TokenUsageBreakdown};
use model::{FailureClass, ModelFailure, StreamEvent};
use serde_json::{Value, json};

/// Writes the events of one response, in the order and shape of the Responses API.
#[derive(Debug)]
pub struct ResponsesWriter {
    model: String,
    id: String,
    /// Completed items.
    output: Vec<Value>,
    /// The current item, and whether its text has started.
    open: Option<OpenItem>,
    sequence: usize,
}

#[derive(Debug)]
struct OpenItem {
    id: String,
    has_text: bool,
}

impl ResponsesWriter {
    /// `id` is used until the response's own id is known, which some wires send at the end.
    pub fn new(model: &str, id: &str) -> Self {
        Self { model: model.to_owned(), id: id.to_owned(), output: Vec::new(), open: None, sequence: 0 }
    }

    /// The data of the events for one event.
    pub fn push(&mut self, event: &StreamEvent, out: &mut Vec<Value>) {
        match event {
            StreamEvent::Opened(_) => {
                let response = self.response("in_progress", None);
                self.emit("response.created", json!({ "response": response }), out);
            }
            StreamEvent::ItemAdded(item) => self.begin(item, out),
            StreamEvent::TextDelta { delta } => {
                self.begin_text(out);
                let place = self.place(json!({ "content_index": 0, "delta": delta }));
                self.emit("response.output_text.delta", place, out);
            }
            StreamEvent::ReasoningSummaryPartAdded { summary_index } => {
                let part = json!({ "type": "summary_text", "text": "" });
                let place = self.place(json!({ "summary_index": summary_index, "part": part }));
                self.emit("response.reasoning_summary_part.added", place, out);
            }
            StreamEvent::ReasoningSummaryDelta { summary_index, delta } => {
                let place = self.place(json!({ "summary_index": summary_index, "delta": delta }));
                self.emit("response.reasoning_summary_text.delta", place, out);
            }
            StreamEvent::ReasoningTextDelta { content_index, delta } => {
                let place = self.place(json!({ "content_index": content_index, "delta": delta }));
                self.emit("response.reasoning_text.delta", place, out);
            }
            StreamEvent::ItemDone(item) => self.end(item, out),
            StreamEvent::RateLimits(_) | StreamEvent::ServedBy(_) | StreamEvent::ImageSaved { .. } => {}
            StreamEvent::Completed { response_id, usage } => {
                if !response_id.is_empty() {
                    self.id.clone_from(response_id);
                }
                let response = self.response("completed", usage.as_ref());
                self.emit("response.completed", json!({ "response": response }), out);
            }
            StreamEvent::Failed(failure) => self.fail(failure, out),
        }
    }

    /// Ends a response that failed.
    pub fn fail(&mut self, failure: &ModelFailure, out: &mut Vec<Value>) {
        let mut response = self.response("failed", failure.spent.as_ref());
        response["error"] = json!({ "code": error_code(failure), "message": failure.message });
        self.emit("response.failed", json!({ "response": response }), out);
    }

    fn begin(&mut self, item: &ResponseItem, out: &mut Vec<Value>) {
        let shown = self.shown(item, "in_progress");
        let id = shown["id"].as_str().unwrap_or_default().to_owned();
        self.open = Some(OpenItem { id, has_text: false });
        let place = json!({ "output_index": self.output.len(), "item": shown });
        self.emit("response.output_item.added", place, out);
    }

    fn begin_text(&mut self, out: &mut Vec<Value>) {
        if self.open.as_mut().is_some_and(|open| !std::mem::replace(&mut open.has_text, true)) {
            let part = json!({ "type": "output_text", "text": "", "annotations": [] });
            let place = self.place(json!({ "content_index": 0, "part": part }));
            self.emit("response.content_part.added", place, out);
        }
    }

    fn end(&mut self, item: &ResponseItem, out: &mut Vec<Value>) {
        if self.open.is_none() {
            self.begin(item, out);
            self.write_call(item, out);
        }
        let shown = self.shown(item, "completed");
        if self.open.as_ref().is_some_and(|open| open.has_text) {
            let text = shown["content"][0]["text"].clone();
            let place = self.place(json!({ "content_index": 0, "text": text }));
            self.emit("response.output_text.done", place, out);
            let part = json!({ "type": "output_text", "text": text, "annotations": [] });
            let place = self.place(json!({ "content_index": 0, "part": part }));
            self.emit("response.content_part.done", place, out);
        }
        let place = json!({ "output_index": self.output.len(), "item": shown });
        self.emit("response.output_item.done", place, out);
        self.output.push(shown);
        self.open = None;
    }

    /// Calls are complete; clients that assemble them get one piece.
    fn write_call(&mut self, item: &ResponseItem, out: &mut Vec<Value>) {
        let (kind, field, text) = match item {
            ResponseItem::FunctionCall { arguments, .. } => {
                ("function_call_arguments", "arguments", arguments)
            }
            ResponseItem::CustomToolCall { input, .. } => ("custom_tool_call_input", "input", input),
            _ => return,
        };
        let place = self.place(json!({ "delta": text }));
        self.emit(&format!("response.{kind}.delta"), place, out);
        let place = self.place(json!({ field: text }));
        self.emit(&format!("response.{kind}.done"), place, out);
    }

    /// The item with id and status, which clients of the API expect.
    fn shown(&self, item: &ResponseItem, status: &str) -> Value {
        let mut shown = serde_json::to_value(item).unwrap_or_default();
        if let Some(fields) = shown.as_object_mut() {
            let made = || format!("item_{}_{}", self.id, self.output.len());
            let open = || self.open.as_ref().map(|open| open.id.clone());
            if !fields.get("id").is_some_and(Value::is_string) {
                fields.insert("id".to_owned(), json!(open().unwrap_or_else(made)));
            }
            // Unchanged: a call of this kind has a status only if the provider gave it one.
            if !matches!(item, ResponseItem::CustomToolCall { status: None, .. }) {
                fields.insert("status".to_owned(), json!(status));
            }
        }
        shown
    }

    fn place(&self, mut more: Value) -> Value {
        more["item_id"] = json!(self.open.as_ref().map_or("", |open| open.id.as_str()));
        more["output_index"] = json!(self.output.len());
        more
    }

    fn emit(&mut self, kind: &str, mut fields: Value, out: &mut Vec<Value>) {
        fields["type"] = json!(kind);
        fields["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        out.push(fields);
    }

    fn response(&self, status: &str, usage: Option<&TokenUsageBreakdown>) -> Value {
        let usage = usage.map(|usage| {
            json!({
                "input_tokens": usage.input_tokens,
                "input_tokens_details": { "cached_tokens": usage.cached_input_tokens },
                "output_tokens": usage.output_tokens,
                "output_tokens_details": { "reasoning_tokens": usage.reasoning_output_tokens },
                "total_tokens": usage.total_tokens,
            })
        });
        json!({
            "id": self.id, "object": "response", "status": status, "model": self.model,
            "output": self.output, "usage": usage,
        })
    }
}

/// The failure's code in the Responses API.
pub fn error_code(failure: &ModelFailure) -> &'static str {
    match failure.class {
        FailureClass::ContextWindow => "context_length_exceeded",
        FailureClass::Quota | FailureClass::UsageLimit | FailureClass::PlanLacksUsage => "insufficient_quota",
        FailureClass::Overloaded => "server_is_overloaded",
        FailureClass::TooManyAttempts => "rate_limit_exceeded",
        FailureClass::InvalidRequest | FailureClass::InvalidImage => "invalid_prompt",
        FailureClass::Unauthorized | FailureClass::NotConfigured => "invalid_api_key",
        FailureClass::InternalServerError
        | FailureClass::UnexpectedStatus
        | FailureClass::Connection
        | FailureClass::Stream
        | FailureClass::Paused
        | FailureClass::CarrierGone => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ResponseHead;

    fn item(value: Value) -> Box<ResponseItem> {
        Box::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn what_is_written_is_read_as_the_same_events() {
        let message = |text: &str| {
            let content =
                if text.is_empty() { json!([]) } else { json!([{"type": "output_text", "text": text}]) };
            item(json!({"type": "message", "id": "m1", "role": "assistant", "content": content}))
        };
        let call = item(
            json!({"type": "function_call", "id": "f1", "name": "read", "arguments": "{}", "call_id": "c1"}),
        );
        let thought = item(
            json!({"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "ox1.chat.e30="}),
        );
        let events = [
            StreamEvent::ItemDone(thought),
            StreamEvent::ItemAdded(message("")),
            StreamEvent::TextDelta { delta: "hel".into() },
            StreamEvent::TextDelta { delta: "lo".into() },
            StreamEvent::ItemDone(message("hello")),
            StreamEvent::ItemDone(call),
            StreamEvent::Completed { response_id: "resp".into(), usage: None },
        ];
        let mut writer = ResponsesWriter::new("m", "early");
        let mut written = Vec::new();
        writer.push(&StreamEvent::Opened(ResponseHead::default()), &mut written);
        assert_eq!(written.pop().unwrap()["type"], "response.created");
        events.iter().for_each(|event| writer.push(event, &mut written));
        let read = written.iter().filter_map(|event| model::parse_event(&event.to_string()).unwrap());
        // An item that came whole is announced first; that event is not part of it.
        let is_added = |event: &StreamEvent| matches!(event, StreamEvent::ItemAdded(item) if !matches!(**item, ResponseItem::Message { .. }));
        let read = Vec::from_iter(read.filter(|event| !is_added(event)));
        assert_eq!(read, events);
        let last = written.last().unwrap();
        assert_eq!(last["response"]["output"].as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn a_failure_has_the_code_that_clients_know() {
        let mut out = Vec::new();
        let failure = ModelFailure::new(FailureClass::ContextWindow, "too long");
        ResponsesWriter::new("m", "r").push(&StreamEvent::Failed(failure), &mut out);
        let error = &out[0]["response"]["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!("context_length_exceeded"), &json!("too long"))
        );
    }
}
