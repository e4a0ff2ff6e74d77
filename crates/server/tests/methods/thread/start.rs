//! `thread/start`.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Stage, text};

#[tokio::test]
async fn a_new_thread_is_answered_then_announced() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    client.transcript();
    let opened = client.ask("thread/start", json!({"cwd": stage.cwd()})).await;
    let thread = &opened["thread"];
    assert_eq!(opened["model"], "mock-model");
    assert_eq!(opened["modelProvider"], "mock");
    assert_eq!(opened["cwd"], stage.cwd().to_string_lossy().as_ref());
    assert!(opened["sandbox"]["type"].is_string() && opened["approvalPolicy"].is_string(), "{opened}");
    for key in ["serviceTier", "reasoningEffort"] {
        assert_eq!(opened.get(key), Some(&Value::Null), "{opened}");
    }
    assert_eq!(thread["status"], json!({"type": "idle"}));
    assert_eq!((&thread["preview"], &thread["turns"]), (&json!(""), &json!([])));
    assert_eq!((&thread["source"], &thread["cliVersion"]), (&json!("vscode"), &json!("1.2.3")));
    assert_eq!((&thread["ephemeral"], thread.get("name")), (&json!(false), Some(&Value::Null)));
    let path = text(&thread["path"]);
    assert!(Path::new(&path).is_absolute() && !Path::new(&path).exists(), "{path}");
    let started = client.next_of("thread/started").await;
    assert_eq!(&started["thread"], thread);
    // Registered silently: nobody hears of a status.
    assert!(client.rest().await.is_empty());
    assert_eq!(client.transcript()[..2], ["= thread/start", "thread/started"]);
}

#[tokio::test]
async fn project_configuration_counts_in_a_trusted_folder() {
    let stage = Stage::new(json!([])).await;
    let folder = stage.cwd().join(".codex");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), "model_reasoning_effort = \"high\"").expect("a file");
    let cwd = stage.cwd().to_string_lossy().into_owned();
    for (trust, effort) in [("trusted", json!("high")), ("untrusted", Value::Null)] {
        stage.configure(&format!("projects = {{ {cwd:?} = {{ trust_level = {trust:?} }} }}"));
        let (_server, mut client) = stage.open().await;
        let opened = client.ask("thread/start", json!({"cwd": cwd})).await;
        assert_eq!(opened["reasoningEffort"], effort, "{trust}");
    }
}

#[tokio::test]
async fn choices_of_the_request_are_echoed() {
    let cases = [
        (json!({"serviceTier": "flex"}), "serviceTier", json!("flex")),
        (json!({"serviceTier": "fast"}), "serviceTier", json!("fast")),
        (json!({"model": "another"}), "model", json!("another")),
        (json!({"modelProvider": "other"}), "modelProvider", json!("other")),
        (json!({"approvalPolicy": "never"}), "approvalPolicy", json!("never")),
        (json!({"config": {"approval_policy": "on-request"}}), "approvalPolicy", json!("on-request")),
        (
            json!({"config": {"approval_policy": "on-request"}, "approvalPolicy": "never"}),
            "approvalPolicy",
            json!("never"),
        ),
        (json!({"config": {"model_reasoning_effort": "low", "no.such": 1}}), "reasoningEffort", json!("low")),
        (json!({"serviceName": "metrics"}), "modelProvider", json!("mock")),
    ];
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (params, key, expected) in cases {
        let opened = client.ask("thread/start", params.clone()).await;
        assert_eq!(opened[key], expected, "{params}");
    }
    for (mode, kind) in [
        ("read-only", "readOnly"),
        ("workspace-write", "workspaceWrite"),
        ("danger-full-access", "dangerFullAccess"),
    ] {
        let opened = client.ask("thread/start", json!({"sandbox": mode})).await;
        assert_eq!(opened["sandbox"]["type"], kind);
    }
}

#[tokio::test]
async fn an_ephemeral_thread_has_no_path_and_leaves_no_file() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let opened = client.ask("thread/start", json!({"ephemeral": true})).await;
    let thread = &opened["thread"];
    assert_eq!((&thread["ephemeral"], thread.get("path")), (&json!(true), Some(&Value::Null)));
    let id = text(&thread["id"]);
    assert_eq!(client.turn(&id, "hi").await["status"], "completed");
    let listed = client.ask("thread/list", json!({})).await;
    assert_eq!(listed["data"], json!([]));
    let read = client.refused("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(read, "ephemeral threads do not support includeTurns");
    let rolled = client.refused("thread/rollback", json!({"threadId": id, "numTurns": 1})).await;
    assert_eq!(rolled, "thread rollback requires a persisted rollout path");
    let update = json!({"threadId": id, "gitInfo": {"branch": "b"}});
    let updated = client.refused("thread/metadata/update", update).await;
    assert_eq!(updated, format!("ephemeral thread does not support metadata updates: {id}"));
}

#[tokio::test]
async fn dynamic_tools_are_checked() {
    let tool = |name: &str| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}});
    let cases = [
        (json!([tool("")]), "dynamic tool name must not be empty"),
        (json!([tool(" a")]), "dynamic tool name has leading/trailing whitespace:  a"),
        (json!([tool("mcp")]), "dynamic tool name is reserved: mcp"),
        (json!([tool("mcp__x")]), "dynamic tool name is reserved: mcp__x"),
        (json!([tool("a"), tool("a")]), "duplicate dynamic tool name: a"),
    ];
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (tools, expected) in cases {
        assert_eq!(client.refused("thread/start", json!({"dynamicTools": tools})).await, expected);
    }
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
}

#[tokio::test]
async fn older_settings_are_told_to_whoever_opens_a_thread() {
    let stage =
        Stage::configured(json!([{"text": "hello"}]), "experimental_use_unified_exec_tool = true").await;
    let (server, mut client) = stage.open().await;
    client.transcript();
    let id = client.start_thread(json!({})).await;
    let told = client.next_of("deprecationNotice").await;
    assert!(told["summary"].as_str().is_some_and(|text| text.contains("unified_exec")), "{told}");
    assert!(told["details"].is_string(), "{told}");
    assert_eq!(client.transcript(), ["= thread/start", "thread/started", "deprecationNotice"]);
    client.turn(&id, "hi").await;
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.next_of("deprecationNotice").await;
    // A thread in memory is joined as it is.
    client.ask("thread/resume", json!({"threadId": id})).await;
    assert!(!client.rest().await.contains(&"deprecationNotice".to_owned()));
    client.ask("thread/fork", json!({"threadId": id})).await;
    client.next_of("deprecationNotice").await;
}
