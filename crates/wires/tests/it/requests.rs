//! Requests as they go over each wire, and what vendors would refuse of them.

use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{OutputFormat, RequestBody, StreamEvent, TextOptions};
use oarlock_wires::{Capabilities, Encoder, Wire};
use serde_json::{Value, json};

use crate::support::*;
use crate::vendor::{chat_problems, messages_problems};

const CLAUDE: &str = "claude-opus-4-6";

fn changed(request: &Arc<RequestBody>, change: impl FnOnce(&mut RequestBody)) -> Arc<RequestBody> {
    let mut body = RequestBody::clone(request);
    change(&mut body);
    Arc::new(body)
}

/// The messages of a request, which every vendor's rules hold for.
#[track_caller]
fn check(wire: Wire, provider: &str, input: Vec<Arc<ResponseItem>>, expected: Value) {
    let model = if wire == Wire::Messages { CLAUDE } else { "m" };
    let mut body = encoded(wire, provider, &request(model, input));
    let problems = if wire == Wire::Messages { messages_problems(&body) } else { chat_problems(&body) };
    assert_eq!(problems, Vec::<String>::new(), "{body}");
    strip_marks(&mut body);
    let mut messages = body["messages"].as_array().unwrap().clone();
    messages.retain(|message| message["role"] != "system");
    assert_eq!(Value::Array(messages), expected);
}

fn strip_marks(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("cache_control");
            object.values_mut().for_each(strip_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_marks),
        _ => {}
    }
}

fn with_image(role: &str) -> Arc<ResponseItem> {
    item(json!({"type": "message", "role": role, "content": [
        {"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]}))
}

#[test]
fn chat_calls_and_outputs() {
    check(
        Wire::Chat,
        "openai",
        vec![
            message("developer", "Rules."),
            user("a"),
            user("b"),
            message("assistant", "Looking."),
            call("c1", ""),
            call("functions.read:2", "{\"path\":\"x\"}"),
            output("functions.read:2", ""),
            output("c1", "text"),
            message("developer", "Now in plan mode."),
        ],
        json!([
            {"role": "user", "content": "a\n\nb"},
            {"role": "assistant", "content": "Looking.", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "call_5b4c7dc9f36ea328", "type": "function",
                 "function": {"name": "read", "arguments": "{\"path\":\"x\"}"}}]},
            {"role": "tool", "tool_call_id": "call_5b4c7dc9f36ea328", "content": "(no output)"},
            {"role": "tool", "tool_call_id": "c1", "content": "text"},
        ]),
    );
}

#[test]
fn chat_images_of_outputs_follow_all_outputs() {
    let image = json!({"type": "input_image", "image_url": "https://host/i.png"});
    let shown = item(json!({"type": "function_call_output", "call_id": "a", "output": [image]}));
    check(
        Wire::Chat,
        "groq",
        vec![with_image("user"), call("a", "{}"), call("b", "{}"), shown, output("b", "x"), user("next")],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "[The image follows.]"},
            {"role": "tool", "tool_call_id": "b", "content": "x"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://host/i.png"}},
                {"type": "text", "text": "next"}]},
        ]),
    );
}

#[test]
fn messages_calls_and_outputs() {
    let patch =
        item(json!({"type": "custom_tool_call", "call_id": "p", "name": "apply_patch", "input": "*** x"}));
    let patched = item(json!({"type": "custom_tool_call_output", "call_id": "p", "output": "ok"}));
    check(
        Wire::Messages,
        "anthropic",
        vec![
            message("developer", "Rules."),
            user("a"),
            user(" "),
            message("assistant", ""),
            call("c.1", "not json"),
            patch,
            user("steer"),
            patched,
            output("c.1", " "),
            message("assistant", "done"),
            with_image("user"),
            message("developer", "later"),
        ],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "call_f6db3a190db79b1f", "name": "read", "input": {"arguments": "not json"}},
                {"type": "tool_use", "id": "p", "name": "apply_patch", "input": {"input": "*** x"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "p", "content": "ok"},
                {"type": "tool_result", "tool_use_id": "call_f6db3a190db79b1f", "content": "(no output)"}]},
            {"role": "user", "content": [{"type": "text", "text": "steer"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "text", "text": "<developer_message>\nlater\n</developer_message>"}]},
        ]),
    );
}

