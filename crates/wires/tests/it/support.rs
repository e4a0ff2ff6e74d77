//! Requests, and events as short lines.

use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{Reasoning, RequestBody, StreamEvent, ToolChoice};
use oarlock_wires::{Capabilities, Decoder, Encoder, Wire};
use serde_json::{Value, json};

pub(crate) fn tools() -> Vec<Arc<Value>> {
    let function = |name: &str| {
        json!({"type": "function", "name": name, "description": "", "strict": false,
               "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}})
    };
    let patch = json!({"type": "custom", "name": "apply_patch", "description": "Patches.",
                       "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}});
    [function("read"), function("list"), patch].map(Arc::new).into()
}

pub(crate) fn request(model: &str, input: Vec<Arc<ResponseItem>>) -> Arc<RequestBody> {
    Arc::new(RequestBody {
        model: model.to_owned(),
        instructions: "Be brief.".to_owned(),
        input,
        tools: tools(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        reasoning: Some(Reasoning { effort: None, summary: None }),
        store: false,
        stream: true,
        include: vec![],
        service_tier: None,
        prompt_cache_key: "thread".to_owned(),
        text: None,
    })
}

pub(crate) fn item(value: Value) -> Arc<ResponseItem> {
    Arc::new(serde_json::from_value(value).unwrap())
}

pub(crate) fn user(text: &str) -> Arc<ResponseItem> {
    message("user", text)
}

pub(crate) fn message(role: &str, text: &str) -> Arc<ResponseItem> {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
}

pub(crate) fn call(id: &str, arguments: &str) -> Arc<ResponseItem> {
    item(json!({"type": "function_call", "name": "read", "arguments": arguments, "call_id": id}))
}

pub(crate) fn output(id: &str, text: &str) -> Arc<ResponseItem> {
    item(json!({"type": "function_call_output", "call_id": id, "output": text}))
}

/// The request on the wire, as a tree.
pub(crate) fn encoded(wire: Wire, provider: &str, request: &Arc<RequestBody>) -> Value {
    let sent = Encoder::new(wire).encode(request, &Capabilities::of(provider, wire)).unwrap();
    serde_json::from_slice(&sent.body.concat()).unwrap()
}

pub(crate) fn decoder(wire: Wire, provider: &str) -> Decoder {
    let model = if wire == Wire::Messages { "claude-opus-4-6" } else { "m" };
    let input = vec![user("hi"), call("call_used", "{}"), output("call_used", "x")];
    let able = Capabilities::of(provider, wire);
    Encoder::new(wire).encode(&request(model, input), &able).unwrap().decoder
}

/// Every event of a stream, to its end.
pub(crate) fn decode<'a>(mut decoder: Decoder, data: impl IntoIterator<Item = &'a str>) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    for data in data {
        decoder.push(data, &mut events);
    }
    decoder.close(None, &mut events);
    events
}

pub(crate) fn lines(events: &[StreamEvent]) -> String {
    let line = |event: &StreamEvent| match event {
        StreamEvent::ItemAdded(item) => format!("added {}", serde_json::to_string(item).unwrap()),
        StreamEvent::ItemDone(item) => format!("done {}", readable(item)),
        StreamEvent::TextDelta { delta } => format!("text {delta:?}"),
        StreamEvent::ReasoningTextDelta { delta, .. } => format!("reasoning {delta:?}"),
        StreamEvent::ReasoningSummaryDelta { delta, .. } => format!("summary {delta:?}"),
        StreamEvent::Completed { response_id, usage } => {
            let usage = usage.as_ref().map_or("no usage".to_owned(), |usage| {
                format!(
                    "input {} ({} cached), output {} ({} reasoning), total {}",
                    usage.input_tokens,
                    usage.cached_input_tokens,
                    usage.output_tokens,
                    usage.reasoning_output_tokens,
                    usage.total_tokens
                )
            });
            format!("completed {response_id}: {usage}")
        }
        StreamEvent::Failed(failure) => {
            let again = if failure.is_retryable() { "again" } else { "final" };
            format!("failed {:?} ({again}): {failure}", failure.class)
        }
        other => format!("{other:?}"),
    };
    events.iter().map(|event| line(event) + "\n").collect()
}

/// With what goes back in the clear.
fn readable(item: &ResponseItem) -> String {
    let mut value = serde_json::to_value(item).unwrap();
    if let Some(blob) = value["encrypted_content"].as_str() {
        let (wire, encoded) = blob.strip_prefix("ox1.").unwrap().split_once('.').unwrap();
        let json = base64_decode(encoded);
        value["encrypted_content"] =
            json!({ "wire": wire, "blob": serde_json::from_slice::<Value>(&json).unwrap() });
        // Bound to the bytes of the request, which other tests hold.
        if value["encrypted_content"]["blob"]["after"].is_string() {
            value["encrypted_content"]["blob"]["after"] = json!("…");
        }
    }
    value.to_string()
}

fn base64_decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::prelude::BASE64_STANDARD.decode(text).unwrap()
}
