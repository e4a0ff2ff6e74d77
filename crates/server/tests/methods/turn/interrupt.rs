//! `turn/interrupt`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, endless, text};

use super::{asking, found, steer, waiting};

#[tokio::test]
async fn an_interrupt_is_answered_then_told() {
    let stage = Stage::new(json!([endless("part"), {"text": "after"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    let answer = client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    assert_eq!(answer, json!({}));
    let ended = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!((&ended["status"], &ended["error"]), (&json!("interrupted"), &Value::Null));
    assert_eq!(
        client.transcript(),
        ["= turn/interrupt", "item/completed", "thread/status/changed", "turn/completed"]
    );
    // Text that had arrived is kept, and the model hears that it was stopped.
    assert_eq!(client.item("agentMessage").await["text"], "part");
    client.turn(&id, "go on").await;
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("<turn_aborted>"), "{input}");
}

#[tokio::test]
async fn an_interrupt_without_its_turn_is_refused_and_changes_nothing() {
    let stage = Stage::new(json!([{"text": "hello"}, endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    for (thread, turn_id, expected) in [
        (id.as_str(), "t", "no active turn to interrupt".to_owned()),
        (&id, "", "no active turn to interrupt".to_owned()),
        (UNKNOWN_THREAD, "t", format!("thread not found: {UNKNOWN_THREAD}")),
    ] {
        let params = json!({"threadId": thread, "turnId": turn_id});
        assert_eq!(client.refused("turn/interrupt", params).await, expected);
    }
    assert!(client.rest().await.is_empty());

    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    let late = client.refused("turn/interrupt", json!({"threadId": id, "turnId": "earlier"})).await;
    assert!(late.contains(&turn_id), "{late}");
    assert!(!client.rest().await.contains(&"turn/completed".to_owned()));
    // An empty id means whatever runs.
    assert_eq!(client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await, json!({}));
    let ended = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!((&ended["id"], &ended["status"]), (&json!(turn_id), &json!("interrupted")));
}

#[tokio::test]
async fn an_interrupt_ends_a_pending_tool_call() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let (id, turn_id, question) = waiting(&mut client).await;
    client.ask("turn/steer", steer(&id, "too late", &turn_id)).await;
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
    let call = client.item("dynamicToolCall").await;
    assert_eq!((&call["status"], &call["id"]), (&json!("failed"), &json!("call-1")));
    // An answer that comes too late changes nothing.
    client.answer(&question, found()).await;
    let heard = client.rest().await;
    assert!(!heard.contains(&"serverRequest/resolved".to_owned()), "{heard:?}");
    let joined = client.ask("thread/resume", json!({"threadId": id})).await;
    assert!(!client.rest().await.contains(&"item/tool/call".to_owned()));
    // Steered input is not lost.
    let items = joined["thread"]["turns"][0]["items"].as_array().expect("items");
    let said: Vec<String> = items
        .iter()
        .filter(|item| item["type"] == "userMessage")
        .map(|item| text(&item["content"][0]["text"]))
        .collect();
    assert_eq!(said, ["look it up", "too late"]);
    client.turn(&id, "go on").await;
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("too late") && input.contains("aborted by user"), "{input}");
}
