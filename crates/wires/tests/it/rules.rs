//! The rules of the wires that are easy to lose: each has a test of its own.

use std::sync::Arc;

use model::protocol::{CodexErrorInfo, ResponseItem, TokenUsageBreakdown};
use model::{FailureClass, OutputFormat, RequestBody, StreamEvent, TextOptions};
use oarlock_wires::{Capabilities, Encoder, Wire};
use serde_json::{Value, json};

use crate::support::*;
use crate::vendor::messages_problems;

const OLD_CLAUDE: &str = "claude-3-5-haiku-latest";

fn with_schema(model: &str, schema: Value) -> Arc<RequestBody> {
    let mut body = RequestBody::clone(&request(model, vec![user("a")]));
    let format = OutputFormat::JsonSchema { strict: true, schema, name: "n".into() };
    body.text = Some(TextOptions { verbosity: None, format: Some(format) });
    Arc::new(body)
}

fn usage_of(events: &[StreamEvent]) -> TokenUsageBreakdown {
    match events.last() {
        Some(StreamEvent::Completed { usage: Some(usage), .. }) => usage.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_older_model_gives_a_structured_answer_as_a_call_that_becomes_text() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "row": {"$ref": "#/$defs/Row"}},
        "$defs": {"Row": {"type": "object", "properties": {"like": {"$ref": "#/properties/n"}}}}});
    let request = with_schema(OLD_CLAUDE, schema);
    let able = Capabilities::of("anthropic", Wire::Messages);
    let sent = Encoder::new(Wire::Messages).encode(&request, &able).unwrap();
    let body: Value = serde_json::from_slice(&sent.body.concat()).unwrap();
    assert_eq!(messages_problems(&body), Vec::<String>::new(), "{body}");
    assert_eq!(body["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
    assert_eq!((&body["thinking"], &body["output_config"]), (&Value::Null, &Value::Null));
    let offered = body["tools"].as_array().unwrap().last().unwrap();
    assert_eq!(offered["input_schema"]["properties"]["answer"]["properties"]["n"]["type"], "integer");
    let name = offered["name"].as_str().unwrap();
    let start = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}});
    let input = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": "{\"answer\":{\"n\":7}}"}});
    let stream = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        start,
        input,
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| event.to_string());
    let events = decode(sent.decoder, stream.iter().map(String::as_str));
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::TextDelta { delta } => Some(delta.as_str()),
        StreamEvent::ItemDone(item) => {
            assert!(matches!(&**item, ResponseItem::Message { .. }), "{item:?}");
            None
        }
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), r#"{"n":7}"#);
}

#[test]
fn a_schema_that_refers_to_itself_is_refused_before_anything_is_sent() {
    let request =
        with_schema("claude-opus-4-6", json!({"type": "object", "properties": {"next": {"$ref": "#"}}}));
    let able = Capabilities::of("anthropic", Wire::Messages);
    let refused = Encoder::new(Wire::Messages).encode(&request, &able).unwrap_err();
    assert!(refused.to_string().contains("a JSON schema that refers to itself"), "{refused}");
}

#[test]
fn usage_is_estimated_and_marked_where_a_server_gives_none() {
    let chat = [
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "12345678"}}]}).to_string(),
        json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string(),
    ];
    let usage = usage_of(&decode(decoder(Wire::Chat, "local"), chat.iter().map(String::as_str)));
    assert!(usage.is_estimated && usage.output_tokens == 2 && usage.input_tokens > 20, "{usage:?}");
    assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    let messages = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "1234"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| event.to_string());
    let usage = usage_of(&decode(decoder(Wire::Messages, "local"), messages.iter().map(String::as_str)));
    assert!(usage.is_estimated && usage.output_tokens == 1, "{usage:?}");
}

#[test]
fn tokens_written_into_the_cache_are_input_and_counted_apart() {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 500, "output_tokens": 1});
    let messages = [
        json!({"type": "message_start", "message": {"id": "m", "usage": usage}}),
        // Cumulative: set, never added.
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| event.to_string());
    let usage = usage_of(&decode(decoder(Wire::Messages, "anthropic"), messages.iter().map(String::as_str)));
    assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (543, 40, 9));
    assert_eq!((usage.cache_write_input_tokens, usage.is_estimated), (Some(500), false));
}

