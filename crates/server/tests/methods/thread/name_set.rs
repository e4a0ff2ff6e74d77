//! `thread/name/set`.

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD};

#[tokio::test]
async fn a_name_shows_everywhere() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    client.transcript();
    let set = client.ask("thread/name/set", json!({"threadId": id, "name": "  my name "})).await;
    assert_eq!(set, json!({}));
    let told = client.next_of("thread/name/updated").await;
    assert_eq!(told, json!({"threadId": id, "threadName": "my name"}));
    assert_eq!(client.transcript(), ["= thread/name/set", "thread/name/updated"]);
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    let listed = client.ask("thread/list", json!({})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    for thread in [&read["thread"], &listed["data"][0], &resumed["thread"]] {
        assert_eq!((&thread["id"], &thread["name"]), (&json!(id), &json!("my name")));
    }
    let empty = client.refused("thread/name/set", json!({"threadId": id, "name": " "})).await;
    assert_eq!(empty, "thread name must not be empty");
    let unknown = client.refused("thread/name/set", json!({"threadId": UNKNOWN_THREAD, "name": "n"})).await;
    assert_eq!(unknown, format!("thread not found: {UNKNOWN_THREAD}"));
}

#[tokio::test]
async fn a_name_can_be_set_before_the_first_turn() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.ask("thread/name/set", json!({"threadId": id, "name": "early"})).await;
    assert_eq!(client.ask("thread/read", json!({"threadId": id})).await["thread"]["name"], "early");
    client.turn(&id, "hi").await;
    assert_eq!(client.ask("thread/list", json!({})).await["data"][0]["name"], "early");
}

#[tokio::test]
async fn a_name_is_told_to_every_client_loaded_or_not() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    for name in ["while loaded", "while stored"] {
        second.ask("thread/name/set", json!({"threadId": id, "name": name})).await;
        for client in [&mut first, &mut second] {
            assert_eq!(client.next_of("thread/name/updated").await["threadName"], name);
        }
        first.ask("thread/unsubscribe", json!({"threadId": id})).await;
    }
}
