//! The transport over Chat and Messages, against providers that check every request as vendors do.

use std::time::Duration;

use model::protocol::{CodexErrorInfo, ResponseItem};
use model::{FailureClass, ModelFailure, PreparedRequest, Reasoning, StreamEvent};
use oarlock_model_http::{Provider, Wire};
use serde_json::{Value, json};

use crate::support::*;
use crate::vendor::{chat_problems, messages_problems};

fn provider(server: &Server, id: &str, wire: Wire) -> Provider {
    let mut provider = Provider::new(id, server.base_url());
    provider.wire = wire;
    provider.api_key = Some("sk-planted-key".into());
    provider.key_variable = Some("VENDOR_KEY".to_owned());
    provider.request_max_retries = 2;
    // Configured, so that the server is not asked for it.
    provider.max_output_tokens = (wire == Wire::Messages).then_some(32_000);
    provider
}

/// The events of one request, and the body the provider got, which it would have taken.
async fn exchange(
    wire: Wire,
    id: &str,
    answers: Vec<Answer>,
    request: PreparedRequest,
) -> (Vec<Result<StreamEvent, ModelFailure>>, Vec<Recorded>) {
    let server = Server::start(answers).await;
    let found = events(&transport(&provider(&server, id, wire)), request).await;
    // A model that is not there leads to a look at the list of those that are.
    let asks = |recorded: &Recorded| recorded.head.starts_with("POST ");
    for recorded in server.requests().into_iter().filter(asks) {
        let body: Value = serde_json::from_slice(&recorded.body).unwrap();
        let problems = if wire == Wire::Chat { chat_problems(&body) } else { messages_problems(&body) };
        assert_eq!(problems, Vec::<String>::new(), "{body}");
        let path = format!("POST /v1{} HTTP/1.1", wire.path());
        assert!(recorded.head.starts_with(&path), "{}", recorded.head);
    }
    (found, server.requests())
}

fn tools() -> Vec<Value> {
    vec![json!({"type": "function", "name": "read", "description": "Reads.",
                "parameters": {"type": "object", "properties": {}}})]
}

fn chat_chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({"id": "r1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn chat_call(id: &str) -> Value {
    chat_chunk(
        json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "read", "arguments": "{}"}}]}),
        None,
    )
}

/// A call, complete, and the end of the answer.
fn messages_call(id: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0,
               "content_block": {"type": "tool_use", "id": id, "name": "read", "input": {}}}),
        json!({"type": "content_block_stop", "index": 0}),
    ]
}

fn calls(events: &[Result<StreamEvent, ModelFailure>]) -> Vec<String> {
    let id = |event: &Result<StreamEvent, ModelFailure>| match event {
        Ok(StreamEvent::ItemDone(item)) => match &**item {
            ResponseItem::FunctionCall { call_id, .. } => Some(call_id.clone()),
            _ => None,
        },
        _ => None,
    };
    events.iter().filter_map(id).collect()
}

#[tokio::test]
async fn a_chat_turn_from_beginning_to_end() {
    let usage = json!({"id": "r1", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}});
    let answer = Answer::stream(&[
        chat_chunk(json!({"content": "hi"}), None),
        chat_chunk(json!({}), Some("stop")),
        usage,
    ]);
    let (found, requests) =
        exchange(Wire::Chat, "groq", vec![answer], prepared(vec![user_message("a")], tools())).await;
    let Some(Ok(StreamEvent::Completed { usage: Some(usage), .. })) = found.last() else {
        panic!("{found:?}")
    };
    assert_eq!(usage.total_tokens, 9);
    assert!(lines(&found).contains(&"delta hi".to_owned()));
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-planted-key"));
    // Our correlation is not for others.
    assert_eq!((requests[0].header("session_id"), requests[0].header("x-codex-turn-metadata")), (None, None));
}