#[test]
fn later_developer_messages_are_system_messages_where_the_model_takes_them() {
    let input = vec![
        message("developer", "Rules."),
        user("a"),
        message("developer", "now"),
        message("developer", "and"),
        user("b"),
        call("c", "{}"),
        output("c", "x"),
        message("developer", "then"),
    ];
    let able = Capabilities { later_system: true, ..Capabilities::of("anthropic", Wire::Messages) };
    let sent = Encoder::new(Wire::Messages).encode(&request(CLAUDE, input), &able).unwrap();
    let mut body: Value = serde_json::from_slice(&sent.body.concat()).unwrap();
    assert_eq!(messages_problems(&body), Vec::<String>::new(), "{body}");
    strip_marks(&mut body);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "system", "content": "now"},
            // Only right after the user's own words.
            {"role": "user", "content": [
                {"type": "text", "text": "<developer_message>\nand\n</developer_message>"},
                {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]},
            {"role": "system", "content": "then"},
        ])
    );
}

#[test]
fn an_answer_at_the_end_and_a_call_without_output_are_made_acceptable() {
    for (wire, provider) in [(Wire::Chat, "openai"), (Wire::Messages, "anthropic")] {
        for input in [
            vec![message("assistant", "I was first.")],
            vec![user("a"), call("c", "{}")],
            vec![user("a"), output("never", "x"), call("c", "{}"), user("b"), message("assistant", "c")],
            vec![],
        ] {
            let body = encoded(wire, provider, &request("m", input));
            let problems = if wire == Wire::Chat { chat_problems(&body) } else { messages_problems(&body) };
            // A chat may consist of its system message.
            assert_eq!(problems, Vec::<String>::new(), "{body}");
        }
    }
}

