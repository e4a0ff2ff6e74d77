//! Requests that a provider takes only without a part of them, and what is read of providers known by name.

use std::path::Path;

use bytes::Bytes;
use model::protocol::{CodexErrorInfo, ReasoningEffort};
use model::{FailureClass, PreparedRequest, Reasoning, StreamEvent};
use oarlock_model_http::{Capabilities, Provider, Wire};
use serde_json::{Value, json};

use crate::support::*;

fn refused(message: &str) -> Answer {
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Answer::status(400, &error.to_string())
}

fn said(wire: Wire) -> Answer {
    match wire {
        Wire::Responses => Answer::stream(&[completed()]),
        _ => Answer::stream(&[
            json!({"type": "message_start", "message": {"id": "m"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ]),
    }
}

/// The bodies that a provider got when it was asked again and again with the same request.
async fn asked(wire: Wire, times: usize, answers: Vec<Answer>, request: PreparedRequest) -> Vec<Value> {
    let server = Server::start(answers).await;
    let mut provider = Provider::new("local", server.base_url());
    (provider.wire, provider.request_max_retries, provider.max_output_tokens) = (wire, 0, Some(32_000));
    let transport = transport(&provider);
    for _ in 0..times {
        let found = events(&transport, request.clone()).await;
        assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
    }
    server.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

#[tokio::test]
async fn a_model_that_cannot_think_is_asked_to_only_once() {
    let request =
        with_body(request("hi"), |body| body.reasoning = Some(Reasoning { effort: None, summary: None }));
    let answers = vec![
        refused("thinking: adaptive is not supported on this model"),
        said(Wire::Messages),
        said(Wire::Messages),
    ];
    let bodies = asked(Wire::Messages, 2, answers, request).await;
    let thinking = bodies.iter().map(|body| body["thinking"]["type"].as_str());
    assert_eq!(thinking.collect::<Vec<_>>(), [Some("adaptive"), None, None]);
}

#[tokio::test]
async fn a_model_that_takes_no_effort_is_asked_without_and_still_thinks() {
    let with =
        |effort| with_body(request("hi"), |body| body.reasoning = Some(Reasoning { effort, summary: None }));
    let answers = || {
        let words = "output_config.effort: Extra inputs are not permitted";
        vec![refused(words), said(Wire::Messages), said(Wire::Messages)]
    };
    let bodies = asked(Wire::Messages, 2, answers(), with(Some(ReasoningEffort::High))).await;
    let parts = bodies.iter().map(|body| (&body["output_config"]["effort"], &body["thinking"]["type"]));
    let (adaptive, high) = (json!("adaptive"), json!("high"));
    let without = (&Value::Null, &adaptive);
    assert_eq!(parts.collect::<Vec<_>>(), [(&high, &adaptive), without, without]);
    // Where none was sent, nothing can be left out.
    let server = Server::start(answers()).await;
    let mut provider = Provider::new("local", server.base_url());
    (provider.wire, provider.request_max_retries, provider.max_output_tokens) =
        (Wire::Messages, 0, Some(32_000));
    let found = events(&transport(&provider), with(None)).await;
    assert!(found[0].is_err() && server.requests().len() == 1, "{found:?}");
}

#[tokio::test]
async fn a_model_named_after_thinking_is_not_taken_to_refuse_it() {
    let server = Server::start(vec![refused("kimi-thinking: tools are not supported")]).await;
    let mut provider = Provider::new("local", server.base_url());
    (provider.wire, provider.request_max_retries, provider.max_output_tokens) =
        (Wire::Messages, 0, Some(32_000));
    let request = with_body(request("hi"), |body| {
        body.model = "kimi-thinking".to_owned();
        body.reasoning = Some(Reasoning { effort: None, summary: None });
    });
    let found = events(&transport(&provider), request).await;
    assert!(found[0].is_err() && server.requests().len() == 1, "{found:?}");
}

#[tokio::test]
async fn reasoning_that_is_not_valid_any_more_is_left_out_from_then_on() {
    let sealed = json!({"type": "reasoning", "summary": [], "encrypted_content": "sealed-by-another"});
    let request = prepared(vec![user_message("a"), sealed, user_message("b")], Vec::new());
    let answers = vec![
        refused("The encrypted content of item 1 could not be verified (encrypted_content)"),
        said(Wire::Responses),
        said(Wire::Responses),
    ];
    let bodies = asked(Wire::Responses, 2, answers, request).await;
    let has = bodies.iter().map(|body| body.to_string().contains("sealed-by-another"));
    assert_eq!(has.collect::<Vec<_>>(), [true, false, false]);
    assert!(bodies.iter().all(|body| body["input"].to_string().contains("\"b\"")), "{bodies:?}");
}

#[tokio::test]
async fn thinking_with_a_signature_that_is_refused_is_left_out() {
    let thinking = [
        json!({"type": "message_start", "message": {"id": "m"}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "thinking", "thinking": "hm", "signature": "sig"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "said"}}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let server = Server::start(vec![
        Answer::stream(&thinking),
        refused("messages.1.content.0: Invalid `signature` in `thinking` block"),
        said(Wire::Messages),
    ])
    .await;
    let mut provider = Provider::new("local", server.base_url());
    (provider.wire, provider.request_max_retries, provider.max_output_tokens) =
        (Wire::Messages, 0, Some(32_000));
    let transport = transport(&provider);
    let first =
        with_body(request("a"), |body| body.reasoning = Some(Reasoning { effort: None, summary: None }));
    let found = events(&transport, first.clone()).await;
    let next = with_body(first, |body| {
        body.input.extend(found.into_iter().filter_map(|event| match event {
            Ok(StreamEvent::ItemDone(item)) => Some(item.into()),
            _ => None,
        }));
        let more = prepared(vec![user_message("b")], Vec::new());
        body.input.extend(more.body.input.iter().cloned());
    });
    let found = events(&transport, next).await;
    assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
    let bodies = server.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap());
    let bodies = Vec::from_iter(bodies);
    assert!(
        bodies[1].contains("\"signature\":\"sig\"") && !bodies[2].contains("\"signature\""),
        "{bodies:?}"
    );
    // It is still asked to think.
    assert!(bodies[2].contains("\"thinking\":{\"type\":\"adaptive\""), "{}", bodies[2]);
}

#[tokio::test]
async fn a_provider_known_by_name_is_read_the_same_on_responses() {
    let no_key = json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}});
    let too_long = json!({"error": {"message": "too long", "code": "context_length_exceeded"}});
    let failed = json!({"type": "response.failed", "response": {"error": too_long["error"]}});
    let text = json!({"type": "response.output_item.done", "item": {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "12345678"}]}});
    let uncounted = json!({"type": "response.completed", "response": {"id": "r", "usage": null}});
    let answers = || {
        vec![
            Answer::status(401, &no_key.to_string()),
            Answer::status(400, &too_long.to_string()),
            Answer::stream(std::slice::from_ref(&failed)),
            Answer::stream(&[text.clone(), uncounted.clone()]),
        ]
    };
    for is_known in [true, false] {
        let server = Server::start(answers()).await;
        let mut provider = Provider::new("xai", server.base_url());
        (provider.is_known, provider.request_max_retries) = (is_known, 0);
        let transport = transport(&provider);
        let mut last = Vec::new();
        for _ in 0..4 {
            last.extend(events(&transport, request("hi")).await.pop());
        }
        let failure = |at: usize| match &last[at] {
            Err(failure) | Ok(StreamEvent::Failed(failure)) => failure.clone(),
            other => panic!("{other:?}"),
        };
        let words = "the provider wants a key; name its variable with env_key: Incorrect API key provided";
        assert_eq!(failure(0).message, words);
        // Clients of the reference know no class for this.
        let info = if is_known { CodexErrorInfo::Unauthorized } else { CodexErrorInfo::Other };
        assert_eq!(failure(0).codex_error_info(), info);
        for at in [1, 2] {
            let full = failure(at);
            assert_eq!(full.is_retryable(), is_known || at == 1, "{full}");
            assert_eq!(full.codex_error_info(), CodexErrorInfo::ContextWindowExceeded, "{full}");
            assert_eq!(full.class, FailureClass::ContextWindow);
        }
        let Ok(StreamEvent::Completed { usage, .. }) = &last[3] else { panic!("{last:?}") };
        let tokens = usage.as_ref().map(|usage| (usage.is_estimated, usage.output_tokens));
        assert_eq!(tokens, is_known.then_some((true, 2)));
    }
}

