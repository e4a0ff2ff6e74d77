//! Refusals of vendors: requests of each wire, checked as strictly as their documentation says. Tests of other crates
//! include this file, each with the wires it speaks.

#![allow(dead_code, reason = "each test crate uses the rules of its wires")]

use serde_json::Value;

/// Why a vendor would refuse the body of `POST /responses`. Empty: it would take it.
pub(crate) fn responses_problems(body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let known = [
        "model",
        "instructions",
        "input",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "include",
        "service_tier",
        "prompt_cache_key",
        "text",
    ];
    unknown_fields(body, &known, "the request", &mut problems);
    if body["model"].as_str().is_none_or(str::is_empty) {
        problems.push("no model".to_owned());
    }
    let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    let kind = |item: &Value, end: &str| item["type"].as_str().is_some_and(|kind| kind.ends_with(end));
    let mut called: Vec<&str> = Vec::new();
    let mut answered: Vec<&str> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        if kind(item, "_call_output") || item["type"] == "tool_search_output" {
            if !called.contains(&id) {
                problems.push(format!("input {at}: no tool call found for the output `{id}`"));
            }
            answered.push(id);
        } else if kind(item, "_call") && !id.is_empty() {
            if called.contains(&id) {
                problems.push(format!("input {at}: the call id `{id}` is not unique"));
            }
            called.push(id);
        } else if item["type"] == "reasoning" {
            let sealed = item["encrypted_content"].as_str().unwrap_or_default();
            if sealed.is_empty() || sealed.starts_with("ox1.") || item["content"].is_array() {
                problems.push(format!("input {at}: reasoning that this API did not make: {item}"));
            }
        }
    }
    let open = Vec::from_iter(called.iter().filter(|id| !answered.contains(id)));
    if !open.is_empty() {
        problems.push(format!("no tool output found for the calls {open:?}"));
    }
    problems
}

/// Why this vendor would refuse a body that others of its wire take.
pub(crate) fn quirk_problems(vendor: &str, body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut refuse = |field: &str| {
        if body.get(field).is_some() {
            problems.push(format!("{vendor}: the field `{field}` is not known"));
        }
    };
    match vendor {
        "mistral" => ["stream_options", "reasoning_effort"].into_iter().for_each(&mut refuse),
        "deepseek" => {
            ["parallel_tool_calls", "reasoning_effort", "response_format"].into_iter().for_each(&mut refuse);
        }
        _ => {}
    }
    for (at, message) in messages.iter().enumerate() {
        let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
        let ids = calls.iter().map(|call| &call["id"]).chain(message.get("tool_call_id"));
        let is_nine = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        for id in ids.filter(|_| vendor == "mistral") {
            if !id.as_str().is_some_and(is_nine) {
                problems.push(format!("message {at}: the call id {id} must be 9 letters and digits"));
            }
        }
        if vendor == "deepseek" && !calls.is_empty() && !message["reasoning_content"].is_string() {
            problems.push(format!("message {at}: missing reasoning_content beside calls"));
        }
        if vendor == "deepseek" && message["content"].to_string().contains("\"image_url\"") {
            problems.push(format!("message {at}: unknown variant `image_url`"));
        }
        let signature = calls.first().map(|call| &call["extra_content"]["google"]["thought_signature"]);
        if vendor == "gemini" && signature.is_some_and(|text| text.as_str().is_none_or(str::is_empty)) {
            problems.push(format!("message {at}: the first call has no thought_signature"));
        }
        if vendor != "deepseek" && message.get("reasoning_content").is_some() {
            problems.push(format!("message {at}: the field `reasoning_content` is not known"));
        }
        if vendor != "openrouter" && message.get("reasoning_details").is_some() {
            problems.push(format!("message {at}: the field `reasoning_details` is not known"));
        }
    }
    problems
}

