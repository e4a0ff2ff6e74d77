//! Hooks that misbehave: the turn goes on, and what they say is bounded.

use std::fs;

use serde_json::json;
use testkit::{PLANTED, Stage, text};

use super::{ended, run, stage, thread, write};

#[tokio::test]
async fn a_hook_that_fails_changes_nothing() {
    for command in [
        "exit 1",
        "kill -9 $$",
        "no-such-program",
        "echo '{\"decision\":'",
        "echo '{\"made_up\":1}'",
        "yes x | head -c 3000000 >&2; exit 3",
        "printf '{'; head -c 3000000 /dev/zero | tr '\\0' x",
    ] {
        let stage = stage(json!([{"text": "fine"}]), json!({"UserPromptSubmit": run(command)})).await;
        let (_server, mut client) = stage.open().await;
        let id = thread(&stage, &mut client).await;
        client.start_turn(&id, "hello").await;
        let failed = ended(&mut client).await;
        assert_eq!(
            (&failed["status"], &failed["entries"][0]["kind"]),
            (&json!("failed"), &json!("error")),
            "{command}"
        );
        assert!(text(&failed["entries"][0]["text"]).len() < 20_000, "{command}");
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{command}");
        assert_eq!(stage.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_hook_has_its_time_and_no_more() {
    let hook = json!([{"hooks": [{"type": "command", "command": "sleep 600 & sleep 600", "timeout": 1}]}]);
    let stage = stage(json!([{"text": "fine"}]), json!({"UserPromptSubmit": hook})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "hello").await;
    let failed = ended(&mut client).await;
    assert_eq!(failed["entries"][0]["text"], "the hook ran out of time after 1 s");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
}

#[tokio::test]
async fn a_hook_is_confined_like_a_command() {
    let stage = Stage::configured(
        json!([{"text": "fine"}]),
        "approval_policy = \"never\"\nsandbox_mode = \"read-only\"\nfeatures = { codex_hooks = true }",
    )
    .await;
    let elsewhere = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let file = elsewhere.path().join("made");
    let command = format!(
        "touch {0} made 2>/dev/null; env; cat {1}/config.toml; exit 0",
        file.display(),
        stage.home().display()
    );
    write(&stage, &json!({"UserPromptSubmit": run(&command)}));
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "hello").await;
    let run = ended(&mut client).await;
    client.next_of("turn/completed").await;
    assert!(!file.exists() && !stage.cwd().join("made").exists());
    let said = run.to_string();
    assert!(said.contains("CODEX_THREAD_ID") && !said.contains(PLANTED), "{said}");
    assert!(!said.contains("model_providers"), "our own files are hidden: {said}");
}

#[tokio::test]
async fn hooks_run_at_the_same_time_and_are_told_apart() {
    let commands = json!([{"hooks": [
        {"type": "command", "command": "touch a; while [ ! -e b ]; do sleep 0.01; done; echo from a"},
        {"type": "command", "command": "touch b; while [ ! -e a ]; do sleep 0.01; done; echo from b"},
    ]}]);
    let stage = stage(json!([{"text": "fine"}]), json!({"UserPromptSubmit": commands})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "hello").await;
    let mut orders =
        [ended(&mut client).await["displayOrder"].clone(), ended(&mut client).await["displayOrder"].clone()];
    orders.sort_by_key(|order| order.as_i64());
    assert_eq!(orders, [json!(0), json!(1)]);
    client.next_of("turn/completed").await;
    let asked = stage.asked()[0]["input"].to_string();
    let (one, other) = (asked.find("from a").expect("said"), asked.find("from b").expect("said"));
    assert!(one < other, "in the order of the hooks");
    assert!(fs::exists(stage.cwd().join("a")).expect("known"));
}
