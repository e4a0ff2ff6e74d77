//! `thread/loaded/list`.

use serde_json::json;
use testkit::Stage;

#[tokio::test]
async fn loaded_threads_are_listed_in_order_and_in_pages() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(client.start_thread(json!({})).await);
    }
    made.sort();
    let all = client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(all, json!({"data": made, "nextCursor": null}));
    let page = client.ask("thread/loaded/list", json!({"limit": 2})).await;
    assert_eq!(page, json!({"data": made[..2], "nextCursor": made[1]}));
    let page = client.ask("thread/loaded/list", json!({"limit": 2, "cursor": made[1]})).await;
    assert_eq!(page, json!({"data": made[2..], "nextCursor": null}));
    assert_eq!(client.ask("thread/loaded/list", json!({"limit": 0})).await["data"], json!(made[..1]));
    assert_eq!(client.refused("thread/loaded/list", json!({"cursor": "x"})).await, "invalid cursor: x");
}
