//! The events of a Messages stream as Responses events.

use std::borrow::Cow;
use std::sync::Arc;

use model::protocol::{ContentItem, ReasoningItemReasoningSummary, ResponseItem, TokenUsageBreakdown};
use model::{FailureClass, ModelFailure, RequestBody, StreamEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::family::max_tokens;
use crate::blob::Blob;
use crate::decoder::{MAX_CALLS, MAX_RESPONSE_BYTES, taken_ids, unique_id};
use crate::digest::PrefixDigest;
use crate::tools::{Targets, call_item, structured_answer};
use crate::usage::estimated;
use crate::{Capabilities, Wire, failure};

/// Reads one response.
#[derive(Debug, Clone)]
pub(crate) struct MessagesDecoder {
    provider: String,
    request: Arc<RequestBody>,
    /// The most the answer may have, in tokens.
    max_tokens: u32,
    targets: Targets,
    /// Of the request: thinking is bound to it.
    after: PrefixDigest,
    response_id: String,
    /// Items begun so far; part of their ids.
    items: usize,
    block: ContentBlock,
    given_calls: Vec<String>,
    /// Calls whose input is no JSON: cut off, or written badly. The stop reason decides.
    held: Vec<StreamEvent>,
    usage: MessagesUsage,
    stop_reason: Option<String>,
    stop_details: Value,
    bytes: usize,
    /// Bytes of text, thinking and arguments, for a server that does not count tokens.
    written: usize,
    is_over: bool,
}

/// The content block under way. They come one after the other.
#[derive(Debug, Clone, Default)]
enum ContentBlock {
    #[default]
    None,
    Text {
        /// Empty until the first text: a block without any is no message.
        id: String,
        text: String,
    },
    Thinking {
        id: String,
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        /// Given whole at the start by some servers.
        input: Value,
        json: String,
    },
}

/// A piece of text and nothing else. What does not fit is read field by field.
#[derive(Deserialize)]
struct PlainText<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    delta: PlainTextDelta<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainTextDelta<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// The last counts that came: each is of the whole response.
#[derive(Debug, Clone, Copy, Default)]
struct MessagesUsage {
    input: Option<i64>,
    cache_read: i64,
    cache_written: i64,
    output: i64,
}

impl MessagesDecoder {
    pub(crate) fn new(
        able: &Capabilities,
        request: Arc<RequestBody>,
        targets: Targets,
        after: PrefixDigest,
    ) -> Self {
        Self {
            provider: able.provider.clone(),
            max_tokens: max_tokens(&request.model, able),
            request,
            targets,
            after,
            response_id: String::new(),
            items: 0,
            block: ContentBlock::None,
            given_calls: Vec::new(),
            held: Vec::new(),
            usage: MessagesUsage::default(),
            stop_reason: None,
            stop_details: Value::Null,
            bytes: 0,
            written: 0,
            is_over: false,
        }
    }

    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<StreamEvent>) {
        if self.is_over {
            return;
        }
        self.bytes += data.len();
        if self.bytes > MAX_RESPONSE_BYTES {
            let problem = format!("the response is larger than {MAX_RESPONSE_BYTES} bytes");
            return self.fail(ModelFailure::stream(problem), out);
        }
        // Nearly every event: read without building a tree.
        if let Ok(PlainText { kind: "content_block_delta", delta }) = serde_json::from_str(data)
            && delta.kind == "text_delta"
        {
            return self.on_text(&delta.text, out);
        }
        // Keep-alives of many kinds.
        let Ok(event) = serde_json::from_str::<Value>(data) else { return };
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.response_id = event["message"]["id"].as_str().unwrap_or_default().to_owned();
                self.usage.learn(&event["message"]["usage"]);
            }
            "content_block_start" => {
                self.stop_block(out);
                self.start_block(&event["content_block"], out);
            }
            "content_block_delta" => self.on_delta(&event["delta"], out),
            "content_block_stop" => self.stop_block(out),
            "message_delta" => {
                self.usage.learn(&event["usage"]);
                let delta = &event["delta"];
                if let Some(reason) = delta["stop_reason"].as_str() {
                    self.stop_reason = Some(reason.to_owned());
                }
                if !delta["stop_details"].is_null() {
                    self.stop_details = delta["stop_details"].clone();
                }
            }
            "message_stop" => {
                self.stop_block(out);
                self.finish(out);
            }
            _ => {
                if let Some(failure) = failure::in_stream(&event) {
                    self.fail(failure, out);
                }
            }
        }
    }

    /// The stream ended without its last event.
    pub(crate) fn close(&mut self, failure: Option<ModelFailure>, out: &mut Vec<StreamEvent>) {
        self.fail(failure.unwrap_or_else(|| ModelFailure::stream("stream closed before message_stop")), out);
    }

    fn fail(&mut self, failure: ModelFailure, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.is_over, true) {
            out.push(StreamEvent::Failed(failure));
        }
    }

    fn start_block(&mut self, block: &Value, out: &mut Vec<StreamEvent>) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str().unwrap_or_default() {
            "text" => {
                self.block = ContentBlock::Text { id: String::new(), text: String::new() };
                self.on_text(&text("text"), out);
            }
            "thinking" => {
                let id = self.item_id("rs");
                let item = reasoning(&id, "", None);
                out.push(StreamEvent::ItemAdded(Box::new(item)));
                out.push(StreamEvent::ReasoningSummaryPartAdded { summary_index: 0 });
                self.block = ContentBlock::Thinking { id, text: String::new(), signature: text("signature") };
                self.on_thinking(&text("thinking"), out);
            }
            "redacted_thinking" => {
                let blob = self.blob(block.clone());
                let id = self.item_id("rs");
                out.push(StreamEvent::ItemDone(Box::new(reasoning(&id, "", Some(blob)))));
            }
            "tool_use" => {
                self.block = ContentBlock::Call {
                    id: text("id"),
                    name: text("name"),
                    input: block["input"].clone(),
                    json: String::new(),
                };
            }
            // Tools the provider runs, and what is newer than this release.
            _ => {}
        }
    }

    fn on_delta(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) {
        let text = |name: &str| delta[name].as_str().unwrap_or_default();
        match delta["type"].as_str().unwrap_or_default() {
            "text_delta" => self.on_text(text("text"), out),
            "thinking_delta" => self.on_thinking(text("thinking"), out),
            "signature_delta" => {
                if let ContentBlock::Thinking { signature, .. } = &mut self.block {
                    signature.push_str(text("signature"));
                }
            }
            "input_json_delta" => {
                if let ContentBlock::Call { json, .. } = &mut self.block {
                    json.push_str(text("partial_json"));
                }
            }
            _ => {}
        }
    }

    fn on_text(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if delta.is_empty() || !matches!(self.block, ContentBlock::Text { .. }) {
            return;
        }
        let begins = matches!(&self.block, ContentBlock::Text { id, .. } if id.is_empty());
        let new_id = if begins { self.item_id("msg") } else { String::new() };
        let ContentBlock::Text { id, text } = &mut self.block else { return };
        if begins {
            out.push(StreamEvent::ItemAdded(Box::new(message(&new_id, ""))));
            *id = new_id;
        }
        text.push_str(delta);
        self.written += delta.len();
        out.push(StreamEvent::TextDelta { delta: delta.to_owned() });
    }

    fn on_thinking(&mut self, delta: &str, out: &mut Vec<StreamEvent>) {
        if let ContentBlock::Thinking { text, .. } = &mut self.block
            && !delta.is_empty()
        {
            text.push_str(delta);
            self.written += delta.len();
            out.push(StreamEvent::ReasoningSummaryDelta { summary_index: 0, delta: delta.to_owned() });
        }
    }

    fn stop_block(&mut self, out: &mut Vec<StreamEvent>) {
        let item = match std::mem::take(&mut self.block) {
            ContentBlock::None => return,
            ContentBlock::Text { id, .. } if id.is_empty() => return,
            ContentBlock::Text { id, text } => message(&id, &text),
            ContentBlock::Thinking { id, text, signature } => {
                // Without a signature it cannot go back; the rest of the blob still says whose it is.
                let block = match signature.is_empty() {
                    true => Value::Null,
                    false => json!({ "type": "thinking", "thinking": text, "signature": signature }),
                };
                reasoning(&id, &text, Some(self.blob(block)))
            }
            ContentBlock::Call { id, name, input, json } => {
                if self.given_calls.len() >= MAX_CALLS || name.is_empty() {
                    return;
                }
                let arguments = match (json.trim().is_empty(), &input) {
                    (false, _) => json,
                    (true, Value::Object(input)) if !input.is_empty() => {
                        Value::from(input.clone()).to_string()
                    }
                    (true, _) => "{}".to_owned(),
                };
                self.written += arguments.len();
                if let Some(answer) = structured_answer(&self.targets, &name, &arguments) {
                    return self.say(&answer, out);
                }
                let id = self.call_id(id);
                let is_whole = serde_json::from_str::<IgnoredAny>(&arguments).is_ok();
                let item = call_item(&self.targets, &name, id, arguments);
                if !is_whole {
                    return self.held.push(StreamEvent::ItemDone(Box::new(item)));
                }
                item
            }
        };
        out.push(StreamEvent::ItemDone(Box::new(item)));
    }

    /// An answer that came as a call.
    fn say(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        let id = self.item_id("msg");
        out.push(StreamEvent::ItemAdded(Box::new(message(&id, ""))));
        out.push(StreamEvent::TextDelta { delta: text.to_owned() });
        out.push(StreamEvent::ItemDone(Box::new(message(&id, text))));
    }

    fn call_id(&mut self, id: String) -> String {
        let made = || format!("toolu_{}_{}", self.shown_id(), self.given_calls.len());
        let id = if id.is_empty() { made() } else { id };
        let taken = taken_ids(&self.request);
        let id = unique_id(id, |id| taken.contains(id) || self.given_calls.iter().any(|other| other == id));
        self.given_calls.push(id.clone());
        id
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        let reason = self.stop_reason.take().unwrap_or_default();
        let failure = match reason.as_str() {
            "max_tokens" => failure::cut(&self.provider, Some(self.max_tokens), None),
            // Asking again as it is would end the same way; a shorter history may not.
            "model_context_window_exceeded" => ModelFailure {
                verdict: Some(failure::room_helps()),
                ..ModelFailure::new(
                    FailureClass::ContextWindow,
                    format!("the response is incomplete, reason: {reason}"),
                )
            },
            "refusal" => {
                let said = ["explanation", "category", "reason"];
                let said = said.iter().find_map(|name| self.stop_details[*name].as_str());
                failure::refusal(said.unwrap_or("it gave no reason"))
            }
            "pause_turn" => {
                ModelFailure::new(FailureClass::Paused, "the model paused its answer again and again")
            }
            _ => {
                self.is_over = true;
                out.append(&mut self.held);
                let usage = self.usage.total().unwrap_or_else(|| estimated(&self.request, self.written));
                let response_id = self.shown_id();
                return out.push(StreamEvent::Completed { response_id, usage: Some(usage) });
            }
        };
        self.fail(ModelFailure { spent: self.usage.total(), ..failure }, out);
    }

    fn blob(&self, block: Value) -> String {
        let (provider, model) = (self.provider.clone(), self.request.model.clone());
        Blob { provider, model, after: Some(self.after.hex()), data: block }.write(Wire::Messages)
    }

    fn item_id(&mut self, kind: &str) -> String {
        self.items += 1;
        format!("{kind}_{}_{}", self.shown_id(), self.items)
    }

    /// The server's id; without one, a name that is the same for the same request.
    fn shown_id(&self) -> String {
        if self.response_id.is_empty() { self.after.hex() } else { self.response_id.clone() }
    }
}