/// Why a vendor would refuse the body of `POST /chat/completions`. Empty: it would take it.
pub(crate) fn chat_problems(body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let known = [
        "model",
        "messages",
        "stream",
        "stream_options",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "reasoning_effort",
        "response_format",
        "tools",
        "tool_choice",
    ];
    unknown_fields(body, &known, "the request", &mut problems);
    if body["model"].as_str().is_none_or(str::is_empty) {
        problems.push("no model".to_owned());
    }
    tool_names(body, "/function/name", &mut problems);
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        problems.push("no messages".to_owned());
    }
    let mut waiting: Vec<&str> = Vec::new();
    let mut last_role = "";
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !waiting.is_empty() {
            problems.push(format!("message {at}: calls {waiting:?} have no output"));
            waiting.clear();
        }
        match role {
            "system" => {}
            "user" if last_role == "user" => {
                problems.push(format!("message {at}: two user messages in a row"));
            }
            "user" => user_content(&message["content"], at, &mut problems),
            "assistant" => {
                if last_role == "assistant" {
                    problems.push(format!("message {at}: two assistant messages in a row"));
                }
                chat_answer(message, at, &mut waiting, &mut problems);
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match waiting.iter().position(|waiting| *waiting == id) {
                    Some(place) => drop(waiting.remove(place)),
                    None => {
                        problems.push(format!("message {at}: an output for `{id}`, which was not called"));
                    }
                }
                if message["content"].as_str().is_none_or(str::is_empty) {
                    problems.push(format!("message {at}: an output without text"));
                }
            }
            other => problems.push(format!("message {at}: unknown role `{other}`")),
        }
        let known =
            ["role", "content", "tool_calls", "tool_call_id", "reasoning_content", "reasoning_details"];
        unknown_fields(message, &known, &format!("message {at}"), &mut problems);
        last_role = role;
    }
    if !waiting.is_empty() {
        problems.push(format!("calls {waiting:?} have no output"));
    }
    if last_role == "assistant" {
        problems.push("the last message is an answer".to_owned());
    }
    problems
}

fn chat_answer<'a>(message: &'a Value, at: usize, waiting: &mut Vec<&'a str>, problems: &mut Vec<String>) {
    let calls = message["tool_calls"].as_array();
    if calls.is_none() && message["content"].is_null() {
        problems.push(format!("message {at}: an answer without content"));
    }
    for call in calls.into_iter().flatten() {
        let id = call["id"].as_str().unwrap_or_default();
        if !is_word(id) || waiting.contains(&id) {
            problems.push(format!("message {at}: the call id `{id}` is not valid or not unique"));
        }
        waiting.push(id);
        let arguments = call["function"]["arguments"].as_str();
        if arguments.is_none() || call["type"] != "function" {
            problems.push(format!("message {at}: a call without its arguments as text"));
        }
        if !is_word(call["function"]["name"].as_str().unwrap_or_default()) {
            problems.push(format!("message {at}: a call of a name that is not valid"));
        }
    }
}

fn user_content(content: &Value, at: usize, problems: &mut Vec<String>) {
    let is_fine = match content {
        Value::String(_) => true,
        Value::Array(parts) => parts.iter().all(|part| match part["type"].as_str() {
            Some("text") => part["text"].is_string(),
            Some("image_url") => part["image_url"]["url"].is_string(),
            _ => false,
        }),
        _ => false,
    };
    if !is_fine {
        problems.push(format!("message {at}: content that is neither text nor parts"));
    }
}

/// Why a vendor would refuse the body of `POST /messages`. Empty: it would take it.
pub(crate) fn messages_problems(body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let known = [
        "model",
        "max_tokens",
        "stream",
        "thinking",
        "output_config",
        "tools",
        "tool_choice",
        "system",
        "messages",
    ];
    unknown_fields(body, &known, "the request", &mut problems);
    if body["model"].as_str().is_none_or(str::is_empty) {
        problems.push("no model".to_owned());
    }
    let max_tokens = body["max_tokens"].as_u64().unwrap_or(0);
    if max_tokens == 0 {
        problems.push("max_tokens: Field required".to_owned());
    }
    if let Some(budget) = body["thinking"]["budget_tokens"].as_u64()
        && (budget < 1_024 || budget >= max_tokens)
    {
        problems.push(format!("a thinking budget of {budget} of {max_tokens} tokens"));
    }
    for name in tool_names(body, "/name", &mut problems) {
        let tool = body["tools"].as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == name));
        let schema = tool.map_or(&Value::Null, |tool| &tool["input_schema"]);
        let has_choice = ["oneOf", "anyOf", "allOf"].iter().any(|keyword| !schema[keyword].is_null());
        if schema["type"] != "object" || has_choice {
            problems.push(format!("tool {name}: the schema's root is no plain object"));
        }
        lost_references(schema, schema, &format!("tool {name}"), &mut problems);
    }
    let format = &body["output_config"]["format"]["schema"];
    lost_references(format, format, "output_config", &mut problems);
    for block in body["system"].as_array().into_iter().flatten() {
        if block["type"] != "text" || block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
            problems.push("a system block without text".to_owned());
        }
    }
    let marks = body.to_string().matches(r#""cache_control":"#).count();
    if marks > 4 {
        problems.push(format!("{marks} cache marks, at most 4 are allowed"));
    }
    conversation(body, &mut problems);
    if body["thinking"]["type"] == "enabled" {
        thinking_first(body, &mut problems);
    }
    problems
}

