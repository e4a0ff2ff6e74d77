//! Stopping a turn: nothing that it waited for goes on after `turn/completed`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Stage, TestClient, until, within};

const FREE: &str =
    "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\nallow_login_shell = false";
const CONFINED: &str =
    "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\nallow_login_shell = false";
/// Writes as fast as it can, also from a child that a shell's end does not end.
const WRITER: &str = "(while :; do echo x >> child; done) & while :; do echo x >> own; done";

fn call(tool: &str, arguments: &Value) -> Value {
    json!([{"call": {"name": tool, "callId": "call-1", "arguments": arguments}}, {"text": "done"}])
}

fn sizes(folder: &Path) -> [u64; 2] {
    ["own", "child"].map(|name| std::fs::metadata(folder.join(name)).map_or(0, |file| file.len()))
}

/// Waits until no process works in the folder: what is written there then stays as it is.
async fn until_left(folder: &Path) {
    let works_there = |process: std::fs::DirEntry| {
        std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    };
    let processes = || std::fs::read_dir("/proc").expect("processes").flatten();
    until("no process works in the folder", || !processes().any(works_there)).await;
}

async fn until_written(folder: &Path) {
    until("both files are written", || !sizes(folder).contains(&0)).await;
}

/// Interrupts, and says in which order the command's item and the turn ended and how much was written by then.
async fn stop(client: &mut TestClient, thread: &str, folder: &Path) -> (Vec<&'static str>, [u64; 2]) {
    client.send("turn/interrupt", json!({"threadId": thread, "turnId": ""})).await;
    let ending = async {
        let mut ends = Vec::new();
        loop {
            let told = client.next().await;
            match told["method"].as_str() {
                Some("item/completed") if told["params"]["item"]["type"] == "commandExecution" => {
                    ends.push("item");
                }
                Some("turn/completed") => {
                    ends.push("turn");
                    return (ends, sizes(folder));
                }
                _ => {}
            }
        }
    };
    within("the end of the interrupted turn", ending).await
}

async fn stage(tool: &str, arguments: &Value, keys: &str) -> (Stage, PathBuf) {
    let stage = Stage::configured(call(tool, arguments), keys).await;
    let folder = stage.cwd();
    (stage, folder)
}

#[tokio::test]
async fn nothing_is_written_after_the_end_of_a_stopped_turn() {
    let cases = [
        ("shell", json!({"command": ["sh", "-c", WRITER], "timeout_ms": 60_000})),
        ("shell_command", json!({"command": WRITER, "timeout_ms": 60_000})),
        ("exec_command", json!({"cmd": WRITER, "yield_time_ms": 30_000})),
        ("exec_command", json!({"cmd": WRITER, "yield_time_ms": 30_000, "tty": true})),
    ];
    for keys in [FREE, CONFINED] {
        for (tool, arguments) in &cases {
            let (stage, folder) = stage(tool, arguments, keys).await;
            let (_server, mut client) = stage.open().await;
            let id = client.start_thread(json!({"cwd": folder})).await;
            client.start_turn(&id, "go").await;
            until_written(&folder).await;
            let (ends, written) = stop(&mut client, &id, &folder).await;
            assert_eq!(ends, ["item", "turn"], "{tool} {keys}");
            until_left(&folder).await;
            assert_eq!(sizes(&folder), written, "{tool} {keys}");
        }
    }
}

#[tokio::test]
async fn a_command_of_the_users_own_ends_with_its_turn() {
    let stage = Stage::configured(json!([]), FREE).await;
    let (folder, (_server, mut client)) = (stage.cwd(), stage.open().await);
    let id = client.start_thread(json!({"cwd": folder})).await;
    client.ask("thread/shellCommand", json!({"threadId": id, "command": WRITER})).await;
    until_written(&folder).await;
    let (ends, written) = stop(&mut client, &id, &folder).await;
    assert_eq!(ends, ["item", "turn"]);
    until_left(&folder).await;
    assert_eq!(sizes(&folder), written);
}

/// The model has its id and may come back to it.
#[tokio::test]
async fn a_terminal_in_the_background_outlives_a_stopped_turn() {
    let steps = json!([
        {"call": {"name": "exec_command", "callId": "call-1", "arguments": {"cmd": WRITER, "yield_time_ms": 250}}},
        {"call": {"name": "shell_command", "callId": "call-2",
            "arguments": {"command": "touch begun; sleep 600", "timeout_ms": 600_000}}},
        {"text": "done"},
    ]);
    let stage = Stage::configured(steps, FREE).await;
    let (folder, (_server, mut client)) = (stage.cwd(), stage.open().await);
    let id = client.start_thread(json!({"cwd": folder})).await;
    client.start_turn(&id, "go").await;
    until("the command has begun", || folder.join("begun").exists()).await;
    let (ends, written) = stop(&mut client, &id, &folder).await;
    assert_eq!(ends, ["item", "turn"]);
    until("the terminal writes on", || sizes(&folder) != written).await;
    client.ask("thread/backgroundTerminals/clean", json!({"threadId": id})).await;
    client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
}

/// Its item has not even begun to run when the turn ends.
#[tokio::test]
async fn what_is_asked_about_does_not_start_after_the_turn() {
    let keys = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
    let (stage, folder) = stage("exec_command", &json!({"cmd": WRITER}), keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": folder})).await;
    client.start_turn(&id, "go").await;
    client.next_of("item/commandExecution/requestApproval").await;
    let (ends, _) = stop(&mut client, &id, &folder).await;
    assert_eq!(ends, ["item", "turn"]);
    // A command of the user's that comes after it has run, so it would have begun.
    client.ask("thread/shellCommand", json!({"threadId": id, "command": "touch later"})).await;
    until("the later command has run", || folder.join("later").exists()).await;
    until_left(&folder).await;
    assert_eq!(sizes(&folder), [0, 0]);
}
