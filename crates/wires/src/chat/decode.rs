//! Decodes the chunks of a chat completion to Responses events.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use model::protocol::{ContentItem, ReasoningItemContent, ResponseItem, TokenUsageBreakdown};
use model::{ModelFailure, RequestBody, StreamEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::encode::{EXTRA_CONTENT, REASONING_CONTENT, REASONING_DETAILS, THINKING};
use super::text_calls::{TextCalls, TextPiece};
use crate::blob::Blob;
use crate::decoder::{MAX_CALLS, MAX_RESPONSE_BYTES, taken_ids, unique_id};
use crate::digest::PrefixDigest;
use crate::tools::{Targets, call_item};
use crate::usage::estimated;
use crate::{Capabilities, ReasoningReturn, Wire, failure};

/// Reads one response.
#[derive(Debug, Clone)]
pub(crate) struct ChatDecoder {
    provider: String,
    request: Arc<RequestBody>,
    /// Limit of the answer in tokens, if the request has one.
    max_tokens: Option<u32>,
    targets: Targets,
    response_id: String,
    /// Items so far; part of their ids.
    items: usize,
    active: ActiveItem,
    calls: Vec<PartialCall>,
    wants: ReasoningReturn,
    /// Reasoning to be sent back with this message.
    returned: Map<String, Value>,
    usage: Option<TokenUsageBreakdown>,
    finish: Option<String>,
    bytes: usize,
    /// Bytes of text, reasoning and arguments, for a server that does not count tokens.
    written: usize,
    /// Set if calls are found in the text.
    text_calls: Option<TextCalls>,
    is_over: bool,
}

#[derive(Debug, Clone, Default)]
enum ActiveItem {
    #[default]
    Nothing,
    Text {
        id: String,
        text: String,
    },
    Reasoning {
        id: String,
        text: String,
    },
}

/// A chunk with text only. Others are parsed field by field.
#[derive(Deserialize)]
struct PlainChunk<'a> {
    #[serde(borrow)]
    choices: [PlainChoice<'a>; 1],
    object: Option<&'a str>,
    #[serde(rename = "type")]
    kind: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    usage: Option<IgnoredAny>,
    x_groq: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PlainChoice<'a> {
    #[serde(borrow)]
    delta: PlainDelta<'a>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainDelta<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
}

#[derive(Debug, Clone, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Option<Value>,
}

impl ChatDecoder {
    pub(crate) fn new(able: &Capabilities, request: Arc<RequestBody>, targets: Targets) -> Self {
        Self {
            provider: able.provider.clone(),
            max_tokens: able.max_output_tokens,
            wants: able.reasoning,
            request,
            targets,
            response_id: String::new(),
            items: 0,
            active: ActiveItem::Nothing,
            calls: Vec::new(),
            returned: Map::new(),
            usage: None,
            finish: None,
            bytes: 0,
            written: 0,
            text_calls: able.text_tool_calls.then(TextCalls::default),
            is_over: false,
        }
    }

