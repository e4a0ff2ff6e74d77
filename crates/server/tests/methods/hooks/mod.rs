//! Hooks: what they see, what they may stop, and what they may not.

mod around_commands;
mod ends;
mod example;
mod hostile;
mod list;
mod notify;
mod projects;
mod prompts;

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

const FREE: &str =
    "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nfeatures = { codex_hooks = true }";

/// A stage with hooks of the user's: events with their commands, one group each.
async fn stage(steps: Value, hooks: Value) -> Stage {
    let stage = Stage::configured(steps, FREE).await;
    write(&stage, &hooks);
    stage
}

fn write(stage: &Stage, hooks: &Value) {
    fs::write(stage.home().join("hooks.json"), json!({"hooks": hooks}).to_string()).expect("a file");
}

/// The groups of one event with this command.
fn run(command: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": command}]}])
}

async fn thread(stage: &Stage, client: &mut TestClient) -> String {
    client.start_thread(json!({"cwd": stage.cwd()})).await
}

/// The next run that has ended.
async fn ended(client: &mut TestClient) -> Value {
    client.next_of("hook/completed").await["run"].clone()
}

/// The words of the next model request, and of all before it.
fn asked(stage: &Stage) -> String {
    stage.asked().iter().map(|request| request["input"].to_string()).collect()
}
