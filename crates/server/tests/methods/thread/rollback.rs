//! `thread/rollback`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, endless, told, turn};

#[tokio::test]
async fn a_rollback_drops_the_last_turns_for_good() {
    let stage = Stage::new(json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    client.turn(&id, "two").await;
    client.turn(&id, "three").await;
    client.rest().await;
    client.transcript();
    let rolled = client.ask("thread/rollback", json!({"threadId": id, "numTurns": 2})).await;
    assert_eq!(told(&rolled["thread"]), ["completed: one"]);
    let counted = ["thread/tokenUsage/updated", "account/rateLimits/updated", "= thread/rollback"];
    assert_eq!(client.transcript(), counted);
    assert_eq!(rolled["thread"].get("name"), Some(&Value::Null));
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["completed: one"]);
    client.turn(&id, "four").await;
    let input = stage.asked()[3]["input"].to_string();
    assert!(
        input.contains("\"one\"") && !input.contains("\"two\"") && !input.contains("\"three\""),
        "{input}"
    );
    let rolled = client.ask("thread/rollback", json!({"threadId": id, "numTurns": 9})).await;
    assert_eq!(rolled["thread"]["turns"], json!([]));
}

#[tokio::test]
async fn a_rollback_needs_turns_and_peace() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let zero = client.refused("thread/rollback", json!({"threadId": id, "numTurns": 0})).await;
    assert_eq!(zero, "numTurns must be >= 1");
    client.ask("turn/start", turn(&id, "work")).await;
    let busy = client.refused("thread/rollback", json!({"threadId": id, "numTurns": 1})).await;
    assert_eq!(busy, "Cannot rollback while a turn is in progress.");
    let unknown = client.refused("thread/rollback", json!({"threadId": UNKNOWN_THREAD, "numTurns": 1})).await;
    assert_eq!(unknown, format!("thread not found: {UNKNOWN_THREAD}"));
}
