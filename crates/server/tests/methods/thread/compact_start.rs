//! Compaction, asked for and by itself.

use serde_json::{Value, json};
use testkit::{Stage, TestClient, UNKNOWN_THREAD, endless, kinds};

fn without_counts(words: Vec<String>) -> Vec<String> {
    let counts = ["thread/tokenUsage/updated", "account/rateLimits/updated"];
    words.into_iter().filter(|word| !counts.contains(&word.as_str())).collect()
}

async fn compaction_item(client: &mut TestClient) -> (Value, Value) {
    let is_it = |params: &Value| params["item"]["type"] == "contextCompaction";
    (client.wait_for("item/started", is_it).await, client.wait_for("item/completed", is_it).await)
}

#[tokio::test]
async fn compaction_on_demand_is_a_turn_of_its_own() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "they greeted"}, {"text": "on we go"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("first words").await;
    client.rest().await;
    client.transcript();
    assert_eq!(client.ask("thread/compact/start", json!({"threadId": id})).await, json!({}));
    let ended = client.next_of("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "completed");
    insta::assert_snapshot!(client.whole_transcript(&mut stage.redactor()));

    client.turn(&id, "what now").await;
    let asked = stage.asked();
    assert_eq!(asked[1]["tools"], json!([]));
    let input = asked[2]["input"].to_string();
    assert!(
        input.contains("they greeted") && input.contains("first words") && !input.contains("hello"),
        "{input}"
    );
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turns = read["thread"]["turns"].as_array().expect("turns");
    assert_eq!(kinds(&turns[1]), ["contextCompaction"]);
    stage.assert_played();
}

#[tokio::test]
async fn a_full_window_is_compacted_before_the_words_of_the_turn() {
    let full = json!({"inputTokens": 5_000, "outputTokens": 10});
    let steps = json!([{"text": "hello", "usage": full}, {"text": "they greeted"}, {"text": "done"}]);
    let stage = Stage::configured(steps, "model_auto_compact_token_limit = 4000").await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("first words").await;
    client.rest().await;
    client.transcript();
    assert_eq!(client.turn(&id, "second words").await["status"], "completed");
    let heard = without_counts(client.transcript());
    let expected = [
        "= turn/start",
        "thread/status/changed",
        "turn/started",
        "item/started",
        "item/completed",
        "thread/compacted",
        "item/started",
        "item/completed",
        "item/started",
        "item/agentMessage/delta",
        "item/completed",
        "thread/status/changed",
        "turn/completed",
    ];
    assert_eq!(heard, expected);
    let (begun, done) = compaction_item(&mut client).await;
    assert_eq!(begun["item"], done["item"]);
    assert_eq!(client.item("userMessage").await["content"][0]["text"], "second words");
    let input = stage.asked()[2]["input"].to_string();
    assert!(input.contains("they greeted") && input.contains("second words"), "{input}");
    stage.assert_played();
}

#[tokio::test]
async fn compaction_takes_the_place_of_a_running_turn() {
    let stage = Stage::new(json!([endless("part"), {"text": "summary"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    client.ask("thread/compact/start", json!({"threadId": id})).await;
    let first = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!((&first["id"], &first["status"]), (&json!(turn_id), &json!("interrupted")));
    let second = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!(second["status"], "completed");
    assert_ne!(second["id"], first["id"]);
    let heard = without_counts(client.transcript());
    assert_eq!(heard[0], "= thread/compact/start", "{heard:?}");
}

#[tokio::test]
async fn a_compacting_turn_takes_no_words() {
    let stage = Stage::new(json!([{"text": "hello"}, endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    client.ask("thread/compact/start", json!({"threadId": id})).await;
    let turn_id = client.next_of("turn/started").await["turn"]["id"].clone();
    let input = json!([{"type": "text", "text": "x"}]);
    let info = json!({"activeTurnNotSteerable": {"turnKind": "compact"}});
    for (method, params) in [
        ("turn/steer", json!({"threadId": id, "input": input, "expectedTurnId": turn_id})),
        ("turn/start", json!({"threadId": id, "input": input})),
    ] {
        let refused = client.request(method, params).await.expect_err("a refusal");
        assert_eq!((refused.code, refused.message.as_str()), (-32600, "cannot steer a compact turn"));
        assert_eq!(refused.data["codexErrorInfo"], info, "{method}");
    }
}

#[tokio::test]
async fn compaction_needs_a_loaded_thread() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let unknown = client.refused("thread/compact/start", json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(unknown, format!("thread not found: {UNKNOWN_THREAD}"));
    let invalid = client.refused("thread/compact/start", json!({"threadId": "zzz"})).await;
    assert!(invalid.starts_with("invalid thread id: "), "{invalid}");
}
