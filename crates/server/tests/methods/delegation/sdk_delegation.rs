//! Settings that a host fixes for a thread: the bridge its model is behind, the built-in tools it has, and that every execution
//! is asked about.

use serde_json::{Value, json};
use testkit::{ScriptedModel, Stage, TestClient, text};

const FREE: &str = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
const COMMAND: &str = "item/commandExecution/requestApproval";
const PATCH: &str = "item/fileChange/requestApproval";

async fn bridge() -> ScriptedModel {
    ScriptedModel::answering("", json!({"id": "r1"})).await
}

fn url(bridge: &ScriptedModel) -> String {
    format!("http://127.0.0.1:{}/v1", bridge.port())
}

/// A bridged thread in which something was said.
async fn bridged_thread(client: &mut TestClient, bridge: &mut ScriptedModel) -> String {
    let id = client.start_thread(json!({"sdkDelegation": {"bridgeUrl": url(bridge)}})).await;
    assert_eq!(client.turn(&id, "hi").await["status"], "completed");
    bridge.next().await;
    id
}

/// The names of the tools in each request to the model.
fn offered(stage: &Stage) -> Vec<Vec<String>> {
    let names = |request: &Value| {
        let tools = request["tools"].as_array().expect("tools").iter();
        tools.map(|tool| text(tool.get("name").unwrap_or(&tool["type"]))).collect()
    };
    stage.asked().iter().map(names).collect()
}

fn touch(id: &str) -> Value {
    json!({"name": "exec_command", "callId": id, "arguments": {"cmd": "touch ran"}})
}

fn ran(stage: &Stage) -> bool {
    stage.cwd().join("ran").exists()
}

#[tokio::test]
async fn the_model_of_one_thread_is_behind_the_bridge() {
    // A provider of the same name, with a token, and a stored key: neither is the bridge's business.
    let same_name = "[model_providers.codex-sdk-v2]\nname = \"x\"\nbase_url = \"http://127.0.0.1:1\"\n\
                     experimental_bearer_token = \"planted-token\"";
    let stage = Stage::configured(json!([{"text": "from the configured one"}]), same_name).await;
    let (_server, mut client) = stage.open().await;
    client.ask("account/login/start", json!({"type": "apiKey", "apiKey": "sk-planted"})).await;
    client.rest().await;
    client.transcript();
    let mut bridge = bridge().await;
    let delegation = json!({"bridgeUrl": url(&bridge)});
    let started =
        client.ask("thread/start", json!({"sdkDelegation": delegation, "modelProvider": "other"})).await;
    assert_eq!(started["modelProvider"], "codex-sdk-v2");
    assert_eq!(started["thread"]["modelProvider"], "codex-sdk-v2");
    let id = text(&started["thread"]["id"]);
    let told = client.next_of("codexSdk/delegationConfigured").await;
    let expected = json!({"threadId": id, "modelProvider": "codex-sdk-v2", "bridgeUrl": url(&bridge)});
    assert_eq!(told, expected);
    let order = ["= thread/start", "thread/started", "codexSdk/delegationConfigured"];
    assert_eq!(client.transcript(), order);
    assert_eq!(client.turn(&id, "hi").await["status"], "completed");
    let request = bridge.next().await;
    assert!(request.head.starts_with("post /v1/responses http/1.1\r\n"), "{}", request.head);
    assert!(!request.head.contains("authorization") && !request.head.contains("planted"), "{}", request.head);
    assert_eq!(request.body["stream"], true);
    // Other threads go where they always went, and hear of no bridge.
    let other = client.spoken_thread("hello").await;
    let read = client.ask("thread/read", json!({"threadId": other})).await;
    assert_eq!(read["thread"]["modelProvider"], "mock");
    assert!(!client.rest().await.contains(&"codexSdk/delegationConfigured".to_owned()));
    stage.assert_played();
}

