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
async fn a_patch_that_the_policy_refuses_begins_and_is_declined() {
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch";
    let calls =
        json!([{"call": {"name": "apply_patch", "callId": "call-1", "input": patch}}, {"text": "done"}]);
    let config = format!("{CONFINED}\n[features]\napply_patch_freeform = true");
    let stage = Stage::configured(calls, &config).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let is_patch = |params: &Value| params["item"]["type"] == "fileChange";
    let begun = client.wait_for("item/started", is_patch).await["item"].clone();
    assert_eq!((&begun["status"], begun.get("reason")), (&json!("inProgress"), None));
    let done = client.wait_for("item/completed", is_patch).await["item"].clone();
    let file = stage.cwd().join("new.txt").display().to_string();
    let reason = format!(
        "patch rejected: {file} is outside of what may be written to (sandbox `read-only`), and nobody can be asked \
         (approval policy `never`)"
    );
    assert_eq!((&done["status"], &done["reason"]), (&json!("declined"), &json!(reason)));
    assert_eq!((&done["id"], &done["changes"]), (&begun["id"], &begun["changes"]));
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    // The model reads the same, and so do readers of the record, of the thread resumed, and of a fork.
    assert_eq!(
        stage.asked()[1]["input"].as_array().expect("items").last().expect("one")["output"],
        json!(reason)
    );
    let fork = client.ask("thread/fork", json!({"threadId": id})).await["thread"].clone();
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await["thread"].clone();
    for thread in [stage.read(&id).await, fork, resumed] {
        let items = thread["turns"][0]["items"].as_array().expect("items").clone();
        assert_eq!(items.iter().find(|item| item["type"] == "fileChange"), Some(&done));
    }
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
