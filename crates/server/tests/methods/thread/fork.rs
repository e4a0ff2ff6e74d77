//! `thread/fork`.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, endless, text, told};

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
    for id in [thread.as_str(), UNKNOWN_THREAD] {
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
        json!({"threadId": UNKNOWN_THREAD, "history": history, "model": "theirs", "modelProvider": "other"});
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
