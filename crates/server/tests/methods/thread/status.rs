//! The status of a thread: `thread/status/changed`, and what the other methods say of it.

use serde_json::{Value, json};
use testkit::{Stage, told};

#[tokio::test]
async fn a_turn_makes_a_thread_active_then_idle() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let id = client.spoken_thread("hi").await;
    // Those who do not listen to the thread hear of it too.
    for client in [&mut client, &mut other] {
        let heard = client.rest_whole().await;
        let statuses: Vec<&Value> = heard
            .iter()
            .filter(|message| message["method"] == "thread/status/changed")
            .map(|message| &message["params"])
            .collect();
        let active = json!({"threadId": id, "status": {"type": "active", "activeFlags": []}});
        let idle = json!({"threadId": id, "status": {"type": "idle"}});
        assert_eq!(statuses, [&active, &idle]);
    }
}

#[tokio::test]
async fn a_system_error_is_forgotten_with_the_thread_in_memory() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}});
    let stage = Stage::new(json!([fail])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    assert_eq!(client.turn(&id, "hi").await["status"], "failed");
    client.status(&id, "systemError").await;
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["status"], json!({"type": "idle"}));
    assert_eq!(told(&resumed["thread"]), ["failed: hi"]);
}
