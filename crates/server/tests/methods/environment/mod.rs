//! `environment/*`, and environments in threads and turns.

mod add;
mod in_turns;
mod info;
mod status;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::{ReceivedRequest, ScriptedModel, Stage, TestClient};

/// Tools that need an environment.
const PLACED: [&str; 3] = ["exec_command", "apply_patch", "view_image"];

/// A stage with a model that answers when told to.
async fn paced() -> (Stage, ScriptedModel) {
    let stage = Stage::new(json!([])).await;
    let model = ScriptedModel::new().await;
    stage.configure_port(model.port(), "model = \"gpt-5.3-codex\"");
    (stage, model)
}

fn path(stage: &Stage, name: &str) -> String {
    stage.cwd().join(name).to_string_lossy().into_owned()
}

/// A folder of the stage, known as an environment of its own name.
async fn add_folder(stage: &Stage, client: &mut TestClient, name: &str) -> Value {
    let cwd = path(stage, name);
    fs::create_dir(&cwd).expect("a folder");
    let environment = json!({"type": "local", "cwd": cwd});
    client.ask("environment/add", json!({"environmentId": name, "environment": environment})).await;
    json!({"environmentId": name, "cwd": cwd})
}

/// An environment behind a script that can be opened, closed and taken away.
struct Door {
    prefix: PathBuf,
    draft: PathBuf,
}

impl Door {
    fn new(stage: &Stage) -> Self {
        let door = Self { prefix: stage.cwd().join("prefix"), draft: stage.cwd().join("draft") };
        door.hold("#!/bin/sh\necho still booting >&2\nexit 1\n");
        door
    }

    /// Put in place whole: a script that is open for writing cannot be run.
    fn hold(&self, script: &str) {
        fs::write(&self.draft, script).expect("written");
        fs::set_permissions(&self.draft, fs::Permissions::from_mode(0o755)).expect("executable");
        fs::rename(&self.draft, &self.prefix).expect("moved");
    }

    fn open(&self) {
        self.hold("#!/bin/sh\nINSIDE=the-box exec \"$@\"\n");
    }

    fn remove(&self) {
        fs::remove_file(&self.prefix).expect("removed");
    }

    async fn add(&self, client: &mut TestClient) {
        let environment = json!({"type": "command", "argv": [self.prefix], "cwd": "/"});
        client.ask("environment/add", json!({"environmentId": "box", "environment": environment})).await;
    }
}

async fn status(client: &mut TestClient, id: &str) -> (Value, Value) {
    let answer = client.ask("environment/status", json!({"environmentId": id})).await;
    (answer["status"].clone(), answer["error"].clone())
}

/// Asks until the answer is this one. Each answer is that of a probe, or of two seconds of patience with it.
async fn becomes(client: &mut TestClient, id: &str, expected: (Value, Value)) {
    let mut last = Default::default();
    for _ in 0..30 {
        last = status(client, id).await;
        if last == expected {
            return;
        }
    }
    panic!("{id} is {last:?} and not {expected:?}");
}

async fn attaches(client: &mut TestClient, id: &str) {
    becomes(client, id, (json!("attached"), Value::Null)).await;
}

/// Whether all the tools that need a place are there, or none of them.
fn has_tools(asked: &ReceivedRequest) -> bool {
    let tools = asked.tools();
    let there = PLACED.iter().filter(|name| tools.iter().any(|tool| tool == *name)).count();
    assert!(there == 0 || there == PLACED.len(), "{tools:?}");
    there > 0
}

fn open_sandbox(environments: &Value) -> Value {
    json!({"environments": environments, "approvalPolicy": "never", "sandbox": "danger-full-access"})
}

fn shell(cmd: &str) -> Value {
    json!({"cmd": cmd})
}