#[tokio::test]
async fn a_messages_turn_from_beginning_to_end() {
    let mut stream = messages_call("toolu_1");
    stream.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
    );
    stream.push(json!({"type": "message_stop"}));
    let request = prepared(vec![user_message("a")], tools());
    let (found, requests) =
        exchange(Wire::Messages, "anthropic", vec![Answer::stream(&stream)], request).await;
    assert_eq!(calls(&found), ["toolu_1"]);
    let Some(Ok(StreamEvent::Completed { usage: Some(usage), .. })) = found.last() else {
        panic!("{found:?}")
    };
    assert_eq!((usage.input_tokens, usage.output_tokens), (3, 9));
    assert_eq!(requests[0].header("x-api-key"), Some("sk-planted-key"));
    assert_eq!(
        (requests[0].header("authorization"), requests[0].header("anthropic-version")),
        (None, Some("2023-06-01"))
    );
}

/// The engine's next request when a stream broke behind a call that ran: the call and its output are in the history.
fn after(call_id: &str) -> PreparedRequest {
    let call = json!({"type": "function_call", "name": "read", "arguments": "{}", "call_id": call_id});
    let output = json!({"type": "function_call_output", "call_id": call_id, "output": "x"});
    prepared(vec![user_message("a"), call, output], tools())
}

#[tokio::test]
async fn a_stream_that_breaks_behind_a_call_never_gives_it_twice() {
    // Messages gives out a call with its block. The next answer may use its id again, and is another call.
    let (found, _) = exchange(
        Wire::Messages,
        "local",
        vec![Answer::stream(&messages_call("call_0"))],
        prepared(vec![user_message("a")], tools()),
    )
    .await;
    assert_eq!(calls(&found), ["call_0"]);
    assert!(found.last().unwrap().as_ref().unwrap_err().is_retryable());
    let (found, requests) =
        exchange(Wire::Messages, "local", vec![Answer::stream(&messages_call("call_0"))], after("call_0"))
            .await;
    assert_eq!(calls(&found), ["call_0_2"]);
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "call_0");
    // Chat gives out calls with the end of the answer alone: one that broke off never ran.
    let broken = Answer::stream(&[chat_call("call_0")]);
    let (found, _) =
        exchange(Wire::Chat, "local", vec![broken], prepared(vec![user_message("a")], tools())).await;
    assert_eq!(calls(&found), Vec::<String>::new());
    assert!(found.last().unwrap().as_ref().unwrap_err().is_retryable());
    let finished = [chat_call("call_0"), chat_chunk(json!({}), Some("tool_calls"))];
    let (found, _) = exchange(Wire::Chat, "local", vec![Answer::stream(&finished)], after("call_0")).await;
    assert_eq!(calls(&found), ["call_0_2"]);
    assert!(
        matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))),
        "finished before it broke: {found:?}"
    );
}

#[tokio::test]
async fn a_finished_answer_counts_although_its_connection_stays_open() {
    let finished = [chat_chunk(json!({"content": "x"}), None), chat_chunk(json!({}), Some("stop"))];
    let server = Server::start(vec![Answer::stream(&finished).then(Then::Hold)]).await;
    let mut provider = provider(&server, "local", Wire::Chat);
    provider.stream_idle_timeout = Duration::from_millis(200);
    let found = events(&transport(&provider), request("hi")).await;
    assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
}

async fn failure(wire: Wire, id: &str, answers: Vec<Answer>) -> (ModelFailure, usize) {
    let (found, requests) = exchange(wire, id, answers, request("hi")).await;
    (found.into_iter().next().unwrap().unwrap_err(), requests.len())
}

/// The message of a failure with the port of the test's server taken out, how clients are told, and the number of requests.
async fn said(wire: Wire, id: &str, answers: Vec<Answer>) -> (String, CodexErrorInfo, usize) {
    let (failure, requests) = failure(wire, id, answers).await;
    let port = failure
        .message
        .split("127.0.0.1:")
        .nth(1)
        .map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    let message = match port {
        Some(port) => failure.message.replace(&port, "PORT"),
        None => failure.message.clone(),
    };
    (message, failure.codex_error_info(), requests)
}

fn vendor_error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

