//! `thread/records/list`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD};

fn ordinals(page: &Value) -> Vec<u64> {
    let data = page["data"].as_array().expect("data");
    data.iter().map(|record| record["ordinal"].as_u64().expect("an ordinal")).collect()
}

fn kinds(page: &Value) -> Vec<&str> {
    let data = page["data"].as_array().expect("data");
    data.iter().map(|record| record["kind"].as_str().expect("a kind")).collect()
}

#[tokio::test]
async fn records_come_in_pages_newest_first() {
    let stage = Stage::new(json!([{"text": "one"}])).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "a").await;
    let newest = client.ask("thread/records/list", json!({"threadId": thread, "limit": 2})).await;
    let last = ordinals(&newest)[0];
    assert_eq!(ordinals(&newest), [last, last - 1]);
    assert_eq!(kinds(&newest)[0], "turnEnded", "{newest}");
    assert_eq!(newest["nextCursor"], (last - 2).to_string());
    // Also of a thread that is not loaded, and from the beginning.
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = json!({"threadId": thread, "limit": 3, "sortDirection": "asc", "cursor": cursor});
        let page = client.ask("thread/records/list", params).await;
        if seen.is_empty() {
            assert_eq!(
                (kinds(&page)[0], &page["data"][0]["meta"]["threadId"]),
                ("sessionMeta", &json!(thread))
            );
        }
        seen.extend(ordinals(&page));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, (seen[0]..=last).collect::<Vec<_>>());
    let refused =
        client.refused("thread/records/list", json!({"threadId": thread, "cursor": "nonsense"})).await;
    assert_eq!(refused, "invalid cursor: nonsense");
    let refused = client.refused("thread/records/list", json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(refused, format!("no rollout found for thread id {UNKNOWN_THREAD}"));
}
