//! `thread/turns/list` and `thread/items/list`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, text};

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().expect("data").iter().map(|turn| text(&turn["id"])).collect()
}

#[tokio::test]
async fn turns_come_in_pages_newest_first() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}])).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    let empty = client.ask("thread/turns/list", json!({"threadId": thread})).await;
    assert_eq!(empty, json!({"data": [], "nextCursor": null, "backwardsCursor": null}));
    for said in ["a", "b", "c"] {
        client.turn(&thread, said).await;
    }
    let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let mut expected: Vec<String> =
        read["thread"]["turns"].as_array().expect("turns").iter().map(|turn| text(&turn["id"])).collect();
    expected.reverse();
    let first = client.ask("thread/turns/list", json!({"threadId": thread, "limit": 2})).await;
    assert_eq!(ids(&first), expected[..2]);
    let kinds: Vec<&Value> =
        first["data"][0]["items"].as_array().expect("items").iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["userMessage", "agentMessage"]);
    let second = client
        .ask("thread/turns/list", json!({"threadId": thread, "limit": 2, "cursor": first["nextCursor"]}))
        .await;
    assert_eq!((ids(&second), &second["nextCursor"]), (expected[2..].to_vec(), &Value::Null));
    server.stop().await;
    // The same of a thread that is not loaded.
    let (_server, mut client) = stage.open().await;
    let params = json!({"threadId": thread, "sortDirection": "asc", "itemsView": "notLoaded", "cursor": second["backwardsCursor"]});
    let back = client.ask("thread/turns/list", params).await;
    expected.reverse();
    assert_eq!(ids(&back), expected);
    assert_eq!(back["data"][0]["items"], json!([]));
    let refused =
        client.refused("thread/turns/list", json!({"threadId": thread, "cursor": "nonsense"})).await;
    assert_eq!(refused, "invalid cursor: nonsense");
    let refused = client.refused("thread/turns/list", json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(refused, format!("thread not loaded: {UNKNOWN_THREAD}"));
}

#[tokio::test]
async fn items_name_their_turn() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}])).await;
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "a").await;
    client.turn(&thread, "b").await;
    let turns = client.ask("thread/turns/list", json!({"threadId": thread, "sortDirection": "asc"})).await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({"threadId": thread, "limit": 1, "sortDirection": "asc", "cursor": cursor});
        let page = client.ask("thread/items/list", params).await;
        let entry = &page["data"][0];
        seen.push((text(&entry["turnId"]), text(&entry["item"]["type"])));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let (first, second) = (ids(&turns)[0].clone(), ids(&turns)[1].clone());
    let entry = |turn: &String, kind: &str| (turn.clone(), kind.to_owned());
    assert_eq!(
        seen,
        [
            entry(&first, "userMessage"),
            entry(&first, "agentMessage"),
            entry(&second, "userMessage"),
            entry(&second, "agentMessage")
        ]
    );
    let of_one = client.ask("thread/items/list", json!({"threadId": thread, "turnId": first})).await;
    assert_eq!(of_one["data"].as_array().map(Vec::len), Some(2));
    let refused = client.refused("thread/items/list", json!({"threadId": thread, "turnId": "none"})).await;
    assert_eq!(refused, "turnId names no turn of this thread: none");
}

#[tokio::test]
async fn newer_sort_keys_sort_by_the_last_change() {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}])).await;
    let (_server, mut client) = stage.open().await;
    let older = client.spoken_thread("a").await;
    let newer = client.spoken_thread("b").await;
    client.turn(&older, "again").await;
    for key in ["updated_at", "recency_at", "section_position"] {
        let list = client.ask("thread/list", json!({"sortKey": key})).await;
        assert_eq!(ids(&list), [older.clone(), newer.clone()], "{key}");
    }
}
