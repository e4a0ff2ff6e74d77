//! Hosts that send far too much, or the same again after they were restarted.

use serde_json::{Value, json};
use testkit::Stage;

use super::{Host, added, call, completed, delta, done, full, message, prompt, whole};

/// Beyond what a line may have.
const TOO_LONG: usize = 33 * 1024 * 1024;

#[tokio::test]
async fn an_event_that_no_line_can_carry_is_refused_and_the_turn_can_be_ended() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("go").await;
    host.push(&request, 0, json!([added("m1")])).await;
    let long = "x".repeat(TOO_LONG);
    let batch = host.batch(&request, 1, json!([delta(&long)]));
    let refused = host.client.refused("model/streamEvent", batch).await;
    assert!(refused.contains("33554432"), "{refused}");
    // Nothing of it was taken, so the stream is where it was.
    host.abort(&request, 1, "provider", false).await;
    let turn = host.ended().await;
    assert_eq!(turn["status"], "failed");
    host.turn("again", "fine").await;
}

#[tokio::test]
async fn an_event_larger_than_the_window_is_taken_alone() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("go").await;
    let long = "y".repeat(3 * 1024 * 1024);
    host.push(&request, 0, json!([added("m1")])).await;
    host.push(&request, 1, json!([delta(&long)])).await;
    host.push(&request, 2, json!([done(message("m1", &long)), completed()])).await;
    assert_eq!(host.ended().await["status"], "completed");
}

#[tokio::test]
async fn a_host_that_plays_everything_again_changes_nothing() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let first = host.turn("one", "first").await;
    let second = host.begin("two").await;
    let calls = json!([done(call("c1", "update_plan", &json!({"plan": []}))), completed()]);
    host.push(&second, 0, calls.clone()).await;
    let third = host.accept().await;
    // All that it ever sent, from the beginning.
    let again = host.push(&first, 0, whole("first")).await;
    assert_eq!((&again["duplicate"], &again["nextSeq"]), (&json!(true), &json!(5)));
    let again = host.push(&second, 0, calls).await;
    assert_eq!(again["duplicate"], true);
    host.finish(&third, "done").await;
    let outputs: Vec<String> =
        prompt(&third).into_iter().filter(|line| line.starts_with("function_call_output")).collect();
    assert_eq!(outputs, ["function_call_output: Plan updated"]);
    server.stop().await;

    // A runtime that has just been started knows none of them.
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(super::offer()).await;
    client.ask("thread/resume", json!({"threadId": host.thread, "delegation": full()})).await;
    let mut host = Host { client, thread: host.thread };
    for request in [&first, &second, &third] {
        let refused = host.refused(request, 0, whole("again")).await;
        assert_eq!(code(&refused.1), "unknownRequest");
    }
    let fourth = host.begin("three").await;
    let said: Vec<String> =
        prompt(&fourth).into_iter().filter(|line| line.starts_with("assistant")).collect();
    assert_eq!(said, ["assistant: first", "assistant: done"]);
    host.finish(&fourth, "bye").await;
}

fn code(data: &Value) -> &str {
    data["code"].as_str().expect("a code")
}
