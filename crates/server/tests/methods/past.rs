//! `thread/fork`, `thread/read`, `thread/name/set` and `thread/rollback`.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{text, told, turn};
use crate::stage::{Stage, endless};

const UNKNOWN: &str = "019a8b3c-0000-7000-8000-000000000001";

#[tokio::test]
async fn a_fork_is_a_copy_with_an_id_of_its_own() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "apart"}])).await;
    let (_server, mut client) = stage.open().await;
    let source = client.spoken_thread("hi").await;
    client.ask("thread/name/set", json!({"threadId": source, "name": "mine"})).await;
    let read = client.ask("thread/read", json!({"threadId": source, "includeTurns": true})).await;
    let path = text(&read["thread"]["path"]);
    let bytes = std::fs::read(&path).expect("a record");
    client.rest().await;
    client.transcript();

    let forked = client.ask("thread/fork", json!({"threadId": source})).await;
    let thread = &forked["thread"];
    let id = text(&thread["id"]);
    assert_ne!(id, source);
    assert_ne!(text(&thread["path"]), path);
    assert_eq!((&thread["forkedFromId"], &thread["preview"]), (&json!(source), &json!("hi")));
    assert_eq!((&thread["name"], &thread["status"]), (&Value::Null, &json!({"type": "idle"})));
    assert_eq!(thread["turns"], read["thread"]["turns"]);
    assert_eq!(&client.next_of("thread/started").await["thread"], thread);
    assert_eq!(client.transcript(), ["= thread/fork", "thread/started"]);
    assert_eq!(client.turn(&id, "my own way").await["status"], "completed");
    assert_eq!(std::fs::read(&path).expect("a record"), bytes);
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("hello") && input.contains("my own way"), "{input}");
}

#[tokio::test]
async fn a_fork_by_path_wins_over_the_id() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let source = client.spoken_thread("hi").await;
    let path = client.ask("thread/read", json!({"threadId": source})).await["thread"]["path"].clone();
    let forked = client.ask("thread/fork", json!({"threadId": "not-an-id", "path": path})).await;
    assert_eq!(told(&forked["thread"]), ["completed: hi"]);
    assert_eq!(forked["thread"]["forkedFromId"], json!(source));
    let missing = client.refused("thread/fork", json!({"threadId": source, "path": "/no/such.jsonl"})).await;
    assert!(missing.starts_with("failed to load rollout `/no/such.jsonl`: "), "{missing}");
}

#[tokio::test]
async fn what_was_never_recorded_cannot_be_forked() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    for id in [thread.as_str(), UNKNOWN] {
        let message = client.refused("thread/fork", json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"));
    }
}

#[tokio::test]
async fn an_ephemeral_fork_has_the_past_and_no_record() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "apart"}])).await;
    let (_server, mut client) = stage.open().await;
    let source = client.spoken_thread("hi").await;
    let forked = client.ask("thread/fork", json!({"threadId": source, "ephemeral": true})).await;
    let thread = &forked["thread"];
    assert_eq!((thread.get("path"), &thread["ephemeral"]), (Some(&Value::Null), &json!(true)));
    assert_eq!(told(thread), ["completed: hi"]);
    let id = text(&thread["id"]);
    assert_eq!(client.turn(&id, "more").await["status"], "completed");
    let listed = client.ask("thread/list", json!({})).await;
    let ids: Vec<&Value> =
        listed["data"].as_array().expect("threads").iter().map(|thread| &thread["id"]).collect();
    assert_eq!(ids, [&json!(source)]);
}

#[tokio::test]
async fn what_a_turn_chose_is_kept_by_its_thread_and_not_by_a_copy() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let elsewhere = stage.cwd().join("sub");
    let turn = json!({"threadId": id, "input": [{"type": "text", "text": "hi"}], "cwd": elsewhere, "model": "chosen",
        "effort": "high"});
    client.ask("turn/start", turn).await;
    client.next_of("turn/completed").await;
    let forked = client.ask("thread/fork", json!({"threadId": id})).await;
    let settings = |opened: &Value| json!([opened["model"], opened["reasoningEffort"], opened["cwd"]]);
    assert_eq!(settings(&forked), json!(["mock-model", null, stage.cwd()]));
    let chosen = client.ask("thread/fork", json!({"threadId": id, "model": "other", "cwd": elsewhere})).await;
    assert_eq!(settings(&chosen), json!(["other", null, elsewhere]));
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(settings(&resumed), json!(["chosen", "high", stage.cwd()]));
}