#[tokio::test]
async fn a_password_in_the_url_is_for_the_bridge_alone() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open().await;
    let mut bridge = bridge().await;
    let with_password = url(&bridge).replace("http://", "http://x:tok-planted@");
    let delegation =
        json!({"bridgeUrl": with_password, "modelProviderId": "host", "streamIdleTimeoutMs": 5000});
    let id = client.start_thread(json!({"sdkDelegation": delegation})).await;
    let told = client.next_of("codexSdk/delegationConfigured").await;
    assert_eq!(told, json!({"threadId": id, "modelProvider": "host", "bridgeUrl": url(&bridge)}));
    assert_eq!(client.turn(&id, "hi").await["status"], "completed");
    // x:tok-planted
    assert!(bridge.next().await.head.contains("authorization: basic edp0b2stcgxhbnrlza==\r\n"));
    let path = text(&client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"]);
    server.stop().await;
    assert!(!std::fs::read_to_string(path).expect("a record").contains("tok-planted"));
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_before_a_thread_exists() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let bridge = |url: &str| json!({"sdkDelegation": {"bridgeUrl": url}});
    let tools = |names: Value| json!({"builtinTools": names});
    for (params, expected) in [
        (bridge(""), "sdkDelegation.bridgeUrl does not begin with https:// or http://"),
        (bridge("127.0.0.1:8080/v1"), "sdkDelegation.bridgeUrl does not begin with https:// or http://"),
        (bridge("/v1"), "sdkDelegation.bridgeUrl does not begin with https:// or http://"),
        (bridge("ftp://host/v1"), "sdkDelegation.bridgeUrl does not begin with https:// or http://"),
        (bridge("http://"), "sdkDelegation.bridgeUrl is not a URL"),
        (
            json!({"sdkDelegation": {"bridgeUrl": "http://h", "modelProviderId": "openai"}}),
            "sdkDelegation.modelProviderId must not be `openai`",
        ),
        (
            json!({"sdkDelegation": {"bridgeUrl": "http://h", "streamIdleTimeoutMs": 0}}),
            "sdkDelegation.streamIdleTimeoutMs must be more than 0",
        ),
        (tools(json!([""])), "builtin tool name must not be empty"),
        (tools(json!([" shell"])), "builtin tool name has leading/trailing whitespace:  shell"),
        (tools(json!(["shell", "shell"])), "duplicate builtin tool name: shell"),
        (tools(json!(["shell", "no_such_tool"])), "unknown builtin tool name: no_such_tool"),
    ] {
        let message = client.refused("thread/start", params).await;
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn all_of_it_needs_the_capability() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(json!({})).await;
    for (field, value) in [
        ("sdkDelegation", json!({"bridgeUrl": "http://127.0.0.1:8080/v1"})),
        ("builtinTools", json!(["update_plan"])),
        // No tool at all is as much a choice as some.
        ("builtinTools", json!([])),
        ("manualToolExecution", json!(true)),
    ] {
        let message = client.refused("thread/start", json!({field: value})).await;
        assert_eq!(message, format!("thread/start.{field} requires experimentalApi capability"));
    }
}

#[tokio::test]
async fn after_a_restart_a_bridged_thread_goes_nowhere_else_unasked() {
    let stage = Stage::new(json!([{"text": "from another provider"}])).await;
    let (server, mut client) = stage.open().await;
    let mut bridge = bridge().await;
    let id = bridged_thread(&mut client, &mut bridge).await;
    server.stop().await;

    let (server, mut client) = stage.open().await;
    for (method, more) in [
        ("thread/resume", json!({})),
        // The model alone does not say whose.
        ("thread/resume", json!({"model": "mock-model"})),
        ("thread/fork", json!({})),
    ] {
        let mut params = json!({"threadId": id});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let message = client.refused(method, params).await;
        assert!(message.contains("`codex-sdk-v2`") && message.contains("pass modelProvider"), "{message}");
        assert!(message.contains(r#"config {"model_providers": {"codex-sdk-v2": {"name": "#), "{message}");
    }
    let provider = json!({"codex-sdk-v2": {"name": "bridge", "base_url": url(&bridge)}});
    let params = json!({"threadId": id, "config": {"model_providers": provider}});
    let resumed = client.ask("thread/resume", params).await;
    assert_eq!(resumed["modelProvider"], "codex-sdk-v2");
    assert_eq!(client.turn(&id, "again").await["status"], "completed");
    assert!(!bridge.next().await.head.contains("authorization"));
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id, "modelProvider": "mock"})).await;
    assert_eq!(resumed["modelProvider"], "mock");
    assert_eq!(client.turn(&id, "elsewhere").await["status"], "completed");
    stage.assert_played();
}

#[tokio::test]
async fn exactly_the_listed_tools_are_offered() {
    for (listed, expected) in [
        (
            json!(["update_plan", "exec_command", "write_stdin", "view_image"]),
            vec!["exec_command", "write_stdin", "update_plan", "view_image"],
        ),
        (json!([]), vec![]),
        (json!(["shell"]), vec!["shell"]),
        (json!(["shell_command"]), vec!["shell_command"]),
        (json!(["read_file", "apply_patch"]), vec!["apply_patch", "read_file"]),
    ] {
        let stage = Stage::new(json!([{"text": "done"}])).await;
        let (_server, mut client) = stage.open().await;
        let lookup = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
        let params = json!({"builtinTools": listed, "dynamicTools": [lookup]});
        let id = client.start_thread(params).await;
        client.turn(&id, "go").await;
        // The client's own tools are not built in.
        let expected: Vec<&str> = expected.into_iter().chain(["lookup"]).collect();
        assert_eq!(offered(&stage), [expected], "{listed}");
    }
}

