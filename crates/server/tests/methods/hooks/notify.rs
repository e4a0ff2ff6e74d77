//! `notify`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::Stage;

#[tokio::test]
async fn a_program_hears_of_every_completed_turn() {
    let stage = Stage::new(json!([{"text": "first answer"}, {"text": "second answer"}])).await;
    let program = stage.home().join("hear");
    let told = stage.home().join("told");
    let script = format!("#!/bin/sh\necho \"$1 $2\" > {0}.new\nmv {0}.new {0}\n", told.display());
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("set");
    stage.configure(&format!("notify = [{program:?}, \"given\"]"));
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "hello").await;
    let turn_id = client.start_turn(&id, "go on").await;
    client.next_of("turn/completed").await;
    // A server that stops lets the program end.
    server.stop().await;
    let text = fs::read_to_string(&told).expect("it was told");
    let (given, payload) = text.trim().split_once(' ').expect("two arguments");
    let payload: Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(given, "given");
    assert_eq!((&payload["type"], &payload["thread-id"]), (&json!("agent-turn-complete"), &json!(id)));
    assert_eq!(payload["cwd"], json!(stage.cwd()));
    let of_last = payload["turn-id"] == json!(turn_id);
    let expected = if of_last { ("go on", "second answer") } else { ("hello", "first answer") };
    assert_eq!(payload["input-messages"], json!([expected.0]));
    assert_eq!(payload["last-assistant-message"], json!(expected.1));
    assert!(payload["client"].is_string(), "{payload}");
}

#[tokio::test]
async fn a_program_that_is_not_there_stops_nothing() {
    let stage = Stage::configured(json!([{"text": "one"}]), "notify = [\"/no/such/program\"]").await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.turn(&id, "hello").await;
}

#[tokio::test]
async fn a_program_that_the_workspace_brings_along_is_not_taken_for_the_users() {
    let stage = Stage::new(json!([{"text": "one"}])).await;
    let folder = stage.cwd().join("bin");
    let ran = stage.home().join("ran");
    fs::create_dir(&folder).expect("made");
    let script = format!("#!/bin/sh\n: > {}\n", ran.display());
    for name in ["hear", "start"] {
        fs::write(folder.join(name), &script).expect("a file");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o700)).expect("set");
    }
    // The search path names the workspace first, and so does a variable that a shell runs a file for.
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let start = folder.join("start");
    stage.configure(&format!(
        "notify = [\"hear\"]\n[shell_environment_policy]\nset = {{ PATH = {path:?}, BASH_ENV = {start:?} }}\n"
    ));
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "hello").await;
    server.stop().await;
    assert!(!ran.exists(), "a program of the workspace ran outside of the sandbox");
    // With a shell of the system, the variable would have done it.
    stage.configure(&format!(
        "notify = [\"bash\", \"-c\", \"true\"]\n[shell_environment_policy]\nset = {{ PATH = {path:?}, \
         BASH_ENV = {start:?} }}\n"
    ));
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "hello").await;
    server.stop().await;
    assert!(!ran.exists(), "a file of the workspace ran outside of the sandbox");
}