/// Every known stream of every wire, fed in two parts, cut at every byte.
#[test]
fn splitting_a_stream_at_any_byte_gives_the_same_events() {
    let streams = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wires/tests/it/streams");
    let mut seen = 0;
    for wire in [Wire::Chat, Wire::Messages] {
        for entry in std::fs::read_dir(streams.join(wire.name())).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "sse") {
                continue;
            }
            seen += 1;
            let text = Bytes::from(std::fs::read(&path).unwrap());
            let able = Capabilities::of("gemini", wire);
            let request = request("hi").body;
            let decoder = ::wires::Encoder::new(wire).encode(&request, &able).unwrap().decoder;
            let read = |parts: [Bytes; 2]| {
                let (mut decoder, mut events) = (decoder.clone(), Vec::new());
                let mut reader = ::http::SseReader::new(1 << 20);
                for part in parts {
                    reader.push(part);
                    while let Some(data) = reader.next_event().unwrap() {
                        decoder.push(&data.text(), &mut events);
                    }
                }
                decoder.close(None, &mut events);
                events
            };
            let whole = read([text.clone(), Bytes::new()]);
            for at in 0..text.len() {
                let split = read([text.slice(..at), text.slice(at..)]);
                assert_eq!(split, whole, "{} at {at}", path.display());
            }
        }
    }
    assert!(seen > 20, "only {seen} streams");
}
