//! A Responses request as the body of `POST /messages`.

use std::sync::Arc;

use bytes::Bytes;
use model::protocol::ResponseItem;
use model::{OutputFormat, RequestBody};
use serde_json::{Value, json};

use super::MessagesDecoder;
use super::family::{self, ModelFamily};
use super::write::{MessagesStyle, MessagesWriter, add_marked, chosen};
use crate::digest::PrefixDigest;
use crate::order::Transcript;
use crate::piece::developer_text;
use crate::shared_bytes::SharedBytes;
use crate::tools::{Function, functions, with_structured_answer};
use crate::{Capabilities, Thinking, json, schema};

#[derive(Debug, Default)]
pub(crate) struct MessagesEncoder {
    kept: Option<MessagesHistory>,
}

#[derive(Debug)]
struct MessagesHistory {
    style: MessagesStyle,
    /// Of everything before the messages.
    seed: PrefixDigest,
    transcript: Transcript<MessagesWriter>,
    /// The bytes written so far.
    written: SharedBytes,
}

impl MessagesEncoder {
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.written.len())
    }

    /// The body, and what reads its answer. The error names what cannot be expressed.
    pub(crate) fn encode(
        &mut self,
        request: &Arc<RequestBody>,
        able: &Capabilities,
    ) -> Result<(Vec<Bytes>, MessagesDecoder), String> {
        let (mut functions, mut targets) = functions(&request.tools)?;
        let forced = forced_schema(request, able)?;
        if let Some(schema) = forced {
            targets = with_structured_answer(&mut functions, targets, schema);
        }
        let lead = Vec::from_iter(request.input.iter().map_while(|item| developer_text(item)));
        let history = &request.input[lead.len()..];
        let choice = ToolChoiceFields {
            must_call: forced.is_some(),
            one_at_a_time: !request.parallel_tool_calls || forced.is_some(),
        };
        let prefix = prefix(request, able, &functions, &lead, choice);
        let style = MessagesStyle {
            provider: able.provider.clone(),
            model: request.model.clone(),
            later_system: able.later_system,
            images: able.images,
            returns_reasoning: able.returns_reasoning,
        };
        let kept = self.kept_for(style, PrefixDigest::of(&prefix), history);
        kept.transcript.follow(history)?;
        kept.written.add(kept.transcript.writer.hand_over());
        let mut tail = kept.transcript.rest();
        tail.finish();
        if let Some(problem) = kept.transcript.writer.problem.or(tail.problem) {
            return Err(problem.to_owned());
        }
        let mut body = Vec::with_capacity(prefix.len() + 512);
        body.push(b'{');
        options(&mut body, request, able, tail.loop_without_thinking || forced.is_some())?;
        body.extend_from_slice(&prefix);
        body.extend_from_slice(br#","messages":["#);
        let marks = if able.cache_marks { chosen(&kept.transcript.writer, &tail) } else { Vec::new() };
        let digest = tail.digest_here();
        let mut body = vec![Bytes::from(body)];
        add_marked(&mut body, &kept.written, tail.bytes, &marks);
        body.push(Bytes::from_static(b"]}"));
        Ok((body, MessagesDecoder::new(able, Arc::clone(request), targets, digest)))
    }

    /// The bytes written before, if this request repeats them.
    fn kept_for(
        &mut self,
        style: MessagesStyle,
        seed: PrefixDigest,
        history: &[Arc<ResponseItem>],
    ) -> &mut MessagesHistory {
        let fits = |kept: &MessagesHistory| {
            kept.seed == seed && kept.style == style && kept.transcript.continues(history)
        };
        let kept = self.kept.take().filter(fits);
        self.kept.insert(kept.unwrap_or_else(|| {
            let transcript = Transcript::new(MessagesWriter::new(style.clone(), seed));
            MessagesHistory { style, seed, transcript, written: SharedBytes::default() }
        }))
    }
}

/// How calls are asked for.
#[derive(Clone, Copy)]
struct ToolChoiceFields {
    must_call: bool,
    one_at_a_time: bool,
}

