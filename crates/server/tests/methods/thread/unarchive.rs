//! `thread/unarchive`.

use std::path::Path;

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, text, told};

#[tokio::test]
async fn unarchiving_brings_the_record_back() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    stage.clock.set(1_700_000_000_000);
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let path = client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"].clone();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.rest().await;
    client.transcript();
    stage.clock.set(1_700_000_500_000);
    let thread = client.ask("thread/unarchive", json!({"threadId": id})).await["thread"].clone();
    assert_eq!((&thread["path"], &thread["status"]), (&path, &json!({"type": "notLoaded"})));
    assert!(Path::new(&text(&path)).exists());
    assert_eq!(thread["updatedAt"], 1_700_000_500);
    assert_eq!(client.next_of("thread/unarchived").await, json!({"threadId": id}));
    assert_eq!(client.transcript(), ["= thread/unarchive", "thread/unarchived"]);
    for id in [id.as_str(), UNKNOWN_THREAD] {
        let message = client.refused("thread/unarchive", json!({"threadId": id})).await;
        assert_eq!(message, format!("no archived rollout found for thread id {id}"));
    }
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["completed: hi"]);
}
