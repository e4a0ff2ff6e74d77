//! `thread/delete`.

use std::path::Path;

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, endless, text};

#[tokio::test]
async fn deleting_removes_the_record_and_tells_everybody() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    for id in [id.as_str(), UNKNOWN_THREAD] {
        let message = client.refused("thread/delete", json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"));
    }
    client.turn(&id, "hi").await;
    let path = text(&client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"]);
    client.rest().await;
    client.transcript();
    let deleted = client.ask("thread/delete", json!({"threadId": id})).await;
    assert_eq!(deleted, json!({"deletedThreadIds": [id]}));
    assert_eq!(client.next_of("thread/deleted").await, json!({"threadId": id}));
    assert_eq!(client.transcript(), ["thread/status/changed", "= thread/delete", "thread/deleted"]);
    assert!(!Path::new(&path).exists());
    let listed = client.ask("thread/list", json!({"modelProviders": []})).await;
    assert_eq!(listed["data"], json!([]));
    let message = client.refused("thread/resume", json!({"threadId": id})).await;
    assert_eq!(message, format!("no rollout found for thread id {id}"));
}

#[tokio::test]
async fn a_thread_at_work_is_not_deleted() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    let message = client.refused("thread/delete", json!({"threadId": id})).await;
    assert_eq!(message, format!("thread {id} is at work; interrupt its turn before you delete it"));
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"]["type"], "active");
}

#[tokio::test]
async fn an_archived_thread_can_be_deleted() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.turn(&id, "hi").await;
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.ask("thread/delete", json!({"threadId": id})).await;
    let message = client.refused("thread/unarchive", json!({"threadId": id})).await;
    assert_eq!(message, format!("no archived rollout found for thread id {id}"));
}
