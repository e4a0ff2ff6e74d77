//! Commands of the model as clients see them: what is refused, and what is too long to be shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use testkit::Stage;

use super::{FREE, call};

const CONFINED: &str = "approval_policy = \"never\"\nsandbox_mode = \"read-only\"";

#[tokio::test]
async fn what_the_policy_refuses_begins_and_is_declined() {
    let stage = Stage::configured(call("shell", &json!({"command": ["rm", "-rf", "x"]})), CONFINED).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let is_command = |params: &Value| params["item"]["type"] == "commandExecution";
    let begun = client.wait_for("item/started", is_command).await;
    assert_eq!(
        (&begun["item"]["status"], &begun["item"]["command"]),
        (&json!("inProgress"), &json!("rm -rf x"))
    );
    let done = client.wait_for("item/completed", is_command).await;
    assert_eq!((&done["item"]["status"], &done["item"]["exitCode"]), (&json!("declined"), &json!(-1)));
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    // It is what happened, so it is in the record.
    let thread = stage.read(&id).await;
    let items = thread["turns"][0]["items"].as_array().expect("items").clone();
    let kept = items.iter().find(|item| item["type"] == "commandExecution").expect("the command");
    assert_eq!(kept["status"], "declined");
}

#[tokio::test]
async fn a_long_output_is_in_a_file_until_its_thread_is_archived() {
    let stage = Stage::configured(call("exec_command", &json!({"cmd": "seq 70000"})), FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    let shown = done["item"]["aggregatedOutput"].as_str().expect("output").to_owned();
    let (_, line) = shown.rsplit_once("[Full output: ").expect("a line");
    let path = line.split(" (").next().expect("a path");
    client.next_of("turn/completed").await;
    let asked = stage.asked().last().expect("a request").to_string();
    assert!(asked.contains(&format!("Full output: {path} (408894 bytes)")), "{asked}");
    let file = fs::metadata(path).expect("there");
    assert_eq!((file.len(), file.permissions().mode() & 0o777), (408_894, 0o600));
    let folder = Path::new(path).parent().expect("a folder");
    assert_eq!(folder.file_name().expect("a name").to_string_lossy(), id);
    client.ask("thread/archive", json!({"threadId": id})).await;
    assert!(!folder.exists());
}

#[tokio::test]
async fn an_ephemeral_thread_keeps_no_output() {
    let stage = Stage::configured(call("exec_command", &json!({"cmd": "seq 70000"})), FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd(), "ephemeral": true})).await;
    client.turn(&id, "go").await;
    let asked = stage.asked().last().expect("a request").to_string();
    assert!(asked.contains("70000") && !asked.contains("Full output"), "{asked}");
}