#[test]
fn outputs_of_calls_that_came_to_nothing_are_marked() {
    let input = vec![
        user("a"),
        call("c1", "{}"),
        call("c2", "{}"),
        call("c3", "{}"),
        output("c1", "aborted by user after 2.0s"),
        output("c2", "Exit code: 1"),
    ];
    // The third has no output at all; what a command answers is a result, whatever its exit code.
    assert_eq!(error_marks(input), [true, false, true]);
    for (text, is_error) in [
        ("exec command rejected by user", true),
        ("exec_command failed for `sh -c x`: rejected by user", true),
        ("`rm -rf /` was rejected: a rule forbids it", true),
        ("patch rejected by user", true),
        ("apply_patch verification failed: no such file", true),
        ("unsupported custom tool call: x", true),
        ("This was not carried out: the automatic reviewer refused it", true),
        (r#"the tool failed: [{"type":"text","text":"no such row"}]"#, true),
        ("MCP server `db`: timed out after 60 s", true),
        ("the user did not allow this call; do not try it again", true),
        ("read_mcp_resource failed: no such resource", true),
        ("approval policy is Never; reject command — you cannot ask for escalated permissions", true),
        ("`x` is a variable", false),
        ("the patch rejected by user", false),
    ] {
        let input = vec![user("a"), call("c1", "{}"), output("c1", text)];
        assert_eq!(error_marks(input), [is_error], "{text}");
    }
}

/// `is_error` of each result.
fn error_marks(input: Vec<Arc<ResponseItem>>) -> Vec<bool> {
    let sent = encoded(Wire::Messages, "anthropic", &request("claude-opus-4-6", input));
    let results = sent["messages"][2]["content"].as_array().unwrap();
    results.iter().map(|result| result["is_error"].as_bool().unwrap_or(false)).collect()
}

#[test]
fn reasoning_of_another_wire_never_goes_to_a_responses_provider() {
    let chat = [
        json!({"id": "r", "choices": [{"index": 0, "delta": {"reasoning_content": "CHATTHOUGHT"}}]}),
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "said"}, "finish_reason": "stop"}]}),
    ];
    // Not every server of this wire signs what its model thinks.
    let messages = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "UNSIGNEDTHOUGHT"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "said"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    for (wire, stream) in [(Wire::Chat, &chat[..]), (Wire::Messages, &messages[..])] {
        let stream = Vec::from_iter(stream.iter().map(Value::to_string));
        let events = decode(decoder(wire, "vllm"), stream.iter().map(String::as_str));
        let items = events.into_iter().filter_map(|event| match event {
            StreamEvent::ItemDone(item) => Some(Arc::from(item)),
            _ => None,
        });
        let input = Vec::from_iter([user("a")].into_iter().chain(items).chain([user("b")]));
        for to in [Wire::Responses, Wire::Chat, Wire::Messages] {
            let model = if wire == Wire::Messages { "claude-opus-4-6" } else { "m" };
            let sent = encoded(to, "vllm", &request(model, input.clone())).to_string();
            assert!(!sent.contains("THOUGHT") && !sent.contains("ox1."), "{wire:?} to {to:?}: {sent}");
            assert!(sent.contains("said"), "{wire:?} to {to:?}: {sent}");
        }
    }
}

