//! Servers that end while they work on a goal.

use serde_json::{Value, json};
use testkit::{Stage, endless, until};

use super::{costly, reached, set, stands};

#[tokio::test]
async fn an_active_goal_goes_on_when_its_thread_is_resumed_and_not_before() {
    let steps =
        json!([{"text": "hello"}, costly("one", 500), endless("part"), reached("g1"), {"text": "reached"}]);
    let stage = Stage::new(steps).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    set(&mut client, &id, json!({"objective": "Reach the shore."})).await;
    client.next_of("item/agentMessage/delta").await;
    client.wait_for("item/agentMessage/delta", |params| params["delta"] == "part").await;
    server.kill().await;

    let (_server, mut client) = stage.open().await;
    let got = client.ask("thread/goal/get", json!({"threadId": id})).await;
    assert_eq!((&got["goal"]["status"], &got["goal"]["tokensUsed"]), (&json!("active"), &json!(500)));
    client.rest().await;
    assert_eq!(stage.asked().len(), 3, "reading starts nothing");
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["status"], json!({"type": "idle"}));
    stands(&mut client, "complete").await;
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turns = read["thread"]["turns"].as_array().expect("turns");
    let statuses: Vec<_> = turns.iter().map(|turn| &turn["status"]).collect();
    assert_eq!(json!(statuses), json!(["completed", "completed", "interrupted", "completed"]));
    stage.assert_played();
}

#[tokio::test]
async fn a_paused_goal_stays_paused() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    set(&mut client, &id, json!({"objective": "x", "status": "paused"})).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.rest().await;
    assert_eq!(client.ask("thread/goal/get", json!({"threadId": id})).await["goal"]["status"], "paused");
    stage.assert_played();
}

/// A command that ran for the goal is not run again: the model reads that its outcome is unknown.
#[tokio::test]
async fn a_command_that_was_cut_off_is_not_run_again() {
    let arguments = json!({"cmd": "echo run >> runs; sleep 60", "yield_time_ms": 30000});
    let call = json!({"call": {"name": "exec_command", "callId": "call-1", "arguments": arguments}});
    let stage = Stage::configured(
        json!([{"text": "hello"}, call, reached("g1"), {"text": "reached"}]),
        "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"",
    )
    .await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "hi").await;
    set(&mut client, &id, json!({"objective": "x"})).await;
    let runs = stage.cwd().join("runs");
    until("the command runs", || runs.exists()).await;
    server.kill().await;

    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    stands(&mut client, "complete").await;
    assert!(stage.asked()[2]["input"].to_string().contains("outcome of this call is not known"));
    assert_eq!(std::fs::read_to_string(&runs).expect("runs"), "run\n");
    stage.assert_played();
}

/// A power cut after each message: an answered goal is there, and the turns are never two at once.
#[tokio::test]
async fn a_goal_that_was_answered_is_there_wherever_the_power_fails() {
    const MOST: usize = 12;
    let stage = Stage::new(Value::Array(vec![endless("part"); MOST])).await;
    for cut in 0..MOST {
        let (server, mut client) = stage.open().await;
        let id = client.start_thread(json!({})).await;
        client.rest().await;
        set(&mut client, &id, json!({"objective": "x"})).await;
        for _ in 0..cut.min(4) {
            client.next().await;
        }
        server.kill().await;
        let (server, mut client) = stage.open().await;
        let got = client.ask("thread/goal/get", json!({"threadId": id})).await;
        assert_eq!(got["goal"]["status"], "active", "cut {cut}");
        server.kill().await;
    }
}
