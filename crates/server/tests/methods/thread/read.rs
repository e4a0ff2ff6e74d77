//! `thread/read`.

use std::path::Path;

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, text, told};

#[tokio::test]
async fn a_stored_thread_is_read_without_being_loaded() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    let thread = &read["thread"];
    assert_eq!((&thread["turns"], &thread["status"]), (&json!([]), &json!({"type": "notLoaded"})));
    assert_eq!((&thread["preview"], &thread["modelProvider"]), (&json!("hi"), &json!("mock")));
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: hi"]);
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    let unknown = client.refused("thread/read", json!({"threadId": UNKNOWN_THREAD})).await;
    assert_eq!(unknown, format!("thread not loaded: {UNKNOWN_THREAD}"));
}

#[tokio::test]
async fn a_thread_knows_its_path_before_it_has_a_file() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    let path = text(&read["thread"]["path"]);
    assert!(!Path::new(&path).exists());
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}));
    let message = client.refused("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(
        message,
        format!("thread {id} is not materialized yet; includeTurns is unavailable before first user message")
    );
}

#[tokio::test]
async fn a_failed_turn_shows_in_the_status_of_read_and_list() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}});
    let stage = Stage::new(json!([fail, {"text": "better"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    assert_eq!(client.turn(&id, "hi").await["status"], "failed");
    let broken = json!({"type": "systemError"});
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"], broken);
    let listed = client.ask("thread/list", json!({})).await;
    assert_eq!(listed["data"][0]["status"], broken);
    client.turn(&id, "again").await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}));
}

#[tokio::test]
async fn turns_without_words_can_be_read() {
    let stage = Stage::configured(json!([]), "sandbox_mode = \"danger-full-access\"").await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.ask("thread/shellCommand", json!({"threadId": id, "command": "true"})).await;
    client.wait_for("turn/completed", |params| params["threadId"] == json!(id)).await;
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(1), "{read}");
}