#[test]
fn what_an_answer_cost_that_was_cut_off_is_known() {
    for (reason, is_retryable) in [("length", false), ("content_filter", false), ("error", true)] {
        let stream = [
            json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": reason}]}),
            json!({"id": "r", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
        ]
        .map(|event| event.to_string());
        let events = decode(decoder(Wire::Chat, "groq"), stream.iter().map(String::as_str));
        let Some(StreamEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
        assert_eq!(failure.is_retryable(), is_retryable, "{reason}");
        let spent = failure.spent.as_ref().expect("it was paid for");
        assert_eq!((spent.input_tokens, spent.output_tokens), (7, 3), "{reason}");
    }
}

/// Each time it is asked again, it is paid for to the limit once more.
#[test]
fn an_answer_that_came_to_its_limit_is_not_asked_for_again_and_names_the_setting() {
    let messages = [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ];
    let chat = [
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "length"}]}),
        json!({"id": "r", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}),
    ];
    for (wire, stream, limit, words) in [
        (
            Wire::Messages,
            &messages[..],
            None,
            "the answer was cut at 32000 tokens; set model_providers.mine.max_output_tokens to more",
        ),
        (Wire::Messages, &messages[..], Some(900), "the answer was cut at 900 tokens"),
        (Wire::Chat, &chat[..], Some(900), "the answer was cut at 900 tokens"),
        (
            Wire::Chat,
            &chat[..],
            None,
            "the server cut the answer after 3 tokens; set model_providers.mine.max_output_tokens, or",
        ),
    ] {
        let able = Capabilities { max_output_tokens: limit, ..Capabilities::of("mine", wire) };
        let sent = Encoder::new(wire).encode(&request("m", vec![user("a")]), &able).unwrap();
        let stream = Vec::from_iter(stream.iter().map(Value::to_string));
        let events = decode(sent.decoder, stream.iter().map(String::as_str));
        let Some(StreamEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
        assert!(failure.message.starts_with(words), "{failure}");
        assert_eq!((failure.is_retryable(), failure.codex_error_info()), (false, CodexErrorInfo::Other));
        assert!(failure.spent.is_some(), "it was paid for");
    }
}