impl MessagesUsage {
    fn learn(&mut self, usage: &Value) {
        let count = |name: &str| usage[name].as_i64().filter(|count| *count >= 0);
        if let Some(input) = count("input_tokens") {
            self.input = Some(input);
        }
        if let Some(read) = count("cache_read_input_tokens") {
            self.cache_read = read;
        }
        if let Some(written) = count("cache_creation_input_tokens") {
            self.cache_written = written;
        }
        if let Some(output) = count("output_tokens") {
            self.output = output;
        }
    }

    fn total(&self) -> Option<TokenUsageBreakdown> {
        let input = self.input?.saturating_add(self.cache_read).saturating_add(self.cache_written);
        Some(TokenUsageBreakdown {
            total_tokens: input.saturating_add(self.output),
            input_tokens: input,
            cached_input_tokens: self.cache_read,
            output_tokens: self.output,
            reasoning_output_tokens: 0,
            cache_write_input_tokens: (self.cache_written > 0).then_some(self.cache_written),
            is_estimated: false,
        })
    }
}

fn message(id: &str, text: &str) -> ResponseItem {
    let content =
        if text.is_empty() { vec![] } else { vec![ContentItem::OutputText { text: text.to_owned() }] };
    ResponseItem::Message {
        id: Some(id.to_owned()),
        role: "assistant".to_owned(),
        content,
        end_turn: None,
        phase: None,
    }
}

fn reasoning(id: &str, text: &str, encrypted_content: Option<String>) -> ResponseItem {
    let summary = match text.is_empty() {
        true => vec![],
        false => vec![ReasoningItemReasoningSummary::SummaryText { text: text.to_owned() }],
    };
    ResponseItem::Reasoning { id: Some(id.to_owned()), summary, content: None, encrypted_content }
}