#[tokio::test]
async fn a_tool_that_is_not_listed_does_not_run_whatever_the_model_says() {
    let calls = json!([
        touch("call-1"),
        {"name": "shell", "callId": "call-2", "arguments": {"command": ["touch", "ran"]}},
        {"name": "local_shell", "callId": "call-3", "arguments": {"command": ["touch", "ran"]}},
        {"name": "apply_patch", "callId": "call-4",
            "input": "*** Begin Patch\n*** Add File: ran\n+it did\n*** End Patch"},
    ]);
    let stage = Stage::configured(json!([{"calls": calls}, {"text": "done"}]), FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd(), "builtinTools": ["update_plan"]})).await;
    assert_eq!(client.turn(&id, "go").await["status"], "completed");
    assert!(!ran(&stage));
    let input = stage.asked()[1]["input"].to_string();
    for name in ["call: exec_command", "call: shell", "call: local_shell", "custom tool call: apply_patch"] {
        assert!(input.contains(&format!("unsupported {name}")), "{name}: {input}");
    }
}

#[tokio::test]
async fn what_was_fixed_holds_after_restarts_forks_and_rollbacks() {
    let steps = json!([{"text": "one"}, {"text": "two"}, {"text": "three"}, {"call": touch("call-1")}, {"text": "four"}]);
    let stage = Stage::configured(steps, FREE).await;
    let (server, mut client) = stage.open().await;
    let listed = json!(["exec_command"]);
    let params = json!({"cwd": stage.cwd(), "builtinTools": listed, "manualToolExecution": true});
    let id = client.start_thread(params).await;
    client.turn(&id, "one").await;
    server.stop().await;

    let (server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "two").await;
    let copy = text(&client.ask("thread/fork", json!({"threadId": id})).await["thread"]["id"]);
    client.turn(&copy, "three").await;
    client.ask("thread/rollback", json!({"threadId": id, "numTurns": 2})).await;
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.start_turn(&id, "four").await;
    let question = client.next_of(COMMAND).await;
    client.answer(&question, json!({"decision": "decline"})).await;
    client.next_of("turn/completed").await;
    assert!(!ran(&stage));
    assert_eq!(offered(&stage), vec![vec!["exec_command"]; 5]);
    stage.assert_played();
}

#[tokio::test]
async fn with_manual_execution_even_a_safe_command_is_asked_about() {
    let list = |id: &str| json!({"name": "exec_command", "callId": id, "arguments": {"cmd": "ls"}});
    let script = json!([
        {"call": list("call-1")}, {"call": touch("call-2")}, {"call": touch("call-3")}, {"call": list("call-4")},
        {"text": "done"},
    ]);
    let stage = Stage::configured(script, FREE).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd(), "manualToolExecution": true})).await;
    client.start_turn(&id, "go").await;
    // A yes for the session is a yes to the same command; anything else is asked about again.
    for (call, decision) in [("call-1", "accept"), ("call-2", "acceptForSession"), ("call-4", "decline")] {
        let question = client.next_of(COMMAND).await;
        assert_eq!(question["params"]["itemId"], call);
        assert_eq!(ran(&stage), call == "call-4");
        client.answer(&question, json!({"decision": decision})).await;
    }
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    stage.assert_played();
}

#[tokio::test]
async fn with_manual_execution_a_patch_is_asked_about_and_the_user_is_not() {
    let patch = "*** Begin Patch\n*** Add File: ran\n+it did\n*** End Patch";
    let by_tool = json!({"name": "apply_patch", "callId": "call-1", "input": patch});
    let by_command = json!({"name": "exec_command", "callId": "call-1",
        "arguments": {"cmd": format!("apply_patch <<'E'\n{patch}\nE\n")}});
    for call in [by_tool, by_command] {
        for decision in ["accept", "decline"] {
            let keys = format!("{FREE}\n[features]\napply_patch_freeform = true");
            let stage = Stage::configured(json!([{"call": call}, {"text": "done"}]), &keys).await;
            let (_server, mut client) = stage.open().await;
            let id = client.start_thread(json!({"cwd": stage.cwd(), "manualToolExecution": true})).await;
            client.start_turn(&id, "go").await;
            let question = client.next_of(PATCH).await;
            assert!(!ran(&stage));
            client.answer(&question, json!({"decision": decision})).await;
            client.next_of("turn/completed").await;
            assert_eq!(ran(&stage), decision == "accept", "{call}");
            // A command that the user types is not asked about.
            client.ask("thread/shellCommand", json!({"threadId": id, "command": "touch own"})).await;
            client.item("commandExecution").await;
            assert!(stage.cwd().join("own").exists());
            let rest = client.rest().await;
            assert!(!rest.iter().any(|method| method == COMMAND || method == PATCH), "{rest:?}");
        }
    }
}