#[test]
fn options_of_messages_follow_the_model() {
    let body = |model: &str| encoded(Wire::Messages, "anthropic", &request(model, vec![user("a")]));
    assert_eq!(body("claude-3-5-haiku-latest")["thinking"], Value::Null);
    assert_eq!(body("claude-opus-4-5")["thinking"], json!({"type": "enabled", "budget_tokens": 8_192}));
    assert_eq!(body(CLAUDE)["thinking"], json!({"type": "adaptive", "display": "summarized"}));
    assert_eq!(
        (body(CLAUDE)["max_tokens"].as_u64(), body("claude-3-haiku")["max_tokens"].as_u64()),
        (Some(32_000), Some(4_096))
    );
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}});
    let with_format = |model| {
        changed(&request(model, vec![user("a")]), |body| {
            let format = OutputFormat::JsonSchema { strict: true, schema, name: "n".into() };
            body.text = Some(TextOptions { verbosity: None, format: Some(format) });
            body.parallel_tool_calls = false;
        })
    };
    let sent = encoded(Wire::Messages, "anthropic", &with_format(CLAUDE));
    assert_eq!(sent["output_config"]["format"]["schema"]["additionalProperties"], false);
    assert_eq!(sent["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
}

#[test]
fn what_cannot_be_expressed_is_named_before_anything_is_sent() {
    let refused = |wire, provider: &str, request: &Arc<RequestBody>| {
        Encoder::new(wire).encode(request, &Capabilities::of(provider, wire)).unwrap_err().feature
    };
    let hosted = changed(&request("m", vec![user("a")]), |body| {
        body.tools.push(Arc::new(json!({"type": "web_search"})));
    });
    assert_eq!(refused(Wire::Chat, "groq", &hosted), "the hosted tool `web_search`");
    assert_eq!(refused(Wire::Messages, "anthropic", &hosted), "the hosted tool `web_search`");
    assert_eq!(refused(Wire::Chat, "deepseek", &request("m", vec![with_image("user")])), "an image");
    let summary = item(json!({"type": "compaction", "encrypted_content": "x"}));
    assert!(refused(Wire::Chat, "groq", &request("m", vec![summary])).contains("summary"));
}

/// The stream of `streams/WIRE/NAME.sse`, answered to the given request, as new history.
fn answered(
    wire: Wire,
    encoder: &mut Encoder,
    able: &Capabilities,
    request: &Arc<RequestBody>,
    stream: &str,
) -> Vec<Arc<ResponseItem>> {
    let decoder = encoder.encode(request, able).unwrap().decoder;
    let path = format!("{}/tests/it/streams/{}/{stream}.sse", env!("CARGO_MANIFEST_DIR"), wire.name());
    let text = std::fs::read_to_string(path).unwrap();
    let data = Vec::from_iter(text.lines().filter_map(|line| line.strip_prefix("data: ")));
    let done = decode(decoder, data).into_iter().filter_map(|event| match event {
        StreamEvent::ItemDone(item) => Some(Arc::from(item)),
        _ => None,
    });
    done.collect()
}

#[test]
fn thinking_goes_back_unchanged_at_its_place_until_what_came_before_it_changes() {
    let able = Capabilities::of("anthropic", Wire::Messages);
    let mut encoder = Encoder::new(Wire::Messages);
    let first = request(CLAUDE, vec![user("a")]);
    let mut input = first.input.clone();
    input.extend(answered(Wire::Messages, &mut encoder, &able, &first, "thinking_and_calls"));
    input.extend(["toolu_1", "toolu_2"].map(|id| output(id, "x")));
    input.push(item(json!({"type": "custom_tool_call_output", "call_id": "toolu_3", "output": "ok"})));
    let thoughts = |request: &Arc<RequestBody>, provider: &str| {
        let body = encoded(Wire::Messages, provider, request);
        assert_eq!(messages_problems(&body), Vec::<String>::new());
        let kinds = body["messages"][1]["content"].as_array().unwrap().iter();
        kinds.map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let whole = ["thinking", "redacted_thinking", "tool_use", "tool_use", "tool_use"];
    let second = request(CLAUDE, input);
    assert_eq!(thoughts(&second, "anthropic"), whole);
    let body = encoded(Wire::Messages, "anthropic", &second);
    assert_eq!(
        body["messages"][1]["content"][0],
        json!({"type": "thinking", "thinking": "I should look.", "signature": "EqQB"})
    );
    let stripped = &whole[2..];
    assert_eq!(thoughts(&second, "bedrock"), stripped, "another provider");
    assert_eq!(
        thoughts(&changed(&second, |body| body.model = "claude-opus-4-7".into()), "anthropic"),
        stripped
    );
    assert_eq!(thoughts(&changed(&second, |body| body.instructions.push('!')), "anthropic"), stripped);
    assert_eq!(thoughts(&changed(&second, |body| drop(body.tools.pop())), "anthropic"), stripped);
    assert_eq!(thoughts(&changed(&second, |body| body.input[0] = user("b")), "anthropic"), stripped);
}

#[test]
fn reasoning_goes_back_to_chat_providers_that_want_it() {
    let next = |provider: &str, stream: &str| {
        let able = Capabilities::of(provider, Wire::Chat);
        let first = request("m", vec![user("a")]);
        let mut input = first.input.clone();
        let items = answered(Wire::Chat, &mut Encoder::new(Wire::Chat), &able, &first, stream);
        let calls = items.iter().filter_map(|item| match &**item {
            ResponseItem::FunctionCall { call_id, .. } => Some(output(call_id, "x")),
            _ => None,
        });
        let outputs = Vec::from_iter(calls);
        input.extend(items);
        input.extend(outputs);
        input.push(user("b"));
        let body = encoded(Wire::Chat, provider, &request("m", input));
        assert_eq!(chat_problems(&without_extra(&body)), Vec::<String>::new(), "{body}");
        body["messages"][2].clone()
    };
    let gemini = next("gemini", "gemini_index_zero_and_signature");
    assert_eq!(gemini["tool_calls"][0]["extra_content"], json!({"google": {"thought_signature": "c2ln"}}));
    assert_eq!(gemini["tool_calls"][1].get("extra_content"), None);
    let mistral = next("mistral", "mistral_thinking_chunks");
    assert_eq!(mistral["content"][0]["type"], "thinking");
    assert_eq!(mistral["content"][1], json!({"type": "text", "text": "Done."}));
    assert_eq!(mistral["tool_calls"][0]["id"], "D681PevKs");
    let openrouter = next("openrouter", "openrouter_details_and_comments");
    assert_eq!(openrouter["reasoning_details"].as_array().map(Vec::len), Some(1));
    // Not without calls; with calls even when empty.
    assert_eq!(next("deepseek", "deepseek_reasoning_content").get("reasoning_content"), None);
    assert_eq!(next("deepseek", "repeated_call_in_last_chunk")["reasoning_content"], "");
    assert_eq!(next("vllm", "vllm_name_after_arguments").get("reasoning_content"), None);
}

fn without_extra(body: &Value) -> Value {
    let mut body = body.clone();
    for message in body["messages"].as_array_mut().unwrap() {
        for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
            call.as_object_mut().unwrap().remove("extra_content");
        }
    }
    body
}

#[test]
fn a_thread_that_changes_provider_keeps_its_text_and_calls() {
    let responses = Capabilities::of("openai", Wire::Responses);
    let claude = Capabilities::of("anthropic", Wire::Messages);
    let reasoning = item(
        json!({"type": "reasoning", "id": "rs", "summary": [], "content": null, "encrypted_content": "gAAA"}),
    );
    let mut input =
        vec![user("one"), reasoning, call("call|1", "{}"), output("call|1", "x"), message("assistant", "r")];
    input.push(user("two"));
    let second = request(CLAUDE, input.clone());
    let body = encoded(Wire::Messages, "anthropic", &second);
    assert_eq!(messages_problems(&body), Vec::<String>::new());
    assert!(!body.to_string().contains("gAAA"), "reasoning of another provider is left out");
    input.extend(answered(
        Wire::Messages,
        &mut Encoder::new(Wire::Messages),
        &claude,
        &second,
        "thinking_and_calls",
    ));
    input.extend(["toolu_1", "toolu_2"].map(|id| output(id, "y")));
    input.push(item(json!({"type": "custom_tool_call_output", "call_id": "toolu_3", "output": "ok"})));
    input.push(user("three"));
    let body = encoded(Wire::Chat, "mistral", &request("m", input.clone()));
    assert!(!body.to_string().contains("I should look"), "reasoning of another wire is left out");
    let ids =
        body["messages"].as_array().unwrap().iter().filter_map(|message| message["tool_call_id"].as_str());
    assert!(ids.into_iter().all(|id| id.len() == 9), "{body}");
    let back = Encoder::new(Wire::Responses)
        .encode(&request("gpt", input.clone()), &responses)
        .unwrap()
        .body
        .concat();
    let back: Value = serde_json::from_slice(&back).unwrap();
    let kinds = back["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap());
    assert_eq!(kinds.clone().filter(|kind| *kind == "reasoning").count(), 1, "only its own");
    assert_eq!(kinds.count(), input.len() - 2);
}

#[test]
fn cache_marks_roll_and_never_exceed_four() {
    let able = Capabilities::of("anthropic", Wire::Messages);
    let mut encoder = Encoder::new(Wire::Messages);
    let mut input = vec![user("start")];
    let mut before = String::new();
    for turn in 0..30 {
        let calls = if turn % 7 == 3 { 40 } else { 1 };
        for n in 0..calls {
            input.push(call(&format!("c{turn}_{n}"), "{}"));
        }
        for n in 0..calls {
            input.push(output(&format!("c{turn}_{n}"), "x"));
        }
        let body = encoder.encode(&request(CLAUDE, input.clone()), &able).unwrap().body.concat();
        let body = String::from_utf8(body).unwrap();
        let tree: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(messages_problems(&tree), Vec::<String>::new(), "turn {turn}");
        let blocks = tree["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap());
        let marked =
            blocks.enumerate().filter(|(_, block)| !block["cache_control"].is_null()).map(|(at, _)| at);
        let marked = Vec::from_iter(marked);
        assert!(marked.windows(2).all(|pair| pair[1] - pair[0] <= 15), "turn {turn}: {marked:?}");
        assert!(turn == 0 || marked.len() == 3, "turn {turn}: {marked:?}");
        // But for the marks, the next request begins with the bytes of this one.
        let plain = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
        assert!(plain.starts_with(before.trim_end_matches("]}")), "turn {turn}");
        before = plain;
    }
}

#[test]
fn a_turn_of_calls_without_thinking_is_answered_without_it() {
    let input = vec![user("a"), call("c", "{}"), output("c", "x")];
    let body = |input: Vec<Arc<ResponseItem>>| {
        encoded(Wire::Messages, "anthropic", &request("claude-opus-4-5", input))
    };
    assert_eq!(body(input.clone())["thinking"], Value::Null);
    let next = [input, vec![user("b")]].concat();
    assert_eq!(body(next)["thinking"]["type"], "enabled");
}

/// A chat stream and a Messages stream that say this text.
fn said(wire: Wire, text: &str) -> Vec<String> {
    match wire {
        Wire::Messages => vec![
            json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            json!({"type": "message_stop"}),
        ],
        _ => vec![
            json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}),
            json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}),
        ],
    }
    .iter()
    .map(Value::to_string)
    .collect()
}

