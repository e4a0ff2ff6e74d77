//! Requests of the vendors' wires as the model of a test reads them: the inverse of what the wires write.

use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{OutputFormat, RequestBody, TextOptions, ToolChoice};
use model_http::Wire;
use serde_json::{Value, json};

/// The error says what a vendor would not understand.
pub(crate) fn request_of(wire: Wire, body: &Value) -> Result<RequestBody, String> {
    let (instructions, items, tools) = match wire {
        Wire::Responses => {
            return serde_json::from_value(body.clone()).map_err(|error| error.to_string());
        }
        Wire::Chat => (String::new(), chat_items(body), chat_tools(body)),
        Wire::Messages => (system_text(body), messages_items(body), messages_tools(body)),
    };
    let item = |value: Value| serde_json::from_value::<ResponseItem>(value).map(Arc::new);
    let items = items.into_iter().map(item).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let schema =
        [&body["response_format"]["json_schema"]["schema"], &body["output_config"]["format"]["schema"]];
    let schema = schema.into_iter().find(|schema| schema.is_object());
    let format = schema.map(|schema| OutputFormat::JsonSchema {
        strict: true,
        schema: schema.clone(),
        name: "answer".to_owned(),
    });
    Ok(RequestBody {
        model: body["model"].as_str().unwrap_or_default().to_owned(),
        instructions,
        input: items,
        tools: tools.into_iter().map(Arc::new).collect(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        reasoning: None,
        store: false,
        stream: true,
        include: Vec::new(),
        service_tier: None,
        prompt_cache_key: String::new(),
        text: format.map(|format| TextOptions { verbosity: None, format: Some(format) }),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn function(name: &Value, description: &Value, parameters: &Value) -> Value {
    json!({"type": "function", "name": name, "description": description, "strict": false, "parameters": parameters})
}

fn chat_tools(body: &Value) -> Vec<Value> {
    let tools = list(&body["tools"]).iter().map(|tool| &tool["function"]);
    tools.map(|tool| function(&tool["name"], &tool["description"], &tool["parameters"])).collect()
}

fn messages_tools(body: &Value) -> Vec<Value> {
    let tools = list(&body["tools"]).iter();
    tools.map(|tool| function(&tool["name"], &tool["description"], &tool["input_schema"])).collect()
}

fn system_text(body: &Value) -> String {
    let texts = list(&body["system"]).iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}

fn chat_items(body: &Value) -> Vec<Value> {
    let mut items = Vec::new();
    for message in list(&body["messages"]) {
        let content = &message["content"];
        match message["role"].as_str().unwrap_or_default() {
            "system" => items.push(said("developer", content.as_str().unwrap_or_default())),
            "user" => match content {
                Value::String(text) => items.extend(split(text)),
                parts => items.extend(list(parts).iter().flat_map(chat_part)),
            },
            "tool" => items.push(output(&message["tool_call_id"], content)),
            _ => {
                if let Some(text) = content.as_str() {
                    items.push(said("assistant", text));
                }
                let calls = list(&message["tool_calls"]).iter();
                items.extend(calls.map(|call| {
                    let function = &call["function"];
                    json!({"type": "function_call", "call_id": call["id"], "name": function["name"],
                           "arguments": function["arguments"]})
                }));
            }
        }
    }
    items
}

fn chat_part(part: &Value) -> Vec<Value> {
    match part["text"].as_str() {
        Some(text) => split(text),
        None => vec![image(&part["image_url"]["url"])],
    }
}

fn messages_items(body: &Value) -> Vec<Value> {
    let mut items = Vec::new();
    for message in list(&body["messages"]) {
        let is_user = message["role"] == "user";
        if message["role"] == "system" {
            items.push(said("developer", message["content"].as_str().unwrap_or_default()));
        }
        for block in list(&message["content"]) {
            let text = block["text"].as_str().unwrap_or_default();
            match block["type"].as_str().unwrap_or_default() {
                "text" if is_user => items.extend(split(text)),
                "text" => items.push(said("assistant", text)),
                "image" => {
                    let source = &block["source"];
                    let kind = source["media_type"].as_str().unwrap_or_default();
                    let data = source["data"].as_str().unwrap_or_default();
                    items.push(image(&json!(format!("data:{kind};base64,{data}"))));
                }
                "tool_use" => items.push(json!({
                    "type": "function_call", "call_id": block["id"], "name": block["name"],
                    "arguments": block["input"].to_string(),
                })),
                "tool_result" => items.push(output(&block["tool_use_id"], &block["content"])),
                _ => {}
            }
        }
    }
    items
}

fn said(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn image(url: &Value) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]})
}

fn output(call_id: &Value, content: &Value) -> Value {
    let text = match content {
        Value::String(text) => text.clone(),
        parts => list(parts).iter().filter_map(|part| part["text"].as_str()).collect(),
    };
    json!({"type": "function_call_output", "call_id": call_id, "output": text})
}

/// Wires without roles for context join it with the user's words: each piece between tags is a message of its own.
fn split(text: &str) -> Vec<Value> {
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while let Some(end) = tagged(rest) {
        pieces.push(match rest.strip_prefix("<developer_message>") {
            Some(_) => said("developer", &rest[..end]),
            None => said("user", &rest[..end]),
        });
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(said("user", rest));
    }
    pieces
}

/// Where a piece between tags at the beginning ends.
fn tagged(text: &str) -> Option<usize> {
    if text.starts_with("# AGENTS.md instructions") {
        let end = "</INSTRUCTIONS>";
        return text.find(end).map(|at| at + end.len());
    }
    let name = text.strip_prefix('<')?.split(['>', ' ', '\n']).next()?;
    let end = format!("</{name}>");
    text.find(&end).map(|at| at + end.len())
}