#[test]
fn an_answer_without_a_finish_reason_counts_when_it_is_whole() {
    let text = json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "said"}}]}).to_string();
    let call = |arguments: &str| {
        json!({"id": "r", "choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": 0, "id": "c", "function": {"name": "read", "arguments": arguments}}]}}]})
        .to_string()
    };
    let thought = json!({"id": "r", "choices": [{"index": 0, "delta": {"reasoning": "hm"}}]}).to_string();
    let completes = |chunk: &str, end: &[&str]| {
        let events = decode(decoder(Wire::Chat, "proxy"), [chunk].into_iter().chain(end.iter().copied()));
        let items = events.iter().filter(|event| matches!(event, StreamEvent::ItemDone(_))).count();
        let is_completed = matches!(events.last(), Some(StreamEvent::Completed { .. }));
        assert!(!is_completed || items == 1, "{events:?}");
        is_completed
    };
    assert!(completes(&text, &["[DONE]"]) && completes(&call("{}"), &["[DONE]"]));
    assert!(!completes(&call(r#"{"path":"#), &["[DONE]"]), "a call that was cut off must not run");
    assert!(!completes(&thought, &["[DONE]"]), "nothing was answered");
    assert!(!completes(&text, &[]), "the connection ended");
}

#[test]
fn efforts_and_limits_go_by_the_names_of_each_wire() {
    use model::protocol::ReasoningEffort;
    let sent = |wire, provider: &str, effort| {
        let model = if wire == Wire::Messages { "claude-opus-4-6" } else { "m" };
        let mut body = RequestBody::clone(&request(model, vec![user("a")]));
        body.reasoning = Some(model::Reasoning { effort: Some(effort), summary: None });
        let able = Capabilities { max_output_tokens: Some(9_000), ..Capabilities::of(provider, wire) };
        let sent = Encoder::new(wire).encode(&Arc::new(body), &able).unwrap();
        serde_json::from_slice::<Value>(&sent.body.concat()).unwrap()
    };
    for (effort, of_chat, of_messages) in [
        (ReasoningEffort::Minimal, Some("low"), "low"),
        (ReasoningEffort::Low, Some("low"), "low"),
        (ReasoningEffort::Medium, Some("medium"), "medium"),
        (ReasoningEffort::High, Some("high"), "high"),
        (ReasoningEffort::Xhigh, Some("high"), "high"),
        (ReasoningEffort::Max, Some("high"), "max"),
        (ReasoningEffort::None, None, "low"),
    ] {
        let chat = sent(Wire::Chat, "groq", effort);
        assert_eq!(chat.get("reasoning_effort").and_then(Value::as_str), of_chat, "{effort:?}");
        // Refused there beside tools.
        assert_eq!(sent(Wire::Chat, "openai", effort).get("reasoning_effort"), None);
        assert_eq!(sent(Wire::Messages, "anthropic", effort)["output_config"]["effort"], of_messages);
    }
    let limit = |provider| {
        let body = sent(Wire::Chat, provider, ReasoningEffort::Low);
        ["max_tokens", "max_completion_tokens"].map(|name| body[name].as_u64())
    };
    assert_eq!(limit("groq"), [Some(9_000), None]);
    assert_eq!((limit("openai"), limit("azure")), ([None, Some(9_000)], [None, Some(9_000)]));
}

#[test]
fn deltas_of_one_detail_go_back_as_one() {
    let detail = |detail: Value| {
        json!({"id": "r", "choices": [{"index": 0, "delta": {"reasoning_details": [detail]}}]}).to_string()
    };
    let text = |index: u32, text: &str, signature: Value| {
        detail(json!({"type": "reasoning.text", "index": index, "text": text, "signature": signature}))
    };
    let stream = [
        text(0, "let ", Value::Null),
        text(0, "me see", Value::Null),
        text(0, "", json!("sig")),
        detail(json!({"type": "reasoning.encrypted", "index": 1, "data": "AA"})),
        detail(json!({"type": "reasoning.encrypted", "index": 1, "data": "BB"})),
        text(2, "more", Value::Null),
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": "said"}, "finish_reason": "stop"}]})
            .to_string(),
    ];
    let events = decode(decoder(Wire::Chat, "openrouter"), stream.iter().map(String::as_str));
    let items = events.into_iter().filter_map(|event| match event {
        StreamEvent::ItemDone(item) => Some(Arc::from(item)),
        _ => None,
    });
    let input = Vec::from_iter([user("a")].into_iter().chain(items).chain([user("b")]));
    let sent = encoded(Wire::Chat, "openrouter", &request("m", input));
    assert_eq!(
        sent["messages"][2]["reasoning_details"],
        json!([
            {"type": "reasoning.text", "index": 0, "text": "let me see", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "AA"},
            {"type": "reasoning.encrypted", "index": 1, "data": "BB"},
            {"type": "reasoning.text", "index": 2, "text": "more", "signature": null},
        ])
    );
}

#[test]
fn calls_of_another_model_get_a_stand_in_for_the_signature_gemini_wants() {
    let input = vec![user("a"), call("c1", "{}"), call("c2", "{}"), output("c1", "x"), output("c2", "y")];
    let calls = |provider: &str| {
        let sent = encoded(Wire::Chat, provider, &request("m", input.clone()));
        let answer =
            sent["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
        answer.unwrap()["tool_calls"].clone()
    };
    let signature = "/extra_content/google/thought_signature";
    assert_eq!(calls("gemini")[0].pointer(signature), Some(&json!("skip_thought_signature_validator")));
    // Only the first of parallel calls has one, and only there.
    assert_eq!((calls("gemini")[1].pointer(signature), calls("groq")[0].pointer(signature)), (None, None));
}

#[test]
fn calls_written_into_the_text_are_read_only_where_that_is_switched_on() {
    let text = r#"<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>"#;
    let stream = [
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]}).to_string(),
        json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string(),
    ];
    let calls = |text_tool_calls: bool| {
        let able = Capabilities { text_tool_calls, ..Capabilities::of("local", Wire::Chat) };
        let sent = Encoder::new(Wire::Chat).encode(&request("m", vec![user("a")]), &able).unwrap();
        let events = decode(sent.decoder, stream.iter().map(String::as_str));
        let arguments = events.into_iter().filter_map(|event| match event {
            StreamEvent::ItemDone(item) => match *item {
                ResponseItem::FunctionCall { arguments, .. } => Some(arguments),
                _ => None,
            },
            _ => None,
        });
        arguments.collect::<Vec<_>>()
    };
    assert_eq!(calls(true), [r#"{"path":"a"}"#]);
    assert_eq!(calls(false), Vec::<String>::new());
}

#[test]
fn a_window_that_is_full_asks_for_a_shorter_history() {
    let stream = [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| event.to_string());
    let events = decode(decoder(Wire::Messages, "anthropic"), stream.iter().map(String::as_str));
    let Some(StreamEvent::Failed(failure)) = events.last() else { panic!("{events:?}") };
    assert_eq!(failure.class, FailureClass::ContextWindow);
    assert_eq!(failure.codex_error_info(), CodexErrorInfo::ContextWindowExceeded);
    assert!(failure.is_retryable() && failure.spent.is_some());
}

#[test]
fn usage_that_comes_more_than_once_is_counted_once() {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14});
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage})
            .to_string()
    };
    // Some servers send the counts with every chunk, and once more at the end.
    let chat = [
        chunk(json!({"content": "a"}), Value::Null),
        chunk(json!({"content": "b"}), json!("stop")),
        json!({"id": "r", "choices": [], "usage": usage}).to_string(),
    ];
    let used = usage_of(&decode(decoder(Wire::Chat, "groq"), chat.iter().map(String::as_str)));
    assert_eq!((used.input_tokens, used.output_tokens, used.total_tokens), (10, 4, 14));
    // The counts of `message_delta` are of the whole answer, input and what was read from the cache included.
    let messages = [
        json!({"type": "message_start", "message": {"id": "m", "usage":
            {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage":
            {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 3}}),
        json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4}}),
        json!({"type": "message_stop"}),
    ]
    .map(|event| event.to_string());
    let used = usage_of(&decode(decoder(Wire::Messages, "anthropic"), messages.iter().map(String::as_str)));
    assert_eq!((used.input_tokens, used.cached_input_tokens), (10, 4));
    assert_eq!((used.output_tokens, used.total_tokens), (4, 14));
}

