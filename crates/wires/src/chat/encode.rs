//! Encodes a Responses request as the body of `POST /chat/completions`.

use std::sync::Arc;

use bytes::Bytes;
use model::protocol::{ReasoningEffort, ResponseItem};
use model::{OutputFormat, RequestBody};
use serde_json::{Map, Value, json};

use crate::blob::Blob;
use crate::capabilities::{CallIds, ReasoningReturn};
use crate::order::Transcript;
use crate::piece::{ContentPart, HistoryCall, HistoryPiece, developer_text, in_tags};
use crate::shared_bytes::SharedBytes;
use crate::tools::{Targets, functions};
use crate::{Capabilities, Wire, ids, json};

#[derive(Debug, Default)]
pub(crate) struct ChatEncoder {
    kept: Option<ChatHistory>,
}

#[derive(Debug)]
struct ChatHistory {
    system: String,
    style: ChatStyle,
    transcript: Transcript<ChatWriter>,
    /// Completed messages.
    written: SharedBytes,
}

impl ChatEncoder {
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.written.len())
    }

    /// The body, and the tools of its names. The error names what cannot be expressed.
    pub(crate) fn encode(
        &mut self,
        request: &RequestBody,
        able: &Capabilities,
    ) -> Result<(Vec<Bytes>, Targets), String> {
        let (functions, targets) = functions(&request.tools)?;
        let lead = request.input.iter().map_while(|item| developer_text(item));
        let lead = Vec::from_iter(lead);
        let history = &request.input[lead.len()..];
        let texts = std::iter::once(request.instructions.clone()).chain(lead);
        let system = Vec::from_iter(texts.filter(|text| !text.trim().is_empty())).join("\n\n");
        let style = ChatStyle::new(request, able);
        let kept = self.kept_for(system, style, history);
        kept.transcript.follow(history)?;
        let tail = kept.transcript.rest().finished();
        if let Some(problem) = kept.transcript.writer.problem.or(tail.problem) {
            return Err(problem.to_owned());
        }
        kept.written.add(kept.transcript.writer.hand_over());
        let mut body = Vec::with_capacity(4_096);
        body.push(b'{');
        options(&mut body, request, able, !functions.is_empty())?;
        if !functions.is_empty() {
            let tool = |function: &crate::tools::Function| {
                json!({ "type": "function", "function": {
                    "name": function.name, "description": function.description, "parameters": function.parameters } })
            };
            json::field(&mut body, "tools", &Vec::from_iter(functions.iter().map(tool)));
        }
        json::key(&mut body, "messages");
        body.push(b'[');
        if !kept.system.is_empty() {
            json::write(&mut body, &json!({ "role": "system", "content": kept.system }));
        }
        if !kept.written.is_empty() {
            json::comma(&mut body);
        }
        let mut end = tail.bytes;
        if !end.is_empty() && (!kept.written.is_empty() || !kept.system.is_empty()) {
            end.insert(0, b',');
        }
        end.extend_from_slice(b"]}");
        let parts = [Bytes::from(body)].into_iter().chain(kept.written.all()).chain([Bytes::from(end)]);
        Ok((parts.collect(), targets))
    }

    /// The bytes encoded before, if this request repeats them.
    fn kept_for(
        &mut self,
        system: String,
        style: ChatStyle,
        history: &[Arc<ResponseItem>],
    ) -> &mut ChatHistory {
        let fits = |kept: &ChatHistory| {
            kept.system == system && kept.style == style && kept.transcript.continues(history)
        };
        let kept = self.kept.take().filter(fits);
        self.kept.insert(kept.unwrap_or_else(|| {
            let writer = ChatWriter { style: style.clone(), ..ChatWriter::default() };
            ChatHistory {
                system,
                style,
                transcript: Transcript::new(writer),
                written: SharedBytes::default(),
            }
        }))
    }
}

fn options(
    body: &mut Vec<u8>,
    request: &RequestBody,
    able: &Capabilities,
    has_tools: bool,
) -> Result<(), String> {
    json::field(body, "model", &request.model);
    json::field(body, "stream", &true);
    if able.asks_for_usage {
        json::field(body, "stream_options", &json!({ "include_usage": true }));
    }
    if has_tools && able.parallel_calls {
        json::field(body, "parallel_tool_calls", &request.parallel_tool_calls);
    }
    if let Some(most) = able.max_output_tokens {
        json::field(body, able.max_tokens_field, &most);
    }
    let effort = request.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref());
    if let Some(effort) = effort.and_then(effort_name).filter(|_| able.reasoning_effort) {
        json::field(body, "reasoning_effort", effort);
    }
    match request.text.as_ref().and_then(|text| text.format.as_ref()) {
        None => Ok(()),
        Some(_) if !able.json_schema => Err("an answer held to a JSON schema".to_owned()),
        Some(OutputFormat::JsonSchema { strict, schema, name }) => {
            let format = json!({ "name": name, "strict": strict, "schema": schema });
            json::field(body, "response_format", &json!({ "type": "json_schema", "json_schema": format }));
            Ok(())
        }
    }
}

