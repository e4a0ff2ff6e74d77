//! `PreToolUse` and `PostToolUse`.

use std::fs;

use serde_json::{Value, json};
use testkit::text;

use super::{asked, ended, run, stage, thread};

fn command(cmd: &str) -> Value {
    json!([{"call": {"name": "exec_command", "callId": "call-1", "arguments": {"cmd": cmd}}}, {"text": "done"}])
}

#[tokio::test]
async fn a_hook_blocks_a_command_and_the_model_reads_why() {
    let hook = json!([{"matcher": "^Bash$", "hooks": [{"type": "command", "statusMessage": "Looking",
        "command": "cat > seen.json; echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\
                    \"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"not on a Friday\"}}'"}]}]);
    let stage = stage(command("touch made"), json!({"PreToolUse": hook})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "go").await;
    assert_eq!(client.next_of("hook/started").await["run"]["statusMessage"], "Looking");
    assert_eq!(ended(&mut client).await["status"], "blocked");
    client.next_of("turn/completed").await;
    assert!(!stage.cwd().join("made").exists());
    let told = asked(&stage);
    assert!(told.contains("Command blocked by a hook: not on a Friday"), "{told}");
    let seen: Value =
        serde_json::from_str(&fs::read_to_string(stage.cwd().join("seen.json")).expect("a file"))
            .expect("JSON");
    assert_eq!((&seen["tool_name"], &seen["tool_use_id"]), (&json!("Bash"), &json!("call-1")));
    assert_eq!(seen["tool_input"], json!({"command": "touch made"}));
}

#[tokio::test]
async fn a_hook_after_a_command_replaces_its_output_and_adds_context() {
    let replace = "cat > after.json; echo '{\"decision\":\"block\",\"reason\":\"output withheld\",\
                   \"hookSpecificOutput\":{\"hookEventName\":\"PostToolUse\",\"additionalContext\":\"be brief\"}}'";
    let stage = stage(command("echo planted-output"), json!({"PostToolUse": run(replace)})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "go").await;
    let item = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert!(text(&item["item"]["aggregatedOutput"]).contains("planted-output"), "clients see what it said");
    client.next_of("turn/completed").await;
    let told = asked(&stage);
    assert!(told.contains("output withheld") && told.contains("be brief"), "{told}");
    let output = |item: &Value| item["type"] == "function_call_output";
    let last = stage.asked().last().expect("a request")["input"].as_array().expect("input").clone();
    assert!(
        !last.iter().find(|item| output(item)).expect("an output").to_string().contains("planted-output")
    );
    let seen = fs::read_to_string(stage.cwd().join("after.json")).expect("a file");
    assert!(seen.contains("planted-output") && seen.contains("tool_response"), "{seen}");
}

#[tokio::test]
async fn other_tools_and_other_names_have_no_hooks() {
    let hooks = json!({
        "PreToolUse": [{"matcher": "^Edit$", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}],
    });
    let stage = stage(command("touch made"), hooks).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.turn(&id, "go").await;
    assert!(stage.cwd().join("made").exists());
}
