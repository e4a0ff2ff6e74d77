//! `thread/increment_elicitation` and `thread/decrement_elicitation`: the time of a command stands still.

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD};

use super::{FREE, call};

#[tokio::test]
async fn time_stands_still_while_a_client_asks_in_a_way_of_its_own() {
    let script = "until [ -e go ]; do sleep 0.01; done; echo done";
    let steps = call("shell_command", &json!({"command": script, "timeout_ms": 1}));
    let stage = Stage::configured(steps, FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let (open, close) = ("thread/increment_elicitation", "thread/decrement_elicitation");
    let thread = json!({"threadId": id});
    assert_eq!(client.ask(open, thread.clone()).await, json!({"count": 1, "paused": true}));
    assert_eq!(client.ask(open, thread.clone()).await, json!({"count": 2, "paused": true}));
    assert_eq!(client.ask(close, thread.clone()).await, json!({"count": 1, "paused": true}));
    client.start_turn(&id, "go").await;
    client.wait_for("item/started", |params| params["item"]["type"] == "commandExecution").await;
    fs::write(stage.cwd().join("go"), "").expect("written");
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!((&done["item"]["exitCode"], &done["item"]["aggregatedOutput"]), (&json!(0), &json!("done\n")));
    client.next_of("turn/completed").await;
    assert_eq!(client.ask(close, thread.clone()).await, json!({"count": 0, "paused": false}));
    let refused = client.request(close, thread).await.expect_err("it is at zero");
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (-32600, "out-of-band elicitation count is already zero")
    );
    let message = client.refused(open, json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(message, format!("thread not found: {UNKNOWN_THREAD}"));
}

#[tokio::test]
async fn time_goes_on_when_the_client_that_stopped_it_is_gone() {
    let steps = call("shell_command", &json!({"command": "sleep 600", "timeout_ms": 1}));
    let stage = Stage::configured(steps, FREE).await;
    let server = stage.listen();
    let (mut leaving, mut staying) = (server.connect().await, server.connect().await);
    let id = staying.start_thread(json!({"cwd": stage.cwd()})).await;
    let (open, close) = ("thread/increment_elicitation", "thread/decrement_elicitation");
    let thread = json!({"threadId": id});
    assert_eq!(leaving.ask(open, thread.clone()).await["count"], 1);
    assert_eq!(leaving.ask(open, thread.clone()).await["count"], 2);
    // Whoever closes one need not have opened it.
    assert_eq!(staying.ask(close, thread.clone()).await["count"], 1);
    staying.start_turn(&id, "go").await;
    let is_command = |params: &Value| params["item"]["type"] == "commandExecution";
    staying.wait_for("item/started", is_command).await;
    drop(leaving);
    let done = staying.wait_for("item/completed", is_command).await;
    assert_eq!(done["item"]["status"], "failed");
    staying.next_of("turn/completed").await;
    assert_eq!(staying.ask(open, thread.clone()).await, json!({"count": 1, "paused": true}));
    assert_eq!(staying.ask(close, thread).await, json!({"count": 0, "paused": false}));
}