    pub(crate) fn push(&mut self, data: &str, out: &mut Vec<StreamEvent>) {
        if self.is_over {
            return;
        }
        if data.trim() == "[DONE]" {
            if self.finish.is_none() && self.is_whole() {
                self.on_finish("stop", out);
            }
            return self.close(None, out);
        }
        self.bytes += data.len();
        if self.bytes > MAX_RESPONSE_BYTES {
            let problem = format!("the response is larger than {MAX_RESPONSE_BYTES} bytes");
            return self.fail(ModelFailure::stream(problem), out);
        }
        if let Some(text) = self.plain_text(data) {
            return self.on_said(&text, out);
        }
        // Keep-alives of many kinds.
        let Ok(chunk) = serde_json::from_str::<Value>(data) else { return };
        if let Some(failure) = failure::in_stream(&chunk) {
            return self.fail(failure, out);
        }
        if let Some(id) = chunk["id"].as_str().filter(|_| self.response_id.is_empty()) {
            self.response_id = id.to_owned();
        }
        for usage in [&chunk["usage"], &chunk["x_groq"]["usage"]] {
            if let Some(usage) = read_usage(usage) {
                // Each count is of the whole response.
                self.usage = Some(usage);
            }
        }
        let Some(choice) = chunk["choices"].get(0) else { return };
        // Some servers send whole messages, or repeat the last one.
        let delta = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        if self.finish.is_none() {
            self.on_delta(delta, out);
        }
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.on_finish(reason, out);
        }
    }

    /// The text of a chunk with text only, which is nearly every one: parsed without building a tree.
    fn plain_text<'a>(&self, data: &'a str) -> Option<Cow<'a, str>> {
        if self.response_id.is_empty() || self.finish.is_some() {
            return None;
        }
        let chunk = serde_json::from_str::<PlainChunk<'a>>(data).ok()?;
        let [choice] = chunk.choices;
        let others = [chunk.error, chunk.usage, chunk.x_groq, choice.finish_reason];
        (chunk.object != Some("error") && chunk.kind.is_none() && others.iter().all(Option::is_none))
            .then_some(choice.delta.content)
    }

    /// The end of the stream, clean or not.
    pub(crate) fn close(&mut self, failure: Option<ModelFailure>, out: &mut Vec<StreamEvent>) {
        if self.is_over {
            return;
        }
        let Some(reason) = self.finish.take() else {
            let early = || ModelFailure::stream("stream closed before the response was finished");
            return self.fail(failure.unwrap_or_else(early), out);
        };
        let failure = match reason.as_str() {
            "length" | "max_tokens" => failure::cut(&self.provider, self.max_tokens, self.usage.as_ref()),
            "content_filter" => failure::refusal("the provider's content filter stopped the response"),
            "error" => ModelFailure::stream("the provider failed in the middle of its answer"),
            _ => {
                self.is_over = true;
                let usage = self.usage.take().unwrap_or_else(|| estimated(&self.request, self.written));
                return out.push(StreamEvent::Completed { response_id: self.shown_id(), usage: Some(usage) });
            }
        };
        // The text so far is paid for.
        let spent = self.usage.take();
        self.fail(ModelFailure { spent, ..failure }, out);
    }

    /// Some proxies leave out the finish reason: accepts text, or complete calls.
    fn is_whole(&self) -> bool {
        let has_answer = matches!(self.active, ActiveItem::Text { .. }) || !self.calls.is_empty();
        has_answer && self.calls.iter().all(|call| !call.name.is_empty() && is_complete(&call.arguments))
    }

    fn fail(&mut self, failure: ModelFailure, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.is_over, true) {
            out.push(StreamEvent::Failed(failure));
        }
    }

    fn on_delta(&mut self, delta: &Value, out: &mut Vec<StreamEvent>) {
        // Either name, never both: some servers send the same text twice.
        let reasoning = delta[REASONING_CONTENT].as_str().or_else(|| delta["reasoning"].as_str());
        if let Some(text) = reasoning {
            if self.wants == ReasoningReturn::ReasoningContent && !text.is_empty() {
                self.append_returned(REASONING_CONTENT, text);
            }
            self.on_reasoning(text, out);
        }
        let details = delta[REASONING_DETAILS].as_array();
        if let Some(details) = details.filter(|_| self.wants == ReasoningReturn::ReasoningDetails) {
            details.iter().for_each(|detail| self.add_detail(detail));
        }
        match &delta["content"] {
            Value::String(text) => self.on_said(text, out),
            Value::Array(chunks) => chunks.iter().for_each(|chunk| self.on_chunk(chunk, out)),
            _ => {}
        }
        if let Some(text) = delta["refusal"].as_str() {
            self.on_text(text, out);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.on_call(call);
        }
        if delta["function_call"].is_object() {
            self.on_call(&json!({ "index": 0, "function": delta["function_call"] }));
        }
    }

    /// A part of `content`, if that is an array.
    fn on_chunk(&mut self, chunk: &Value, out: &mut Vec<StreamEvent>) {
        match chunk["type"].as_str() {
            Some("thinking") => {
                let texts = chunk["thinking"].as_array().into_iter().flatten();
                let texts = texts.filter_map(|part| part["text"].as_str());
                let text = texts.collect::<String>();
                if self.wants == ReasoningReturn::ThinkingChunks && !text.is_empty() {
                    self.extend_thinking(&text);
                }
                self.on_reasoning(&text, out);
            }
            Some("text") | None => self.on_text(chunk["text"].as_str().unwrap_or_default(), out),
            Some(_) => {}
        }
    }

    /// The model's text, which may contain calls.
    fn on_said(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        let Some(reader) = &mut self.text_calls else { return self.on_text(text, out) };
        let pieces = reader.push(text);
        self.on_pieces(pieces, out);
    }

    fn on_pieces(&mut self, pieces: Vec<TextPiece>, out: &mut Vec<StreamEvent>) {
        for piece in pieces {
            match piece {
                TextPiece::Text(text) => self.on_text(&text, out),
                TextPiece::Call { name, arguments } if self.calls.len() < MAX_CALLS => {
                    self.written += arguments.len();
                    self.calls.push(PartialCall { name, arguments, ..PartialCall::default() });
                }
                TextPiece::Call { .. } => {}
            }
        }
    }

    fn on_text(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        self.written += text.len();
        if !matches!(self.active, ActiveItem::Text { .. }) {
            self.close_active(out);
            let id = self.item_id("msg");
            out.push(StreamEvent::ItemAdded(Box::new(message(&id, ""))));
            self.active = ActiveItem::Text { id, text: String::new() };
        }
        if let ActiveItem::Text { text: whole, .. } = &mut self.active {
            whole.push_str(text);
        }
        out.push(StreamEvent::TextDelta { delta: text.to_owned() });
    }

    fn on_reasoning(&mut self, text: &str, out: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        self.written += text.len();
        if !matches!(self.active, ActiveItem::Reasoning { .. }) {
            self.close_active(out);
            let id = self.item_id("rs");
            out.push(StreamEvent::ItemAdded(Box::new(reasoning(&id, "", String::new()))));
            self.active = ActiveItem::Reasoning { id, text: String::new() };
        }
        if let ActiveItem::Reasoning { text: whole, .. } = &mut self.active {
            whole.push_str(text);
        }
        out.push(StreamEvent::ReasoningTextDelta { content_index: 0, delta: text.to_owned() });
    }

    /// Calls are assembled and returned at the end: until then a later chunk may add to any of them.
    fn on_call(&mut self, delta: &Value) {
        let function = &delta["function"];
        let (index, id) = (delta["index"].as_u64(), delta["id"].as_str().unwrap_or_default());
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            value => value.to_string(),
        };
        self.written += arguments.len();
        let at = self.place_of(index, id);
        if at == self.calls.len() {
            if at >= MAX_CALLS {
                return;
            }
            self.calls.push(PartialCall { index, id: id.to_owned(), ..PartialCall::default() });
        }
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id = id.to_owned();
        }
        if let Some(name) = function["name"].as_str().filter(|_| call.name.is_empty()) {
            call.name = name.to_owned();
        }
        // The last chunk of some servers repeats the whole call.
        let is_repeated =
            !call.arguments.is_empty() && is_complete(&call.arguments) && is_complete(&arguments);
        if !is_repeated {
            call.arguments.push_str(&arguments);
        }
        if self.wants == ReasoningReturn::ExtraContent && !delta[EXTRA_CONTENT].is_null() {
            call.extra = Some(delta[EXTRA_CONTENT].clone());
        }
    }

    /// The index of the chunk's call; one past the last for a new one.
    fn place_of(&self, index: Option<u64>, id: &str) -> usize {
        let same_id = |call: &PartialCall| id.is_empty() || call.id.is_empty() || call.id == id;
        let found = match index {
            // Some servers number every call 0; another id is another call.
            Some(_) => self.calls.iter().rposition(|call| call.index == index && same_id(call)),
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None => self.calls.len().checked_sub(1).filter(|last| !is_complete(&self.calls[*last].arguments)),
        };
        found.unwrap_or(self.calls.len())
    }

    fn on_finish(&mut self, reason: &str, out: &mut Vec<StreamEvent>) {
        if self.finish.is_some() {
            return;
        }
        self.finish = Some(reason.to_owned());
        let rest = self.text_calls.as_mut().map(TextCalls::finish).unwrap_or_default();
        self.on_pieces(rest, out);
        self.close_active(out);
        let is_cut = matches!(reason, "length" | "max_tokens" | "content_filter" | "error");
        let calls = std::mem::take(&mut self.calls);
        // An incomplete call must not run; one without a name cannot.
        let calls = calls.into_iter().filter(|call| !is_cut && !call.name.is_empty());
        let mut calls = Vec::from_iter(calls);
        let taken = taken_ids(&self.request);
        let mut given: Vec<String> = Vec::new();
        for (at, call) in calls.iter_mut().enumerate() {
            let made = || format!("call_{}_{at}", self.shown_id());
            let id = if call.id.is_empty() { made() } else { call.id.clone() };
            call.id = unique_id(id, |id| taken.contains(id) || given.iter().any(|other| other == id));
            given.push(call.id.clone());
        }
        self.give_returned(&calls, out);
        for call in calls {
            let arguments = if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments };
            let item = call_item(&self.targets, &call.name, call.id, arguments);
            out.push(StreamEvent::ItemDone(Box::new(item)));
        }
    }

    /// Reasoning to be sent back with this message, as a separate item before the calls.
    fn give_returned(&mut self, calls: &[PartialCall], out: &mut Vec<StreamEvent>) {
        let extras = calls.iter().filter_map(|call| Some((call.id.clone(), call.extra.clone()?)));
        let extras = Map::from_iter(extras);
        if !extras.is_empty() {
            self.returned.insert(EXTRA_CONTENT.to_owned(), Value::Object(extras));
        }
        if !self.returned.is_empty() {
            let (id, blob) = (self.item_id("rs"), self.take_blob());
            out.push(StreamEvent::ItemDone(Box::new(reasoning(&id, "", blob))));
        }
    }

    /// Without data if nothing has to be sent back: it still marks the provider of this reasoning.
    fn take_blob(&mut self) -> String {
        let data = Value::Object(std::mem::take(&mut self.returned));
        let (provider, model) = (self.provider.clone(), self.request.model.clone());
        Blob { provider, model, after: None, data }.write(Wire::Chat)
    }

    fn close_active(&mut self, out: &mut Vec<StreamEvent>) {
        let item = match std::mem::take(&mut self.active) {
            ActiveItem::Nothing => return,
            ActiveItem::Text { id, text } => message(&id, &text),
            ActiveItem::Reasoning { id, text } => reasoning(&id, &text, self.take_blob()),
        };
        out.push(StreamEvent::ItemDone(Box::new(item)));
    }

    fn append_returned(&mut self, name: &str, text: &str) {
        match self.returned.get_mut(name) {
            Some(Value::String(known)) => known.push_str(text),
            _ => drop(self.returned.insert(name.to_owned(), json!(text))),
        }
    }

    fn extend_returned(&mut self, name: &str, more: Vec<Value>) {
        match self.returned.get_mut(name) {
            Some(Value::Array(known)) => known.extend(more),
            _ => drop(self.returned.insert(name.to_owned(), Value::Array(more))),
        }
    }

    /// Deltas of one detail (same type and index) are sent back as one.
    fn add_detail(&mut self, detail: &Value) {
        let text = match detail["type"].as_str() {
            Some("reasoning.text") => "text",
            Some("reasoning.summary") => "summary",
            _ => "",
        };
        let known = self.returned.get_mut(REASONING_DETAILS).and_then(Value::as_array_mut);
        let last = known.and_then(|known| known.last_mut());
        let is_same = |last: &&mut Value| {
            !text.is_empty() && last["type"] == detail["type"] && last["index"] == detail["index"]
        };
        let Some(last) = last.filter(is_same) else {
            return self.extend_returned(REASONING_DETAILS, vec![detail.clone()]);
        };
        for (name, value) in detail.as_object().into_iter().flatten() {
            match (&mut last[name], value) {
                (Value::String(said), Value::String(more)) if name == text => said.push_str(more),
                (_, Value::Null) => {}
                (field, value) => *field = value.clone(),
            }
        }
    }

    /// Pieces of one thought are sent back as one chunk.
    fn extend_thinking(&mut self, text: &str) {
        let Some(Value::Array(chunks)) = self.returned.get_mut(THINKING) else {
            let chunk = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": text }] });
            return self.extend_returned(THINKING, vec![chunk]);
        };
        let last = chunks.last_mut().map(|chunk| &mut chunk["thinking"][0]["text"]);
        if let Some(Value::String(known)) = last {
            known.push_str(text);
        }
    }

    fn item_id(&mut self, kind: &str) -> String {
        self.items += 1;
        format!("{kind}_{}_{}", self.shown_id(), self.items)
    }

    /// The server's id; without one, a deterministic one.
    fn shown_id(&self) -> String {
        if !self.response_id.is_empty() {
            return self.response_id.clone();
        }
        let request = format!("{}:{}", self.request.prompt_cache_key, self.request.input.len());
        PrefixDigest::of(request.as_bytes()).hex()
    }
}

fn is_complete(arguments: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, Value>>(arguments).is_ok()
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

fn reasoning(id: &str, text: &str, blob: String) -> ResponseItem {
    let encrypted_content = (!blob.is_empty()).then_some(blob);
    let content =
        (!text.is_empty()).then(|| vec![ReasoningItemContent::ReasoningText { text: text.to_owned() }]);
    ResponseItem::Reasoning { id: Some(id.to_owned()), summary: Vec::new(), content, encrypted_content }
}

fn read_usage(usage: &Value) -> Option<TokenUsageBreakdown> {
    let count = |value: &Value| value.as_i64().filter(|count| *count >= 0);
    let input_tokens = count(&usage["prompt_tokens"])?;
    let output_tokens = count(&usage["completion_tokens"]).unwrap_or(0);
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    Some(TokenUsageBreakdown {
        total_tokens: count(&usage["total_tokens"]).unwrap_or(input_tokens.saturating_add(output_tokens)),
        input_tokens,
        cached_input_tokens: cached.or_else(|| count(&usage["prompt_cache_hit_tokens"])).unwrap_or(0),
        output_tokens,
        reasoning_output_tokens: count(&usage["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0),
        cache_write_input_tokens: None,
        is_estimated: false,
    })
}
