//! The scripted form of the offline model.

use std::time::Duration;

use futures_util::StreamExt;
use model::{FailureClass, ModelTransport, StreamEvent};
use oarlock_model_http::ModelScript;
use serde_json::json;

use crate::support::*;

fn script(steps: serde_json::Value) -> ModelScript {
    ModelScript::from_json(&steps.to_string()).unwrap()
}

#[tokio::test]
async fn every_request_takes_a_step() {
    let script = script(json!([
        { "text": "one two three four" },
        { "text": "first", "call": { "name": "t", "arguments": { "a": 1 }, "callId": "c1" }, "usage": { "inputTokens": 9, "outputTokens": 1 } },
        { "calls": [{ "name": "p", "input": "raw" }, { "name": "q" }] },
        { "events": [{ "type": "response.output_text.delta", "delta": "x" }, { "type": "response.completed", "response": { "id": "r9" } }] },
        { "fail": { "status": 429, "body": { "error": { "type": "usage_limit_reached" } } } },
    ]));
    let first = lines(&events(&script, request("a")).await);
    assert_eq!(&first[2..4], ["delta one two three ", "delta four"]);
    let second = events(&script, request("b")).await;
    let shown = lines(&second).join("\n");
    assert!(
        shown.contains(r#"name: "t", namespace: None, arguments: "{\"a\":1}", call_id: "c1""#),
        "{shown}"
    );
    let Some(Ok(StreamEvent::Completed { usage: Some(usage), .. })) = second.last() else {
        panic!("{shown}")
    };
    assert_eq!((usage.input_tokens, usage.total_tokens), (9, 10));
    let third = lines(&events(&script, request("c")).await).join("\n");
    assert!(third.contains(r#"name: "p", input: "raw""#) && third.contains(r#"name: "q""#), "{third}");
    assert_eq!(lines(&events(&script, request("d")).await), ["opened", "delta x", "completed r9"]);
    let fifth = events(&script, request("e")).await;
    assert_eq!(fifth[0].as_ref().unwrap_err().class, FailureClass::UsageLimit);
    assert_eq!(script.finish(), Ok(()));
    assert_eq!(script.requests().len(), 5);
}

#[tokio::test]
async fn a_request_too_many_and_a_step_too_many_are_told() {
    let script = script(json!([{ "text": "x" }]));
    assert_eq!(script.finish().unwrap_err().to_string(), "1 step of the script was not used");
    events(&script, request("a")).await;
    let found = events(&script, request("b")).await;
    let failure = found[0].as_ref().unwrap_err();
    assert_eq!(
        (failure.class, failure.message.as_str()),
        (FailureClass::InvalidRequest, "the script has 1 steps and all are used")
    );
    let leftover = script.finish().unwrap_err();
    assert_eq!((leftover.unused, leftover.problems.len()), (0, 1));
}

async fn check_mismatch(expect: serde_json::Value, expected: &str) {
    let script = script(json!([{ "expect": expect, "text": "x" }]));
    let input = vec![
        user_message("hello"),
        json!({ "type": "function_call", "name": "t", "arguments": "{}", "call_id": "c" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "result" }),
    ];
    let found = events(&script, prepared(input, vec![json!({ "type": "function", "name": "t" })])).await;
    let shown = match found.first() {
        Some(Err(failure)) => failure.message.clone(),
        _ => "fits".to_owned(),
    };
    assert_eq!(shown.trim_start_matches("the request does not fit step 1 of the script: "), expected);
    assert_eq!(script.finish().is_ok(), expected == "fits");
}

#[tokio::test]
async fn a_step_may_expect_something_of_its_request() {
    let all = json!({
        "lastUserContains": "ell", "lastOutputContains": "result", "toolOffered": "t", "toolNotOffered": "u", "model": "test-model"
    });
    check_mismatch(all, "fits").await;
    check_mismatch(
        json!({ "lastUserContains": "bye" }),
        r#"the last user message does not contain "bye"; it is "hello""#,
    )
    .await;
    check_mismatch(
        json!({ "lastOutputContains": "x" }),
        r#"the last tool output does not contain "x"; it is "result""#,
    )
    .await;
    check_mismatch(json!({ "toolOffered": "u" }), "the tool u is not offered; offered: t").await;
    check_mismatch(json!({ "toolNotOffered": "t" }), "the tool t is offered").await;
    check_mismatch(json!({ "model": "m" }), "the model is test-model, not m").await;
}

#[tokio::test]
async fn a_stream_may_break_off_or_hang() {
    let cut = script(json!([{ "events": [{ "type": "response.output_text.delta", "delta": "x" }] }]));
    let found = lines(&events(&cut, request("a")).await);
    assert_eq!(
        found[2],
        "Stream: stream disconnected before completion: stream closed before response.completed"
    );

    let hanging = script(json!([{ "text": "x", "hang": true }]));
    let mut stream = hanging.open(request("a"));
    let mut seen = 0;
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(20), stream.next()).await {
        assert!(!event.unwrap().is_terminal());
        seen += 1;
    }
    assert_eq!(seen, 4);
}

#[tokio::test(start_paused = true)]
async fn a_step_may_take_its_time() {
    let script = script(json!([{ "text": "x", "delayMs": 60_000 }]));
    let start = tokio::time::Instant::now();
    let found: Vec<_> = script.open(request("a")).collect().await;
    assert_eq!((found.len(), start.elapsed()), (5, Duration::from_secs(60)));
}

#[test]
fn a_bad_script_is_refused_with_the_step() {
    for (text, expected) in [
        ("{}", "the script is not a JSON array of steps: invalid type: map, expected a sequence"),
        (r#"[{"text":"x"},{"txt":"y"}]"#, "step 2 of the script cannot be read: unknown field `txt`"),
        (r#"[{}]"#, "step 1 of the script answers nothing"),
        (r#"[{"text":"x","fail":{"status":500}}]"#, "step 1 of the script answers in several ways"),
        (r#"[{"fail":{"status":200}}]"#, "step 1 of the script fails with a status that is no failure"),
        (
            r#"[{"events":[],"usage":{"inputTokens":1,"outputTokens":1}}]"#,
            "step 1 of the script has `usage` without",
        ),
        (r#"[{"fail":{"status":500},"hang":true}]"#, "step 1 of the script fails and hangs"),
        (r#"[{"call":{"name":"a","arguments":{},"input":""}}]"#, "step 1 of the script has a call with both"),
    ] {
        let error = ModelScript::from_json(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