#[tokio::test]
async fn failures_have_one_vocabulary() {
    let check = async |answer: Answer, tries: usize, expected: &str, info: CodexErrorInfo| {
        let found = said(Wire::Messages, "anthropic", vec![answer; tries]).await;
        assert_eq!(found, (expected.to_owned(), info, tries));
    };
    let refused = Answer::status(401, &vendor_error("authentication_error", "invalid sk-planted-key"));
    let info = CodexErrorInfo::Unauthorized;
    check(refused, 1, "the provider refused the key in VENDOR_KEY: invalid ***", info).await;
    let poor = Answer::status(400, &vendor_error("invalid_request_error", "Your credit balance is too low"));
    let info = CodexErrorInfo::UsageLimitExceeded;
    check(poor, 1, "the account has no quota left: Your credit balance is too low", info).await;
    let busy = Answer::status(529, &vendor_error("overloaded_error", "Overloaded"));
    check(busy, 3, "the model is overloaded: Overloaded", CodexErrorInfo::ServerOverloaded).await;
    let long = Answer::status(
        400,
        &vendor_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    );
    let words =
        "the conversation does not fit the model's context window: prompt is too long: 9 tokens > 8 maximum";
    check(long, 1, words, CodexErrorInfo::ContextWindowExceeded).await;
    let limited = Answer::raw(
        "HTTP/1.1 429 Slow\r\nretry-after: 3\r\nrequest-id: req_7\r\ncontent-length: 31\r\nconnection: close\r\n\r\n\
         {\"error\":{\"message\":\"slow it\"}}",
    );
    let (limited, _) = failure(Wire::Chat, "groq", vec![limited]).await;
    assert_eq!((limited.retry_after_ms, limited.is_retryable()), (Some(3_000), true));
    assert_eq!(limited.message, "too many requests: slow it");
    let details = limited.details.unwrap_or_default();
    assert!(details.ends_with("/v1/chat/completions, request id: req_7"), "{details}");
}

