//! A running turn as a client sees it that joins.

use serde_json::json;
use testkit::Stage;

use super::{asking, found, waiting};

#[tokio::test]
async fn whoever_joins_sees_what_is_under_way() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let (id, turn_id, question) = waiting(&mut client).await;
    let params = json!({"threadId": id, "includeTurns": true});
    let joined = client.ask("thread/resume", json!({"threadId": id})).await;
    for thread in [&joined["thread"], &client.ask("thread/read", params.clone()).await["thread"]] {
        let turn = &thread["turns"][0];
        assert_eq!((&turn["id"], &turn["status"]), (&json!(turn_id), &json!("inProgress")));
        let call = &turn["items"][1];
        assert_eq!((&call["type"], &call["id"]), (&json!("dynamicToolCall"), &json!("call-1")), "{turn}");
        assert_eq!((&call["status"], &call["arguments"]), (&json!("inProgress"), &json!({"id": 7})));
    }
    client.answer(&question, found()).await;
    client.next_of("turn/completed").await;
    let read = client.ask("thread/read", params).await;
    assert_eq!(read["thread"]["turns"][0]["items"][1]["status"], "completed");
}

#[tokio::test]
async fn a_command_that_runs_on_is_shown_as_running() {
    let call = json!({"name": "exec_command", "callId": "call-1",
                      "arguments": {"cmd": "sleep 600", "login": false, "yield_time_ms": 250}});
    let config = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(json!([{"call": call}, {"text": "done"}]), config).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "go").await;
    let params = json!({"threadId": id, "includeTurns": true});
    let read = client.ask("thread/read", params.clone()).await;
    let turn = &read["thread"]["turns"][0];
    assert_eq!((&turn["status"], &turn["items"][1]["status"]), (&json!("completed"), &json!("inProgress")));
    client.ask("thread/backgroundTerminals/clean", json!({"threadId": id})).await;
    client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
    let read = client.ask("thread/read", params).await;
    assert_eq!(read["thread"]["turns"][0]["items"][1]["status"], "failed");
}
