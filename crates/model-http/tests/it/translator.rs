//! A provider of another wire behind the Responses API, as its clients see it.

use std::future::poll_fn;

use oarlock_model_http::{ClientOptions, Provider, Translator, Wire};
use serde_json::{Value, json};

use crate::support::*;

/// An answer of Messages with one block of this text, which ends for this reason.
fn part(n: u32, text: &str, reason: &str) -> Answer {
    Answer::stream(&[
        json!({"type": "message_start", "message": {"id": format!("m{n}"), "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

/// The events that a client reads, and the bodies that the provider got.
async fn translated(answers: Vec<Answer>) -> (Vec<Value>, Vec<Value>) {
    let server = Server::start(answers).await;
    let mut provider = Provider::new("local", server.base_url());
    (provider.wire, provider.request_max_retries, provider.max_output_tokens) =
        (Wire::Messages, 0, Some(32_000));
    let translator = Translator::new(&provider, &ClientOptions::new("test", "test/1")).unwrap();
    let body = json!({"model": "m", "input": "look around", "stream": true}).to_string();
    let mut translation = translator.post(body.as_bytes()).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = poll_fn(|context| translation.poll_event(context)).await {
        events.push(event);
    }
    let bodies =
        server.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    (events, bodies)
}

#[tokio::test]
async fn a_model_that_pauses_is_asked_to_go_on_and_the_client_reads_one_response() {
    let answers =
        vec![part(1, "first ", "pause_turn"), part(2, "then ", "pause_turn"), part(3, "end", "end_turn")];
    let (events, bodies) = translated(answers).await;
    assert_eq!(bodies.len(), 3);
    let sent = bodies[2]["messages"].to_string();
    assert!(sent.contains("first ") && sent.contains("then "), "{sent}");
    let of_kind = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (of_kind("response.created"), of_kind("response.completed"), of_kind("response.failed")),
        (1, 1, 0)
    );
    let response = &events.last().unwrap()["response"];
    let texts = response["output"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]);
    assert_eq!(Vec::from_iter(texts), ["first ", "then ", "end"]);
    assert_eq!(
        (&response["usage"]["input_tokens"], &response["usage"]["output_tokens"]),
        (&json!(30), &json!(15))
    );
}

#[tokio::test]
async fn a_model_that_pauses_again_and_again_fails() {
    let (events, bodies) = translated(Vec::from_iter((1..9).map(|n| part(n, "a", "pause_turn")))).await;
    assert_eq!(bodies.len(), 4);
    let error = &events.last().unwrap()["response"]["error"];
    assert_eq!(error["message"], "the model paused its answer again and again");
}
