//! Servers that end in the middle of a review.

use serde_json::json;
use testkit::{Stage, until};

use super::{commit, last_input, review};

/// A command of the reviewer ran once, is not run again, and its end is not made up.
#[tokio::test]
async fn a_review_that_is_cut_off_is_over_and_its_command_is_not_run_again() {
    let cmd = "echo run >> runs; sleep 60";
    let call = json!({"name": "exec_command", "callId": "call-1", "arguments": {"cmd": cmd, "yield_time_ms": 30000}});
    let stage = Stage::configured(
        json!([{"text": "base"}, {"call": call}, {"text": "after"}]),
        "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"",
    )
    .await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "start").await;
    let turn_id = review(&mut client, &id, commit()).await;
    let runs = stage.cwd().join("runs");
    until("the command runs", || runs.exists()).await;
    server.kill().await;

    let (_server, mut client) = stage.open().await;
    for resume_turn in [true, false] {
        let resumed =
            client.ask("thread/resume", json!({"threadId": id, "resumeTurn": resume_turn})).await["thread"]
                .clone();
        assert_eq!(resumed["status"], json!({"type": "idle"}), "resumeTurn {resume_turn}");
        let turn = &resumed["turns"][1];
        assert_eq!((&turn["id"], &turn["status"]), (&json!(turn_id), &json!("interrupted")));
        let items = turn["items"].as_array().expect("items");
        assert_eq!(items[0]["type"], "enteredReviewMode");
        assert_eq!(items[0]["review"], "commit 1234567: Tidy UI");
        assert_eq!((&items[2]["id"], &items[2]["status"]), (&json!("call-1"), &json!("failed")));
    }
    client.turn(&id, "next").await;
    let input = last_input(&stage);
    assert!(!input.contains("echo run") && !input.contains("introduced by commit"), "{input}");
    assert_eq!(std::fs::read_to_string(&runs).expect("runs"), "run\n");
    stage.assert_played();
}

/// The answer to `review/start` is given when the review is in the record.
#[tokio::test]
async fn a_review_that_was_answered_survives_a_kill_at_once() {
    let stage = Stage::new(json!([{"text": "base"}, testkit::endless("part")])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    let turn_id = review(&mut client, &id, commit()).await;
    server.kill().await;
    let read = stage.read(&id).await;
    let turn = &read["turns"][1];
    assert_eq!((&turn["id"], &turn["status"]), (&json!(turn_id), &json!("interrupted")));
    assert_eq!(testkit::kinds(turn), ["enteredReviewMode", "userMessage"]);
}