#[test]
fn an_answer_is_held_to_its_schema_where_the_wire_does_not() {
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}});
    for wire in [Wire::Chat, Wire::Messages] {
        let model = if wire == Wire::Messages { CLAUDE } else { "m" };
        let asked = changed(&request(model, vec![user("a")]), |body| {
            let format = OutputFormat::JsonSchema { strict: true, schema: schema.clone(), name: "n".into() };
            body.text = Some(TextOptions { verbosity: None, format: Some(format) });
        });
        let end = |text: &str| {
            let decoder = Encoder::new(wire).encode(&asked, &Capabilities::of("p", wire)).unwrap().decoder;
            let events = decode(decoder, said(wire, text).iter().map(String::as_str));
            let Some(StreamEvent::Failed(failure)) = events.last() else { return "completed".to_owned() };
            assert_eq!(failure.spent.as_ref().map(|spent| spent.output_tokens), Some(3), "it was paid for");
            assert!(!failure.is_retryable());
            failure.message.clone()
        };
        assert_eq!(end(r#"{"n":9}"#), "completed");
        assert_eq!(
            end(r#"{"n":10}"#),
            "the answer does not match the schema that it was asked for: at /n: 10 is not at most 9"
        );
        assert_eq!(
            end("ten"),
            "the answer does not match the schema that it was asked for: it is no JSON: expected ident at line 1 column 2"
        );
    }
}