impl ToolChoiceFields {
    /// Nothing where the default does.
    fn json(self) -> Option<Value> {
        let kind = if self.must_call { "any" } else { "auto" };
        match self.one_at_a_time {
            true => Some(json!({ "type": kind, "disable_parallel_tool_use": true })),
            false => self.must_call.then(|| json!({ "type": kind })),
        }
    }
}

/// The schema of an answer that has to come as a call, as older models take none.
fn forced_schema<'a>(request: &'a RequestBody, able: &Capabilities) -> Result<Option<&'a Value>, String> {
    let format = request.text.as_ref().and_then(|text| text.format.as_ref());
    let Some(OutputFormat::JsonSchema { schema, .. }) = format else { return Ok(None) };
    if !able.json_schema {
        return Err("an answer held to a JSON schema".to_owned());
    }
    Ok((!ModelFamily::of(&request.model).json_schema).then_some(schema))
}

/// `,"tools":[…],"tool_choice":…,"system":[…]`: what comes before the messages and must not change.
fn prefix(
    request: &RequestBody,
    able: &Capabilities,
    functions: &[Function],
    lead: &[String],
    choice: ToolChoiceFields,
) -> Vec<u8> {
    let mut out = Vec::new();
    if !functions.is_empty() {
        let tool = |function: &Function| json!({ "name": function.name, "description": function.description, "input_schema": function.parameters });
        out.push(b',');
        json::write(&mut out, "tools");
        out.push(b':');
        json::write(&mut out, &Vec::from_iter(functions.iter().map(tool)));
        if let Some(choice) = choice.json() {
            json::field(&mut out, "tool_choice", &choice);
        }
    }
    let texts = std::iter::once(&request.instructions).chain(lead).filter(|text| !text.trim().is_empty());
    let mut system = Vec::from_iter(texts.map(|text| json!({ "type": "text", "text": text })));
    if let Some(last) = system.last_mut().filter(|_| able.cache_marks) {
        // Covers the tools, too.
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    if !system.is_empty() {
        out.push(b',');
        json::write(&mut out, "system");
        out.push(b':');
        json::write(&mut out, &system);
    }
    out
}

fn options(
    body: &mut Vec<u8>,
    request: &RequestBody,
    able: &Capabilities,
    without_thinking: bool,
) -> Result<(), String> {
    let family = ModelFamily::of(&request.model);
    let max_tokens = family::max_tokens(&request.model, able);
    json::field(body, "model", &request.model);
    json::field(body, "max_tokens", &max_tokens);
    json::field(body, "stream", &true);
    let mut output = serde_json::Map::new();
    if let Some(reasoning) = &request.reasoning {
        match able.thinking.unwrap_or(family.thinking) {
            Thinking::Never => {}
            // Calls that came without thinking must be answered without it.
            Thinking::Budget if without_thinking => {}
            Thinking::Budget => {
                if let Some(budget) = family::budget(reasoning.effort.as_ref(), max_tokens) {
                    let thinking = json!({ "type": "enabled", "budget_tokens": budget });
                    json::field(body, "thinking", &thinking);
                }
            }
            Thinking::Adaptive => {
                json::field(body, "thinking", &json!({ "type": "adaptive", "display": "summarized" }));
                if let Some(effort) = reasoning.effort.as_ref().filter(|_| able.reasoning_effort) {
                    output.insert("effort".to_owned(), json!(family::effort_name(effort)));
                }
            }
        }
    }
    match request.text.as_ref().and_then(|text| text.format.as_ref()) {
        None => {}
        // Asked for as a call.
        Some(_) if !family.json_schema => {}
        Some(OutputFormat::JsonSchema { schema, .. }) if schema::is_recursive(schema) => {
            return Err("an answer held to a JSON schema that refers to itself".to_owned());
        }
        Some(OutputFormat::JsonSchema { schema, .. }) => {
            let format = json!({ "type": "json_schema", "schema": schema::closed(schema) });
            output.insert("format".to_owned(), format);
        }
    }
    if !output.is_empty() {
        json::field(body, "output_config", &Value::Object(output));
    }
    Ok(())
}
