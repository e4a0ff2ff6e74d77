//! `thread/prompt/read`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD};

fn texts(pieces: &Value) -> Vec<&str> {
    pieces.as_array().expect("pieces").iter().map(|piece| piece["text"].as_str().expect("a text")).collect()
}

/// The texts of all messages of a request.
fn said(request: &Value) -> Vec<&str> {
    let messages = request["input"].as_array().expect("input").iter();
    let parts = messages.flat_map(|item| item["content"].as_array().into_iter().flatten());
    parts.map(|part| part["text"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn the_next_request_is_described_whether_or_not_the_thread_is_loaded() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "first words").await;
    let loaded = client.ask("thread/prompt/read", json!({"threadId": thread})).await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let stored = client.ask("thread/prompt/read", json!({"threadId": thread})).await;
    assert_eq!(stored, loaded, "the record and the thread tell the same");
    let none = client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(none["data"], json!([]), "nothing was loaded to look at it");
    let cut = client.ask("thread/prompt/read", json!({"threadId": thread, "historyLimit": 1})).await;
    assert_eq!(texts(&cut["pieces"]["history"]), ["one"]);
    assert_eq!(cut["tokens"], loaded["tokens"]);

    client.ask("thread/resume", json!({"threadId": thread})).await;
    client.turn(&thread, "second words").await;
    let requests = stage.asked();
    let request = requests.last().expect("a request");
    let pieces = &loaded["pieces"];
    assert_eq!(texts(&pieces["instructions"]).join("\n\n"), request["instructions"]);
    let tools: Vec<String> =
        request["tools"].as_array().expect("tools").iter().map(ToString::to_string).collect();
    assert_eq!(texts(&pieces["tools"]), tools);
    let mut expected = texts(&pieces["history"]);
    expected.extend(texts(&pieces["next"]));
    expected.push("second words");
    assert_eq!(said(request), expected);

    let refused = client.refused("thread/prompt/read", json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(refused, format!("no rollout found for thread id {UNKNOWN_THREAD}"));
}
