//! `skills/changed`.

use serde_json::json;
use testkit::Stage;

use super::{here, listed, skill};

#[tokio::test]
async fn a_changed_skill_is_told_to_subscribers() {
    let stage = Stage::new(json!([{"text": "one"}])).await;
    skill(&stage, "home/skills/a", "first");
    let server = stage.listen();
    let (mut client, mut stranger) = (server.connect().await, server.connect().await);
    let thread = client.start_thread(json!({"cwd": here(&stage)})).await;
    // The list is known, and so is that it changes.
    assert_eq!(listed(&mut client, json!({"cwds": [here(&stage)]})).await, ["user a true"]);
    client.turn(&thread, "hello").await;
    // The folder of the project is made now.
    skill(&stage, "work/.codex/skills/b", "second");
    assert_eq!(client.wait_for("skills/changed", |_| true).await, json!({}));
    assert_eq!(
        listed(&mut client, json!({"cwds": [here(&stage)]})).await,
        ["repo b true", "user a true"],
        "what is told is known already"
    );
    assert!(!stranger.rest().await.contains(&"skills/changed".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_skill_changed_right_after_a_start_is_told() {
    change_right_after("thread/start", 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_skill_changed_right_after_a_resume_is_told() {
    change_right_after("thread/resume", 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_skill_changed_right_after_a_fork_is_told() {
    change_right_after("thread/fork", 20).await;
}

/// Changes a skill as soon as the response to `method` is there.
async fn change_right_after(method: &'static str, count: usize) {
    let mut tries = tokio::task::JoinSet::new();
    for at in 0..count {
        // Five at a time. Each has its own server: clients are notified every ten seconds at most.
        while tries.len() >= 5 {
            tries.join_next().await.expect("one").expect("told");
        }
        tries.spawn(async move {
            let stage = Stage::new(json!([{"text": "one"}])).await;
            skill(&stage, "home/skills/a", "first");
            let mut params = json!({"cwd": here(&stage)});
            if method != "thread/start" {
                let (server, mut client) = stage.open().await;
                let thread = client.start_thread(params).await;
                client.turn(&thread, "hello").await;
                params = json!({"threadId": thread});
                server.stop().await;
            }
            let (_server, mut client) = stage.open().await;
            client.ask(method, params).await;
            skill(&stage, ["home/skills/a", "work/.codex/skills/b"][at % 2], "second");
            assert_eq!(client.wait_for("skills/changed", |_| true).await, json!({}));
        });
    }
    while let Some(done) = tries.join_next().await {
        done.expect("told");
    }
}