/// The three that every server of this wire supports.
fn effort_name(effort: &ReasoningEffort) -> Option<&'static str> {
    match effort {
        ReasoningEffort::None => None,
        ReasoningEffort::Minimal | ReasoningEffort::Low => Some("low"),
        ReasoningEffort::Medium => Some("medium"),
        _ => Some("high"),
    }
}

/// Everything that affects how a piece is encoded.
#[derive(Debug, Clone, PartialEq)]
struct ChatStyle {
    provider: String,
    model: String,
    call_ids: CallIds,
    reasoning: ReasoningReturn,
    later_system: bool,
    images: bool,
}

impl ChatStyle {
    fn new(request: &RequestBody, able: &Capabilities) -> Self {
        Self {
            provider: able.provider.clone(),
            model: request.model.clone(),
            call_ids: able.call_ids,
            reasoning: able.reasoning,
            later_system: able.later_system,
            images: able.images,
        }
    }
}

impl Default for ChatStyle {
    fn default() -> Self {
        Self {
            provider: String::new(),
            model: String::new(),
            call_ids: CallIds::Words,
            reasoning: ReasoningReturn::Never,
            later_system: false,
            images: true,
        }
    }
}

/// Completed messages as bytes, and the one that may still grow.
#[derive(Debug, Default)]
struct ChatWriter {
    bytes: Vec<u8>,
    /// Earlier messages were flushed already.
    goes_on: bool,
    open: Open,
    /// Of tool outputs; they follow when all outputs are there.
    images: Vec<ContentPart>,
    style: ChatStyle,
    problem: Option<&'static str>,
}

#[derive(Debug, Clone, Default)]
enum Open {
    #[default]
    Nothing,
    User(Vec<ContentPart>),
    Assistant(Assistant),
}

#[derive(Debug, Clone, Default)]
struct Assistant {
    text: String,
    calls: Vec<HistoryCall>,
    /// The message's reasoning to be sent back.
    returned: Map<String, Value>,
}

impl crate::order::MessageWriter for ChatWriter {
    fn write(&mut self, piece: HistoryPiece) {
        if !matches!(piece, HistoryPiece::Output { .. }) {
            self.flush_images();
        }
        match piece {
            HistoryPiece::User(parts) => self.user(parts),
            HistoryPiece::Developer(text) if self.style.later_system => {
                self.close();
                self.message(&json!({ "role": "system", "content": text }));
            }
            HistoryPiece::Developer(text) => self.user(vec![ContentPart::Text(in_tags(&text))]),
            HistoryPiece::Assistant(text) if text.trim().is_empty() => {}
            HistoryPiece::Assistant(text) => self.assistant(|assistant| {
                let said = &mut assistant.text;
                if !said.is_empty() {
                    said.push_str("\n\n");
                }
                said.push_str(&text);
            }),
            HistoryPiece::Reasoning(text) => self.reasoning(&text),
            HistoryPiece::Call(call) => self.assistant(|assistant| assistant.calls.push(call)),
            HistoryPiece::Output { call_id, parts, .. } => self.output(&call_id, parts),
        }
    }

    fn tail(&self) -> Self {
        let (open, images, style) = (self.open.clone(), self.images.clone(), self.style.clone());
        Self { open, images, style, problem: self.problem, ..Self::default() }
    }
}

impl ChatWriter {
    /// The messages completed since the last call.
    fn hand_over(&mut self) -> Vec<u8> {
        self.goes_on |= !self.bytes.is_empty();
        std::mem::take(&mut self.bytes)
    }

    fn user(&mut self, more: Vec<ContentPart>) {
        if let Open::User(parts) = &mut self.open {
            return parts.extend(more);
        }
        self.close();
        self.open = Open::User(more);
    }

    fn assistant(&mut self, add: impl FnOnce(&mut Assistant)) {
        if let Open::Assistant(assistant) = &mut self.open {
            return add(assistant);
        }
        self.close();
        let mut assistant = Assistant::default();
        add(&mut assistant);
        self.open = Open::Assistant(assistant);
    }

