//! `hooks/list`, and a reload.

use std::fs;

use serde_json::{Value, json};
use testkit::text;

use super::{ended, run, stage, thread};

#[tokio::test]
async fn hooks_are_listed_with_what_is_wrong_with_them() {
    let hooks = json!({
        "Stop": run("true"),
        "PreToolUse": [{"matcher": "^Bash$", "hooks": [
            {"type": "command", "command": "check", "timeout": 5, "statusMessage": "Checking"},
            {"type": "prompt", "prompt": "is it fine?"},
        ]}],
        "Sometime": [],
    });
    let stage = stage(json!([]), hooks).await;
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("hooks/list", json!({"cwds": [stage.cwd()]})).await;
    let entry = &listed["data"][0];
    assert_eq!(entry["cwd"], json!(stage.cwd()));
    let hooks = entry["hooks"].as_array().expect("hooks");
    let names: Vec<String> = hooks.iter().map(|hook| text(&hook["eventName"])).collect();
    assert_eq!(names, ["preToolUse", "stop"]);
    let file = stage.home().join("hooks.json");
    let first = &hooks[0];
    assert_eq!(text(&first["key"]), format!("{}:pre_tool_use:0:0", file.display()));
    assert_eq!(
        (&first["matcher"], &first["timeoutSec"], &first["command"]),
        (&json!("^Bash$"), &json!(5), &json!("check"))
    );
    assert_eq!((&first["source"], &first["trustStatus"]), (&json!("user"), &json!("trusted")));
    assert!(text(&first["currentHash"]).starts_with("sha256:"));
    assert_eq!(entry["warnings"].as_array().map(Vec::len), Some(1), "{entry}");
    assert_eq!(entry["errors"].as_array().map(Vec::len), Some(1), "{entry}");
    assert_eq!(client.ask("hooks/list", json!({})).await["data"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn hooks_in_the_config_file_count_and_a_reload_reaches_a_loaded_thread() {
    let stage = stage(json!([{"text": "one"}, {"text": "two"}]), json!({})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.turn(&id, "hello").await;
    let hooks = json!([{"hooks": [{"type": "command", "command": "echo from the config file"}]}]);
    let edit = json!({"keyPath": "hooks.UserPromptSubmit", "value": hooks, "mergeStrategy": "replace"});
    client.ask("config/batchWrite", json!({"edits": [edit], "reloadUserConfig": true})).await;
    client.start_turn(&id, "hello again").await;
    let run: Value = ended(&mut client).await;
    assert_eq!(text(&run["sourcePath"]), stage.home().join("config.toml").display().to_string());
    assert_eq!(run["entries"][0]["text"], "from the config file");
    client.next_of("turn/completed").await;
    let file = fs::read_to_string(stage.home().join("config.toml")).expect("a file");
    assert!(file.contains("echo from the config file"), "{file}");
}