#[tokio::test]
async fn a_copy_stays_with_the_provider_of_its_source() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let history = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "from afar"}]}]);
    let params =
        json!({"threadId": UNKNOWN, "history": history, "model": "theirs", "modelProvider": "other"});
    let resumed = client.ask("thread/resume", params).await;
    let forked = client.ask("thread/fork", json!({"threadId": resumed["thread"]["id"]})).await;
    assert_eq!((&forked["model"], &forked["modelProvider"]), (&json!("theirs"), &json!("other")));
}

#[tokio::test]
async fn a_fork_of_a_running_turn_is_cut_and_the_source_goes_on() {
    let stage = Stage::new(json!([{"text": "zero"}, endless("part"), {"text": "new"}])).await;
    let (_server, mut client) = stage.open().await;
    let source = client.spoken_thread("before").await;
    let turn_id = client.start_turn(&source, "work").await;
    client.wait_for("item/agentMessage/delta", |params| params["turnId"] == json!(turn_id)).await;
    let forked = client.ask("thread/fork", json!({"threadId": source})).await;
    assert_eq!(told(&forked["thread"]), ["completed: before", "interrupted: work"]);
    let id = text(&forked["thread"]["id"]);
    assert_eq!(client.turn(&id, "on my own").await["status"], "completed");
    assert!(stage.asked()[2]["input"].to_string().contains("<turn_aborted>"));
    let read = client.ask("thread/read", json!({"threadId": source, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: before", "inProgress: work"]);
}

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
    let unknown = client.refused("thread/read", json!({"threadId": UNKNOWN})).await;
    assert_eq!(unknown, format!("thread not loaded: {UNKNOWN}"));
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
    let unknown = client.refused("thread/name/set", json!({"threadId": UNKNOWN, "name": "n"})).await;
    assert_eq!(unknown, format!("thread not found: {UNKNOWN}"));
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
async fn a_rollback_drops_the_last_turns_for_good() {
    let stage = Stage::new(json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    client.turn(&id, "two").await;
    client.turn(&id, "three").await;
    client.rest().await;
    client.transcript();
    let rolled = client.ask("thread/rollback", json!({"threadId": id, "numTurns": 2})).await;
    assert_eq!(told(&rolled["thread"]), ["completed: one"]);
    let counted = ["thread/tokenUsage/updated", "account/rateLimits/updated", "= thread/rollback"];
    assert_eq!(client.transcript(), counted);
    assert_eq!(rolled["thread"].get("name"), Some(&Value::Null));
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["completed: one"]);
    client.turn(&id, "four").await;
    let input = stage.asked()[3]["input"].to_string();
    assert!(
        input.contains("\"one\"") && !input.contains("\"two\"") && !input.contains("\"three\""),
        "{input}"
    );
    let rolled = client.ask("thread/rollback", json!({"threadId": id, "numTurns": 9})).await;
    assert_eq!(rolled["thread"]["turns"], json!([]));
}

#[tokio::test]
async fn a_rollback_needs_turns_and_peace() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let zero = client.refused("thread/rollback", json!({"threadId": id, "numTurns": 0})).await;
    assert_eq!(zero, "numTurns must be >= 1");
    client.ask("turn/start", turn(&id, "work")).await;
    let busy = client.refused("thread/rollback", json!({"threadId": id, "numTurns": 1})).await;
    assert_eq!(busy, "Cannot rollback while a turn is in progress.");
    let unknown = client.refused("thread/rollback", json!({"threadId": UNKNOWN, "numTurns": 1})).await;
    assert_eq!(unknown, format!("thread not found: {UNKNOWN}"));
}