#[tokio::test]
async fn a_provider_that_says_how_long_to_wait_is_asked_again_then() {
    for (after, expected) in [
        ("7", (Some(7_000), true)),
        ("86400", (Some(86_400_000), false)),
        ("Sun, 06 Nov 1994 08:50:00 GMT", (Some(23_000), true)),
        ("soon", (None, false)),
    ] {
        let limited = Answer::raw(format!(
            "HTTP/1.1 429 Slow\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: {after}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
        ));
        let server = Server::start(vec![limited]).await;
        let found = events(&transport(&provider(&server, "openai", Wire::Responses)), request("hi")).await;
        let limited = found[0].as_ref().unwrap_err();
        assert_eq!((limited.retry_after_ms, limited.is_retryable()), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_page_that_answers_says_to_check_the_address() {
    let page =
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let url = format!("http://127.0.0.1:PORT/v1{}", wire.path());
        let expected = format!("{url} answered with a page instead of an API; check base_url");
        let server = Server::start(vec![Answer::raw(page)]).await;
        let found = events(&transport(&provider(&server, "local", wire)), request("hi")).await;
        let failure = found[0].as_ref().unwrap_err();
        let port = server.address.port().to_string();
        assert_eq!((failure.message.replace(&port, "PORT"), failure.is_retryable()), (expected, false));
    }
}

#[tokio::test]
async fn a_model_that_is_not_there_names_those_that_are_near() {
    let missing = Answer::status(404, r#"{"error":{"message":"model 'test-model' not found"}}"#);
    let list = |names: &[&str]| {
        let rows = Vec::from_iter(names.iter().map(|name| json!({ "id": name })));
        Answer::status(200, &json!({ "data": rows }).to_string())
    };
    let words = "the model `test-model` is not there: model 'test-model' not found".to_owned();
    let near = said(Wire::Chat, "ollama", vec![missing.clone(), list(&["qwen3", "test-model-2"])]).await;
    assert_eq!(near, (format!("{words}; did you mean test-model-2?"), CodexErrorInfo::ModelNotFound, 2));
    let none = said(Wire::Chat, "ollama", vec![missing.clone(), list(&["qwen3", "phi"])]).await;
    assert_eq!(none, (format!("{words}; there are qwen3, phi"), CodexErrorInfo::ModelNotFound, 2));
    let silent =
        said(Wire::Chat, "ollama", vec![missing, Answer::status(500, ""), Answer::status(500, "")]).await;
    assert_eq!((silent.0, silent.1), (words, CodexErrorInfo::ModelNotFound));
}

#[tokio::test]
async fn the_longest_answer_is_what_the_models_own_page_says() {
    let ok = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let asked = async |page: Answer, configured: Option<u32>, turns: usize| {
        let first = if configured.is_none() { vec![page] } else { vec![] };
        let server = Server::start([first, vec![Answer::stream(&ok); turns]].concat()).await;
        let mut provider = provider(&server, "anthropic", Wire::Messages);
        provider.max_output_tokens = configured;
        let transport = transport(&provider);
        for _ in 0..turns {
            let found = events(&transport, request("hi")).await;
            assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
        }
        let requests = server.requests();
        let asks = requests.iter().filter(|request| request.head.starts_with("GET "));
        let asks =
            Vec::from_iter(asks.map(|request| request.head.lines().next().unwrap_or_default().to_owned()));
        let body: Value = serde_json::from_slice(&requests.last().unwrap().body).unwrap();
        (body["max_tokens"].as_u64(), asks)
    };
    let asks = vec!["GET /v1/models/test-model HTTP/1.1".to_owned()];
    let page = Answer::status(200, r#"{"id":"test-model","max_tokens":64000}"#);
    // Once for both turns.
    assert_eq!(asked(page.clone(), None, 2).await, (Some(64_000), asks.clone()));
    assert_eq!(asked(Answer::status(404, "{}"), None, 2).await, (Some(32_000), asks.clone()));
    assert_eq!(asked(Answer::status(200, r#"{"max_tokens":0}"#), None, 1).await, (Some(32_000), asks));
    assert_eq!(asked(page, Some(9_000), 1).await, (Some(9_000), vec![]));
}

#[tokio::test]
async fn a_model_that_refuses_to_be_asked_to_think_is_asked_once_more_without() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "thinking: adaptive is not supported on this model"}});
    let ok = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let request =
        with_body(request("hi"), |body| body.reasoning = Some(Reasoning { effort: None, summary: None }));
    let answers = vec![Answer::status(400, &refusal.to_string()), Answer::stream(&ok)];
    let (found, requests) = exchange(Wire::Messages, "local", answers, request).await;
    assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
    let thinking =
        |at: usize| serde_json::from_slice::<Value>(&requests[at].body).unwrap()["thinking"].clone();
    assert_eq!((thinking(0)["type"].as_str(), thinking(1)), (Some("adaptive"), Value::Null));
}

#[tokio::test]
async fn what_a_wire_cannot_carry_is_not_sent() {
    let server = Server::start(vec![]).await;
    let transport = transport(&provider(&server, "groq", Wire::Chat));
    let found =
        events(&transport, prepared(vec![user_message("a")], vec![json!({"type": "web_search"})])).await;
    let failure = found[0].as_ref().unwrap_err();
    assert_eq!((failure.class, server.requests().len()), (FailureClass::InvalidRequest, 0));
    assert!(failure.message.contains("the hosted tool `web_search`") && !failure.is_retryable(), "{failure}");
}

#[tokio::test]
async fn a_local_server_that_is_not_there_says_what_to_start() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut provider = Provider::new("ollama", format!("http://{address}"));
    (provider.wire, provider.request_max_retries) = (Wire::Chat, 0);
    let found = events(&transport(&provider), request("hi")).await;
    let failure = found[0].as_ref().unwrap_err();
    let expected = format!(
        "cannot reach the model provider ollama: nothing answers on {address} (connection refused); is `ollama serve` \
         running?"
    );
    assert_eq!(failure.message, expected);
}
