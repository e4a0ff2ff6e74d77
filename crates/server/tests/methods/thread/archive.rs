//! `thread/archive`.

use std::path::Path;

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, endless, text, told};

#[tokio::test]
async fn archiving_needs_a_record_and_moves_it() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    for id in [id.as_str(), UNKNOWN_THREAD] {
        let message = client.refused("thread/archive", json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"));
    }
    client.turn(&id, "hi").await;
    let path = text(&client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"]);
    client.rest().await;
    client.transcript();
    assert_eq!(client.ask("thread/archive", json!({"threadId": id})).await, json!({}));
    assert_eq!(client.next_of("thread/archived").await, json!({"threadId": id}));
    assert_eq!(client.transcript(), ["thread/status/changed", "= thread/archive", "thread/archived"]);
    assert_eq!(client.status(&id, "notLoaded").await["threadId"], json!(id));
    assert!(!Path::new(&path).exists());
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    let message = client.refused("thread/archive", json!({"threadId": id})).await;
    assert_eq!(message, format!("no rollout found for thread id {id}"));
    let message = client.refused("thread/resume", json!({"threadId": id})).await;
    assert_eq!(message, format!("no rollout found for thread id {id}"));
}

#[tokio::test]
async fn archiving_ends_a_running_turn_first() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.next_of("thread/archived").await;
    let heard = client.transcript();
    let expected = [
        "item/completed",
        "thread/status/changed",
        "turn/completed",
        "thread/status/changed",
        "= thread/archive",
        "thread/archived",
    ];
    assert_eq!(heard, expected);
    let ended = client.next_of("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
}

#[tokio::test]
async fn archiving_ends_a_turn_that_waits_for_a_client() {
    let call = json!({"name": "shell", "callId": "call-1", "arguments": {"command": ["touch", "x"]}});
    let config = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(json!([{"call": call}, {"text": "done"}]), config).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/commandExecution/requestApproval").await;
    client.transcript();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.next_of("thread/archived").await;
    let heard = client.transcript();
    let of = |method: &str| heard.iter().filter(|heard| *heard == method).count();
    assert_eq!(
        (of("item/completed"), of("serverRequest/resolved"), of("turn/completed")),
        (1, 1, 1),
        "{heard:?}"
    );
    let ended = client.next_of("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
    let ended = client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
    assert_eq!(ended["item"]["status"], "declined");
    client.ask("thread/unarchive", json!({"threadId": id})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["turns"][0]["status"], "interrupted");
}

#[tokio::test]
async fn an_archived_thread_forgets_who_listened() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    first.ask("thread/archive", json!({"threadId": id})).await;
    second.ask("thread/unarchive", json!({"threadId": id})).await;
    second.ask("thread/resume", json!({"threadId": id})).await;
    first.rest().await;
    second.turn(&id, "more").await;
    let heard = first.rest().await;
    assert!(heard.iter().all(|method| method == "thread/status/changed"), "{heard:?}");
}

#[tokio::test]
async fn an_archived_thread_is_out_of_reach_until_it_is_brought_back() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.ask("thread/archive", json!({"threadId": id})).await;
    for method in ["thread/resume", "thread/fork"] {
        let message = client.refused(method, json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"), "{method}");
    }
    let named = json!({"threadId": id, "name": "kept"});
    assert_eq!(client.refused("thread/name/set", named.clone()).await, format!("thread not found: {id}"));
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: hi"]);
    client.ask("thread/unarchive", json!({"threadId": id})).await;
    assert_eq!(client.ask("thread/name/set", named).await, json!({}));
    client.ask("thread/fork", json!({"threadId": id})).await;
}
