//! Reads requests of other programs, which leave out or shorten what the runtime always writes in full.

use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{RequestBody, ToolChoice};
use serde::Deserialize;
use serde_json::{Value, json};

use super::OfflineModel;

/// A request, and whether its sender wants a stream.
#[derive(Debug)]
pub(crate) struct ForeignRequest {
    pub(crate) body: RequestBody,
    pub(crate) stream: bool,
}

#[derive(Deserialize)]
struct RequestFields {
    model: Option<String>,
    instructions: Option<String>,
    input: Option<Value>,
    tools: Option<Vec<Arc<Value>>>,
    stream: Option<bool>,
    text: Option<Value>,
    prompt_cache_key: Option<String>,
}

pub(crate) fn read(bytes: &[u8]) -> Result<ForeignRequest, String> {
    let fields: RequestFields =
        serde_json::from_slice(bytes).map_err(|error| format!("the body is no request: {error}"))?;
    let input = match fields.input {
        None | Some(Value::Null) => return Err("`input` is missing".to_owned()),
        Some(Value::String(text)) => vec![message("user", &text)],
        Some(Value::Array(items)) => items,
        Some(_) => return Err("`input` is neither text nor a list of items".to_owned()),
    };
    let input = input
        .into_iter()
        .zip(0..)
        .map(|(value, at)| item(value).map_err(|error| format!("input[{at}]: {error}")));
    let body = RequestBody {
        model: fields.model.unwrap_or_else(|| OfflineModel::NAME.to_owned()),
        instructions: fields.instructions.unwrap_or_default(),
        input: input.collect::<Result<_, _>>()?,
        tools: fields.tools.unwrap_or_default(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: false,
        reasoning: None,
        store: false,
        stream: true,
        include: Vec::new(),
        service_tier: None,
        prompt_cache_key: fields.prompt_cache_key.unwrap_or_default(),
        // A format other than a schema asks for nothing special.
        text: fields.text.and_then(|text| serde_json::from_str(&text.to_string()).ok()),
    };
    Ok(ForeignRequest { body, stream: fields.stream.unwrap_or(false) })
}

/// A message may leave out its type and give its content as text.
fn item(mut value: Value) -> Result<Arc<ResponseItem>, String> {
    let text = value.get("content").and_then(Value::as_str).map(str::to_owned);
    let role = value.get("role").and_then(Value::as_str).map(str::to_owned);
    if let (Some(role), Some(text)) = (&role, &text) {
        value = message(role, text);
    } else if let (Some(_), None, Some(fields)) = (role, value.get("type").cloned(), value.as_object_mut()) {
        fields.insert("type".to_owned(), "message".into());
    }
    serde_json::from_str(&value.to_string()).map(Arc::new).map_err(|error| error.to_string())
}

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value)]
    fn check(body: Value, expected: &str) {
        let shown = match read(body.to_string().as_bytes()) {
            Ok(request) => serde_json::to_string(&request.body.input).unwrap(),
            Err(problem) => problem,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn short_forms_are_written_out() {
        let hi = r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}]"#;
        check(json!({"input": "hi"}), hi);
        check(json!({"input": [{"role": "user", "content": "hi"}]}), hi);
        check(json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}), hi);
    }

    #[test]
    fn what_is_wrong_is_named() {
        check(json!({}), "`input` is missing");
        check(json!({"input": 7}), "`input` is neither text nor a list of items");
        check(json!({"input": [{"type": "function_call"}]}), "input[0]: missing field `name`");
        assert!(read(b"{").unwrap_err().starts_with("the body is no request: EOF"));
    }
}