/// A schema is refused where a local reference stands for nothing.
fn lost_references(part: &Value, whole: &Value, place: &str, problems: &mut Vec<String>) {
    if let Some(reference) = part["$ref"].as_str()
        && reference.strip_prefix('#').is_some_and(|pointer| whole.pointer(pointer).is_none())
    {
        problems.push(format!("{place}: cannot resolve the reference `{reference}`"));
    }
    let parts: Vec<&Value> = match part {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    parts.into_iter().for_each(|inner| lost_references(inner, whole, place, problems));
}

/// With a budget to think, the calls that are being answered must come with the thinking that led to them.
fn thinking_first(body: &Value, problems: &mut Vec<String>) {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let has = |message: &Value, kind: &str| {
        message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == kind))
    };
    let is_prompt = |message: &Value| message["role"] == "user" && !has(message, "tool_result");
    let turn = messages.iter().rposition(is_prompt).map_or(0, |at| at + 1);
    for message in messages[turn..].iter().filter(|message| has(message, "tool_use")) {
        let first = message["content"][0]["type"].as_str().unwrap_or_default();
        if !first.ends_with("thinking") {
            problems.push(format!("expected `thinking` or `redacted_thinking`, but found `{first}`"));
        }
    }
}

fn conversation(body: &Value, problems: &mut Vec<String>) {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    if messages.first().is_none_or(|message| message["role"] != "user") {
        problems.push("the first message is not the user's".to_owned());
    }
    if messages.last().is_some_and(|message| message["role"] == "assistant") {
        problems.push("the last message is an answer".to_owned());
    }
    let mut waiting: Vec<&str> = Vec::new();
    let mut last: &Value = &Value::Null;
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "system" {
            // Where a model takes it at all: after a message of the user's, and text alone.
            let is_text = message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
            if last["role"] != "user" || !is_text {
                problems.push(format!("message {at}: a system message that is not text after the user's"));
            }
            last = message;
            continue;
        }
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        let is_user = message["role"] == "user";
        if blocks.is_empty() {
            problems.push(format!("message {at}: no content"));
        }
        let has_results = |message: &Value| message["content"][0]["type"] == "tool_result";
        if message["role"] == last["role"] && !(is_user && has_results(last) && !has_results(message)) {
            problems.push(format!("message {at}: the same role twice in a row"));
        }
        let mut answered = Vec::new();
        let mut saw_other = false;
        for block in blocks {
            block_problems(block, at, problems);
            match block["type"].as_str() {
                Some("tool_result") if is_user => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if !waiting.contains(&id) || answered.contains(&id) || saw_other {
                        problems
                            .push(format!("message {at}: unexpected tool_use_id `{id}` in a tool_result"));
                    }
                    answered.push(id);
                }
                Some("text" | "image") if is_user => saw_other = true,
                _ => {}
            }
        }
        if saw_other && !answered.is_empty() {
            problems.push(format!("message {at}: text after results"));
        }
        waiting.retain(|id| !answered.contains(id));
        if !waiting.is_empty() {
            problems.push(format!("message {at}: calls {waiting:?} without a tool_result right after them"));
        }
        waiting = match is_user {
            true => Vec::new(),
            false => blocks.iter().filter_map(|block| block["id"].as_str()).collect(),
        };
        last = message;
    }
    if !waiting.is_empty() {
        problems.push(format!("calls {waiting:?} without a tool_result"));
    }
}

fn block_problems(block: &Value, at: usize, problems: &mut Vec<String>) {
    let text = |name: &str| block[name].as_str().unwrap_or_default();
    let is_fine = match text("type") {
        "text" => !text("text").trim().is_empty(),
        "image" => block["source"]["data"].is_string() || block["source"]["url"].is_string(),
        "tool_use" => is_word(text("id")) && is_word(text("name")) && block["input"].is_object(),
        "tool_result" => match &block["content"] {
            Value::String(text) => !text.is_empty(),
            Value::Array(parts) => parts.iter().all(|part| part["type"] == "text" || part["type"] == "image"),
            _ => false,
        },
        "thinking" => !text("signature").is_empty() && block["cache_control"].is_null(),
        "redacted_thinking" => !text("data").is_empty(),
        _ => false,
    };
    if !is_fine {
        problems.push(format!("message {at}: the block {block} is not valid"));
    }
}

fn tool_names(body: &Value, pointer: &str, problems: &mut Vec<String>) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let names =
        tools.map(|tool| tool.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned());
    let names = Vec::from_iter(names);
    for (at, name) in names.iter().enumerate() {
        if !is_word(name) || names[..at].contains(name) {
            problems.push(format!("the tool name `{name}` is not valid or not unique"));
        }
    }
    names
}

fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_plain)
}

fn unknown_fields(object: &Value, known: &[&str], place: &str, problems: &mut Vec<String>) {
    let fields = object.as_object().into_iter().flatten();
    for (name, _) in fields.filter(|(name, _)| !known.contains(&name.as_str())) {
        problems.push(format!("{place}: the field `{name}` is not known"));
    }
}