    /// Leaves out reasoning of another wire, provider or model.
    fn reasoning(&mut self, text: &str) {
        let Some(blob) = Blob::read(text, Wire::Chat) else { return };
        let is_own = blob.provider == self.style.provider && blob.model == self.style.model;
        let Value::Object(data) = blob.data else { return };
        if !is_own || data.is_empty() {
            return;
        }
        self.assistant(|assistant| {
            for (name, value) in data {
                match (assistant.returned.get_mut(&name), value) {
                    (Some(Value::String(known)), Value::String(more)) => known.push_str(&more),
                    (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                    (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                    (_, value) => drop(assistant.returned.insert(name, value)),
                }
            }
        });
    }

    fn output(&mut self, call_id: &str, parts: Vec<ContentPart>) {
        self.close();
        let mut texts = Vec::new();
        for part in parts {
            match part {
                ContentPart::Text(text) => texts.push(text),
                image @ ContentPart::Image(_) => {
                    texts.push("[The image follows.]".to_owned());
                    self.images.push(image);
                }
            }
        }
        let text = texts.join("\n");
        let text = if text.is_empty() { "(no output)" } else { &text };
        let id = ids::call_id(call_id, self.style.call_ids).into_owned();
        self.message(&json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }

    fn flush_images(&mut self) {
        if !self.images.is_empty() {
            let images = std::mem::take(&mut self.images);
            self.user(images);
        }
    }

    /// The messages of a request that ends here.
    fn finished(mut self) -> Self {
        self.flush_images();
        // A server would continue an assistant message at the end.
        if matches!(&self.open, Open::Assistant(assistant) if assistant.calls.is_empty()) {
            self.user(vec![ContentPart::Text("Continue.".to_owned())]);
        }
        self.close();
        self
    }

    fn close(&mut self) {
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::User(parts) => self.close_user(&parts),
            Open::Assistant(assistant) => self.close_assistant(assistant),
        }
    }

    fn close_user(&mut self, parts: &[ContentPart]) {
        let texts = parts.iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text.as_str()),
            ContentPart::Image(_) => None,
        });
        let texts = Vec::from_iter(texts);
        // Not every server takes text as an array.
        if texts.len() == parts.len() {
            return self.message(&json!({ "role": "user", "content": texts.join("\n\n") }));
        }
        if !self.style.images {
            self.problem = Some("an image");
        }
        let content = parts.iter().map(|part| match part {
            ContentPart::Text(text) => json!({ "type": "text", "text": text }),
            ContentPart::Image(url) => json!({ "type": "image_url", "image_url": { "url": url } }),
        });
        let content = Vec::from_iter(content);
        self.message(&json!({ "role": "user", "content": content }));
    }

    fn close_assistant(&mut self, assistant: Assistant) {
        let Assistant { text, calls, mut returned } = assistant;
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        let content = if text.is_empty() { Value::Null } else { json!(text) };
        message.insert("content".to_owned(), content);
        let mut extras = Map::new();
        match self.style.reasoning {
            ReasoningReturn::Never => {}
            ReasoningReturn::ReasoningContent if !calls.is_empty() => {
                let reasoning = returned.remove(REASONING_CONTENT).unwrap_or_else(|| json!(""));
                message.insert(REASONING_CONTENT.to_owned(), reasoning);
            }
            ReasoningReturn::ReasoningContent => {}
            ReasoningReturn::ReasoningDetails => {
                if let Some(details) = returned.remove(REASONING_DETAILS) {
                    message.insert(REASONING_DETAILS.to_owned(), details);
                }
            }
            ReasoningReturn::ExtraContent => {
                if let Some(Value::Object(found)) = returned.remove(EXTRA_CONTENT) {
                    extras = found;
                }
            }
            ReasoningReturn::ThinkingChunks => {
                if let Some(Value::Array(mut chunks)) = returned.remove(THINKING) {
                    if !text.is_empty() {
                        chunks.push(json!({ "type": "text", "text": text }));
                    }
                    message.insert("content".to_owned(), Value::Array(chunks));
                }
            }
        }
        if !calls.is_empty() {
            if self.style.reasoning == ReasoningReturn::ExtraContent && extras.is_empty() {
                // Calls of another model have no signature, and newer Gemini models refuse calls without one.
                extras
                    .insert(calls[0].id.clone(), json!({ "google": { "thought_signature": NO_SIGNATURE } }));
            }
            let calls = calls.into_iter().map(|call| self.call(call, &mut extras));
            let calls = Value::Array(calls.collect());
            message.insert("tool_calls".to_owned(), calls);
        }
        self.message(&Value::Object(message));
    }

    fn call(&self, call: HistoryCall, extras: &mut Map<String, Value>) -> Value {
        let arguments = if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments };
        let mut value = json!({
            "id": ids::call_id(&call.id, self.style.call_ids),
            "type": "function",
            "function": { "name": call.name, "arguments": arguments },
        });
        if let Some(extra) = extras.remove(&call.id) {
            value[EXTRA_CONTENT] = extra;
        }
        value
    }

    fn message(&mut self, message: &Value) {
        if self.goes_on || !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        json::write(&mut self.bytes, message);
    }
}

/// Google's documented placeholder for a missing signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) const REASONING_CONTENT: &str = "reasoning_content";
pub(super) const REASONING_DETAILS: &str = "reasoning_details";
pub(super) const EXTRA_CONTENT: &str = "extra_content";
pub(super) const THINKING: &str = "thinking";
