//! Commands as clients see them: what is refused, what is too long to be shown, and whose time stands still.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::stage::Stage;

const FREE: &str = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
const CONFINED: &str = "approval_policy = \"never\"\nsandbox_mode = \"read-only\"";
const UNKNOWN: &str = "019a8b3c-0000-7000-8000-000000000001";

fn call(tool: &str, arguments: &Value) -> Value {
    json!([{"call": {"name": tool, "callId": "call-1", "arguments": arguments}}, {"text": "done"}])
}

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

#[tokio::test]
async fn time_stands_still_while_a_client_asks_in_a_way_of_its_own() {
    let script = "until [ -e go ]; do sleep 0.01; done; echo done";
    let steps = call("shell_command", &json!({"command": script, "timeout_ms": 1}));
    let stage = Stage::configured(steps, FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let (open, close) = ("thread/increment_elicitation", "thread/decrement_elicitation");
    let thread = json!({"threadId": id});
    assert_eq!(client.ask(open, thread.clone()).await, json!({"count": 1, "paused": true}));
    assert_eq!(client.ask(open, thread.clone()).await, json!({"count": 2, "paused": true}));
    assert_eq!(client.ask(close, thread.clone()).await, json!({"count": 1, "paused": true}));
    client.start_turn(&id, "go").await;
    client.wait_for("item/started", |params| params["item"]["type"] == "commandExecution").await;
    fs::write(stage.cwd().join("go"), "").expect("written");
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!((&done["item"]["exitCode"], &done["item"]["aggregatedOutput"]), (&json!(0), &json!("done\n")));
    client.next_of("turn/completed").await;
    assert_eq!(client.ask(close, thread.clone()).await, json!({"count": 0, "paused": false}));
    let refused = client.request(close, thread).await.expect_err("it is at zero");
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (-32600, "out-of-band elicitation count is already zero")
    );
    let message = client.refused(open, json!({"threadId": UNKNOWN})).await;
    assert_eq!(message, format!("thread not found: {UNKNOWN}"));
}

#[tokio::test]
async fn time_goes_on_when_the_client_that_stopped_it_is_gone() {
    let steps = call("shell_command", &json!({"command": "sleep 600", "timeout_ms": 1}));
    let stage = Stage::configured(steps, FREE).await;
    let server = stage.listen();
    let (mut leaving, mut staying) = (server.connect().await, server.connect().await);
    let id = staying.start_thread(json!({"cwd": stage.cwd()})).await;
    let (open, close) = ("thread/increment_elicitation", "thread/decrement_elicitation");
    let thread = json!({"threadId": id});
    assert_eq!(leaving.ask(open, thread.clone()).await["count"], 1);
    assert_eq!(leaving.ask(open, thread.clone()).await["count"], 2);
    // Whoever closes one need not have opened it.
    assert_eq!(staying.ask(close, thread.clone()).await["count"], 1);
    staying.start_turn(&id, "go").await;
    let is_command = |params: &Value| params["item"]["type"] == "commandExecution";
    staying.wait_for("item/started", is_command).await;
    drop(leaving);
    let done = staying.wait_for("item/completed", is_command).await;
    assert_eq!(done["item"]["status"], "failed");
    staying.next_of("turn/completed").await;
    assert_eq!(staying.ask(open, thread.clone()).await, json!({"count": 1, "paused": true}));
    assert_eq!(staying.ask(close, thread).await, json!({"count": 0, "paused": false}));
}
