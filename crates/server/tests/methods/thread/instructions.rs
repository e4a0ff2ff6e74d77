//! Instructions: which there are, who may set them, and when the model hears of them.

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, text, turn};

fn answers(count: usize) -> Value {
    json!(vec![json!({"text": "ok"}); count])
}

/// `role: text` of every part of the last request.
fn lines(stage: &Stage) -> Vec<String> {
    let request = stage.asked().pop().expect("a request");
    let mut lines = Vec::new();
    for message in request["input"].as_array().expect("input") {
        let role = message["role"].as_str().unwrap_or_default();
        let parts = message["content"].as_array().into_iter().flatten();
        lines.extend(parts.map(|part| format!("{role}: {}", part["text"].as_str().unwrap_or_default())));
    }
    lines
}

fn having(lines: &[String], what: &str) -> Vec<String> {
    lines.iter().filter(|line| line.contains(what)).cloned().collect()
}

fn base(stage: &Stage) -> String {
    text(&stage.asked().pop().expect("a request")["instructions"])
}

#[tokio::test]
async fn base_instructions_replace_and_developer_instructions_add() {
    let stage = Stage::new(answers(4)).await;
    let (_server, mut client) = stage.open().await;
    let plain = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&plain, "hi").await;
    let built_in = base(&stage);
    assert!(built_in.starts_with("You are Oarlock") && built_in.contains("update_plan"), "{built_in}");

    let replaced = client.start_thread(json!({"baseInstructions": "Only this."})).await;
    client.turn(&replaced, "hi").await;
    assert_eq!(base(&stage), "Only this.");

    let added = client.start_thread(json!({"developerInstructions": "And that."})).await;
    client.turn(&added, "hi").await;
    assert_eq!(base(&stage), built_in);
    client.turn(&added, "again").await;
    let lines = lines(&stage);
    assert_eq!(having(&lines, "And that."), ["developer: And that."], "told once: {lines:?}");
    assert!(lines[0].starts_with("developer: <permissions instructions>"), "{lines:?}");
    assert_eq!(lines[1], "developer: And that.");
}

#[tokio::test]
async fn a_stored_thread_keeps_its_instructions_and_so_does_a_copy() {
    let stage = Stage::new(answers(4)).await;
    let (server, mut client) = stage.open().await;
    let params = json!({"baseInstructions": "Only this.", "developerInstructions": "And that."});
    let id = client.start_thread(params).await;
    client.turn(&id, "hi").await;
    server.stop().await;

    let (server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "again").await;
    assert_eq!(base(&stage), "Only this.");
    assert_eq!(having(&lines(&stage), "And that."), ["developer: And that."]);

    let copy = client.ask("thread/fork", json!({"threadId": id})).await;
    client.turn(&text(&copy["thread"]["id"]), "and the copy").await;
    assert_eq!(base(&stage), "Only this.");
    assert_eq!(having(&lines(&stage), "And that.").len(), 1);
    server.stop().await;

    // Whoever resumes it may choose anew.
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id, "baseInstructions": "Now this."})).await;
    client.turn(&id, "once more").await;
    assert_eq!(base(&stage), "Now this.");
}

#[tokio::test]
async fn a_personality_is_told_once_and_when_it_changes() {
    let stage = Stage::new(answers(4)).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"personality": "friendly"})).await;
    client.turn(&id, "hi").await;
    let friendly = having(&lines(&stage), "<personality_spec>");
    assert_eq!(friendly.len(), 1);
    client.turn(&id, "again").await;
    assert_eq!(having(&lines(&stage), "<personality_spec>"), friendly);
    let mut params = turn(&id, "shorter");
    params["personality"] = json!("pragmatic");
    client.turn_with(params).await;
    let both = having(&lines(&stage), "<personality_spec>");
    assert_eq!((both.len(), &both[0]), (2, &friendly[0]));
    assert_ne!(both[1], friendly[0]);
    client.turn(&id, "still").await;
    assert_eq!(having(&lines(&stage), "<personality_spec>"), both);
}

#[tokio::test]
async fn own_instructions_of_a_thread_have_no_tone_baked_in() {
    let stage = Stage::new(answers(1)).await;
    let (_server, mut client) = stage.open().await;
    let params = json!({"baseInstructions": "Only this.", "personality": "friendly"});
    let id = client.start_thread(params).await;
    client.turn(&id, "hi").await;
    assert_eq!(base(&stage), "Only this.");
    assert_eq!(having(&lines(&stage), "<personality_spec>").len(), 1);
}

#[tokio::test]
async fn agents_files_are_told_once_and_again_when_they_change() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {}});
    let stage =
        Stage::new(json!([{"text": "ok"}, {"text": "ok"}, {"call": call}, {"text": "ok"}, {"text": "ok"}]))
            .await;
    let file = stage.cwd().join("AGENTS.md");
    fs::write(&file, "Use tabs.").expect("a file");
    fs::write(stage.home().join("AGENTS.md"), "Be kind.").expect("a file");
    let (server, mut client) = stage.open().await;
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = client.start_thread(json!({"cwd": stage.cwd(), "dynamicTools": [tool]})).await;
    client.turn(&id, "one").await;
    let first = having(&lines(&stage), "# AGENTS.md instructions for ");
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first[0].starts_with("user: ") && first[0].contains("Be kind.\n\n--- project-doc ---\n\nUse tabs.")
    );
    client.turn(&id, "two").await;
    assert_eq!(having(&lines(&stage), "# AGENTS.md instructions for "), first);

    // Between two requests of one turn.
    client.ask("turn/start", turn(&id, "three")).await;
    let question = client.next_of("item/tool/call").await;
    fs::write(&file, "Use spaces.").expect("a file");
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    client.next_of("turn/completed").await;
    client.rest().await;
    let told = having(&lines(&stage), "# AGENTS.md instructions for ");
    assert_eq!((told.len(), &told[0]), (2, &first[0]));
    assert!(told[1].contains("Use spaces.") && !told[1].contains("Use tabs."), "{told:?}");
    server.stop().await;

    // While nobody had the thread open.
    fs::remove_file(&file).expect("removed");
    fs::remove_file(stage.home().join("AGENTS.md")).expect("removed");
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "four").await;
    let told = having(&lines(&stage), "# AGENTS.md instructions for ");
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[2].contains("no longer hold"), "{told:?}");
    stage.assert_played();
}
