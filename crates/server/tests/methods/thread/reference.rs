//! Threads of the reference in the same home.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{Stage, text};

const ID: &str = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2";

fn line(kind: &str, payload: &Value) -> String {
    format!("{}\n", json!({ "timestamp": "2026-11-17T19:37:08.163Z", "type": kind, "payload": payload }))
}

/// A rollout of one turn in the home of the stage.
fn rollout(stage: &Stage) -> PathBuf {
    let folder = stage.home().join("sessions/2026/11/17");
    fs::create_dir_all(&folder).expect("a folder");
    let message = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let meta = json!({ "id": ID, "timestamp": "2026-11-17T19:37:08.141Z", "cwd": stage.cwd(), "originator": "probe",
        "cli_version": "0.117.0", "source": "vscode", "model_provider": "mock" });
    let lines = [
        line("session_meta", &meta),
        line("event_msg", &json!({ "type": "task_started", "turn_id": "t1" })),
        line("turn_context", &json!({ "turn_id": "t1", "model": "their-model", "cwd": stage.cwd() })),
        line("response_item", &message("user", "input_text", "asked there")),
        line("event_msg", &json!({ "type": "user_message", "message": "asked there" })),
        line("event_msg", &json!({ "type": "agent_message", "message": "answered there" })),
        line("response_item", &message("assistant", "output_text", "answered there")),
        line("event_msg", &json!({ "type": "task_complete", "turn_id": "t1" })),
    ];
    let path = folder.join(format!("rollout-2026-11-17T19-37-06-{ID}.jsonl"));
    fs::write(&path, lines.concat()).expect("written");
    path
}

#[tokio::test]
async fn they_are_listed_read_and_continued_and_their_files_stay() {
    let stage = Stage::new(json!([{"text": "here"}, {"text": "again"}])).await;
    let path = rollout(&stage);
    let before = fs::read(&path).expect("read");
    let (server, mut client) = stage.open().await;
    let page = client.ask("thread/list", json!({})).await;
    let thread = &page["data"][0];
    assert_eq!((text(&thread["id"]), text(&thread["preview"])), (ID.to_owned(), "asked there".to_owned()));
    assert_eq!(text(&thread["path"]), path.to_string_lossy());
    let read = client.ask("thread/read", json!({"threadId": ID, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"][0]["items"][1]["text"], "answered there");
    // By its id and by its path, before and after it has a record of its own.
    let resumed = client.ask("thread/resume", json!({"threadId": ID})).await;
    assert_eq!(resumed["thread"]["turns"][0]["id"], "t1");
    assert_eq!((&resumed["model"], &resumed["thread"]["path"]), (&json!("their-model"), &thread["path"]));
    assert!(!stage.home().join("threads/2026").exists(), "nothing was written yet");
    client.turn(ID, "go on").await;
    let request = stage.asked().last().map(ToString::to_string).unwrap_or_default();
    for said in ["asked there", "answered there", "go on"] {
        assert!(request.contains(said), "{said}: {request}");
    }
    assert_eq!(fs::read(&path).expect("read"), before);
    let read = client.ask("thread/read", json!({"threadId": ID, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(2));
    assert_ne!(read["thread"]["path"], thread["path"]);
    drop(client);
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": ID, "path": path})).await;
    assert_eq!(resumed["thread"]["turns"].as_array().map(Vec::len), Some(2));
    client.turn(ID, "and on").await;
    assert_eq!(client.ask("thread/list", json!({})).await["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn they_are_forked_named_and_archived_without_being_touched() {
    let stage = Stage::new(json!([{"text": "here"}])).await;
    let path = rollout(&stage);
    let before = fs::read(&path).expect("read");
    let (_server, mut client) = stage.open().await;
    let forked = client.ask("thread/fork", json!({"threadId": ID})).await;
    assert_eq!(forked["thread"]["turns"][0]["items"][0]["content"][0]["text"], "asked there");
    client.turn(&text(&forked["thread"]["id"]), "branch").await;
    client.ask("thread/name/set", json!({"threadId": ID, "name": "Mine"})).await;
    let read = client.ask("thread/read", json!({"threadId": ID})).await;
    assert_eq!(read["thread"]["name"], "Mine");
    client.ask("thread/archive", json!({"threadId": ID})).await;
    let archived = client.ask("thread/list", json!({"archived": true})).await;
    assert_eq!(archived["data"][0]["id"], ID);
    assert_eq!(fs::read(&path).expect("read"), before);
}
