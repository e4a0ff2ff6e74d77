//! Threads whose clients are gone without a word: when they leave memory.

use std::time::Duration;

use serde_json::json;
use testkit::Stage;

#[tokio::test]
async fn an_idle_thread_whose_clients_are_gone_leaves_memory() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let server = stage.listen_with(|options| options.unload_after = Duration::from_millis(50));
    let mut first = server.connect().await;
    let id = first.spoken_thread("hi").await;
    let mut other = server.connect().await;
    other.ask("thread/loaded/list", json!({})).await;
    drop(first);
    let told = other.wait_for("thread/closed", |params| params["threadId"] == json!(id)).await;
    assert_eq!(told["threadId"], json!(id));
    assert_eq!(other.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    // It is as it was.
    let opened = other.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(opened["thread"]["turns"].as_array().map(Vec::len), Some(1), "{opened}");
    other.turn(&id, "more").await;
}

#[tokio::test]
async fn the_oldest_of_too_many_leave_memory_and_those_with_a_listener_stay() {
    let stage = Stage::new(json!(vec![json!({"text": "hello"}); 5])).await;
    let server = stage.listen_with(|options| options.max_departed = 2);
    let mut watcher = server.connect().await;
    let watched = watcher.spoken_thread("hi").await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        let mut client = server.connect().await;
        ids.push(client.spoken_thread("hi").await);
        drop(client);
    }
    for id in &ids[..2] {
        watcher.wait_for("thread/closed", |params| params["threadId"] == json!(id)).await;
    }
    let mut loaded = vec![watched, ids[2].clone(), ids[3].clone()];
    loaded.sort();
    assert_eq!(watcher.ask("thread/loaded/list", json!({})).await["data"], json!(loaded));
}

#[tokio::test]
async fn what_cannot_be_opened_again_stays() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "hello"}])).await;
    let server = stage.listen_with(|options| {
        options.max_departed = 0;
        options.unload_after = Duration::from_millis(20);
    });
    let mut first = server.connect().await;
    let opened = first.ask("thread/start", json!({"ephemeral": true, "cwd": stage.cwd()})).await;
    let in_memory = opened["thread"]["id"].as_str().expect("an id").to_owned();
    let stored = first.spoken_thread("hi").await;
    let mut other = server.connect().await;
    other.ask("thread/loaded/list", json!({})).await;
    drop(first);
    other.wait_for("thread/closed", |params| params["threadId"] == json!(stored)).await;
    assert_eq!(other.ask("thread/loaded/list", json!({})).await["data"], json!([in_memory]));
}

#[tokio::test]
async fn threads_of_departed_clients_do_not_use_up_the_descriptors() {
    let stage = Stage::new(json!(vec![json!({"text": "hello"}); 60])).await;
    let server = stage.listen_with(|options| options.max_departed = 4);
    let open = || std::fs::read_dir("/proc/self/fd").expect("descriptors").count();
    let mut watcher = server.connect().await;
    let mut ids = Vec::new();
    let mut before = 0;
    for round in 0..60 {
        let mut client = server.connect().await;
        ids.push(client.spoken_thread("hi").await);
        drop(client);
        if round >= 4 {
            let gone = ids[round - 4].clone();
            watcher.wait_for("thread/closed", |params| params["threadId"] == json!(gone)).await;
        }
        if round == 10 {
            before = open();
        }
    }
    assert!(open() < before + 20, "{before} descriptors became {}", open());
}
