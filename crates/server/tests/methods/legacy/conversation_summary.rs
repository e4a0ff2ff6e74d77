//! `getConversationSummary`.

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, text};

#[tokio::test]
async fn a_stored_thread_is_described_by_id_and_by_path() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let by_id = client.ask("getConversationSummary", json!({"conversationId": id})).await;
    let summary = &by_id["summary"];
    assert_eq!((&summary["conversationId"], &summary["preview"]), (&json!(id), &json!("hi")));
    assert_eq!(summary["modelProvider"], "mock");
    let time = text(&summary["timestamp"]);
    assert!(time.ends_with('Z') && time.len() == 24, "{time}");
    let path = text(&summary["path"]);
    let by_path = client.ask("getConversationSummary", json!({"rolloutPath": path})).await;
    assert_eq!(by_path["summary"]["conversationId"], json!(id));
    assert_eq!(by_path["summary"]["preview"], "hi");
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let refused = client.refused("getConversationSummary", json!({"conversationId": UNKNOWN_THREAD})).await;
    assert_eq!(refused, format!("no rollout found for conversation id {UNKNOWN_THREAD}"));
    let refused = client.request("getConversationSummary", json!({"rolloutPath": "nope.jsonl"})).await;
    let refused = refused.expect_err("refused");
    let path = stage.home().join("nope.jsonl");
    let sentence = format!(
        "failed to load conversation summary from {}: No such file or directory (os error 2)",
        path.display()
    );
    assert_eq!((refused.code, refused.message), (-32603, sentence));
}