#[test]
fn no_cache_mark_is_on_empty_text() {
    let blanks = ["", " ", "\n"].map(user);
    let input = [vec![user("a")], blanks.to_vec(), vec![call("c", "{}"), output("c", "")], blanks.to_vec()];
    let body = encoded(Wire::Messages, "anthropic", &request("claude-opus-4-6", input.concat()));
    let messages = body["messages"].as_array().expect("messages").iter();
    let blocks = Vec::from_iter(messages.flat_map(|message| message["content"].as_array().expect("blocks")));
    assert!(blocks.iter().any(|block| !block["cache_control"].is_null()), "{body}");
    let is_blank = |text: &Value| text.as_str().is_some_and(|text| text.trim().is_empty());
    for block in blocks {
        assert!(!is_blank(&block["text"]) && !is_blank(&block["content"]), "{block}");
    }
}

#[test]
fn a_response_without_end_is_ended() {
    let text = "x".repeat(4 << 20);
    let chat = json!({"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]}).to_string();
    let messages =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let begin =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    for (wire, begin, piece) in
        [(Wire::Chat, String::new(), chat), (Wire::Messages, begin.to_string(), messages.to_string())]
    {
        let mut decoder = decoder(wire, "local");
        let mut last = Vec::new();
        decoder.push(&begin, &mut last);
        // 64 MB are kept at the most.
        for _ in 0..20 {
            last.clear();
            decoder.push(&piece, &mut last);
            if last.iter().any(StreamEvent::is_terminal) {
                break;
            }
        }
        let [StreamEvent::Failed(failure)] = &last[..] else { panic!("{wire:?} goes on") };
        assert!(failure.message.ends_with("the response is larger than 67108864 bytes"), "{failure}");
        last.clear();
        decoder.push(&piece, &mut last);
        decoder.close(None, &mut last);
        assert_eq!(last, [], "nothing follows the end");
    }
}
