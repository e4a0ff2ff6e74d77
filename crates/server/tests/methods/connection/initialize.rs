//! The handshake, and what a client may use after it.

use serde_json::{Value, json};
use testkit::{RefusedRequest, Stage};

#[tokio::test]
async fn initialize_uses_the_client_name_as_originator() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    let said = client.initialize(Value::Null).await;
    let agent = said["userAgent"].as_str().expect("text");
    assert!(agent.starts_with("methods_test/") && agent.ends_with("(methods_test; 1)"), "{agent}");
    assert_eq!(said["codexHome"], stage.home().to_string_lossy().as_ref());
    assert_eq!(
        (&said["platformFamily"], &said["platformOs"]),
        (&json!("unix"), &json!(std::env::consts::OS))
    );
}

#[tokio::test]
async fn initialize_prefers_the_originator_of_the_environment() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(Some("from_outside"));
    let said = client.initialize(Value::Null).await;
    assert!(said["userAgent"].as_str().expect("text").starts_with("from_outside/"), "{said}");
}

#[tokio::test]
async fn initialize_refuses_a_name_that_is_no_header_value() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    let params = json!({"clientInfo": {"name": "bad\rname", "version": "1"}});
    let message = "Invalid clientInfo.name: 'bad\rname'. Must be a valid HTTP header value.".to_owned();
    let refused = RefusedRequest { code: -32600, message, data: Value::Null };
    assert_eq!(client.request("initialize", params).await, Err(refused));
}

#[tokio::test]
async fn nothing_works_before_initialize_and_it_works_once() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    assert_eq!(client.refused("thread/start", json!({})).await, "Not initialized");
    client.initialize(Value::Null).await;
    let again = json!({"clientInfo": {"name": "again", "version": "1"}});
    assert_eq!(client.refused("initialize", again).await, "Already initialized");
}

#[tokio::test]
async fn a_client_does_not_hear_what_it_opted_out_of() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open_raw(None);
    client
        .initialize(
            json!({"optOutNotificationMethods": ["thread/started", "thread/status/changed", "no/such"]}),
        )
        .await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "hi").await;
    let heard = client.rest().await;
    assert!(heard.contains(&"turn/started".to_owned()), "{heard:?}");
    for method in ["thread/started", "thread/status/changed"] {
        assert!(!heard.contains(&method.to_owned()), "{heard:?}");
    }
}

#[tokio::test]
async fn experimental_methods_fields_and_variants_need_the_capability() {
    let tool = json!({"name": "t", "description": "d", "inputSchema": {"type": "object"}});
    let granular = json!({"granular": {"sandbox_approval": true, "rules": true, "mcp_elicitations": true}});
    let mode = json!({"mode": "plan", "settings": {"model": "m"}});
    let thread = "019a8b3c-0000-7000-8000-000000000001";
    let item = json!({"type": "message", "role": "user", "content": []});
    let cases = [
        ("mock/experimentalMethod", json!({}), "mock/experimentalMethod"),
        ("thread/realtime/start", json!({"threadId": thread, "prompt": "p"}), "thread/realtime/start"),
        ("thread/start", json!({"dynamicTools": [tool]}), "thread/start.dynamicTools"),
        ("thread/start", json!({"mockExperimentalField": "x"}), "thread/start.mockExperimentalField"),
        ("thread/start", json!({"experimentalRawEvents": true}), "thread/start.experimentalRawEvents"),
        ("thread/start", json!({"persistExtendedHistory": true}), "thread/start.persistFullHistory"),
        ("thread/start", json!({"approvalPolicy": granular}), "askForApproval.granular"),
        ("thread/resume", json!({"threadId": thread, "history": [item]}), "thread/resume.history"),
        ("thread/resume", json!({"threadId": thread, "path": "/p"}), "thread/resume.path"),
        ("thread/fork", json!({"threadId": thread, "path": "/p"}), "thread/fork.path"),
        (
            "turn/start",
            json!({"threadId": thread, "input": [], "collaborationMode": mode}),
            "turn/start.collaborationMode",
        ),
        (
            "account/login/start",
            json!({"type": "chatgptAuthTokens", "accessToken": "t", "chatgptAccountId": "a"}),
            "account/login/start.chatgptAuthTokens",
        ),
    ];
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(Value::Null).await;
    for (method, params, reason) in cases {
        let message = client.refused(method, params).await;
        assert_eq!(message, format!("{reason} requires experimentalApi capability"));
    }
}

#[tokio::test]
async fn unused_experimental_fields_need_no_capability() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(Value::Null).await;
    client.start_thread(json!({})).await;
    client.start_thread(json!({"dynamicTools": [], "persistExtendedHistory": false})).await;
}

#[tokio::test]
async fn the_mock_method_echoes_for_an_experimental_client() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    assert_eq!(client.ask("mock/experimentalMethod", json!({"value": "v"})).await, json!({"echoed": "v"}));
    assert_eq!(client.ask("mock/experimentalMethod", json!({})).await, json!({"echoed": null}));
}

#[tokio::test]
async fn unknown_methods_and_bad_params_are_named() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let cases = [
        ("no/such", json!({}), "Invalid request: unknown variant `no/such`, expected one of `initialize`"),
        ("thread/read", Value::Null, "Invalid request: missing field `params`"),
        ("thread/read", json!({}), "Invalid request: missing field `threadId`"),
        ("thread/list", json!({"sortKey": "x"}), "Invalid request: unknown variant `x`, expected"),
        ("thread/list", json!({"limit": -1}), "Invalid request: invalid value: integer `-1`, expected u32"),
        ("thread/read", json!({"threadId": "zzz"}), "invalid thread id: "),
    ];
    for (method, params, beginning) in cases {
        let message = client.refused(method, params).await;
        assert!(message.starts_with(beginning), "{method}: {message}");
    }
}

#[tokio::test]
async fn a_broken_configuration_is_told_and_refuses_threads() {
    let stage = Stage::new(json!([])).await;
    std::fs::write(stage.home().join("config.toml"), "model = [").expect("a file");
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(Value::Null).await;
    let warning = client.next_of("configWarning").await;
    assert!(warning["summary"].is_string() && warning["details"].is_string(), "{warning}");
    let message = client.refused("thread/start", json!({})).await;
    assert!(message.starts_with("failed to load configuration: "), "{message}");
    let refused = client.request("config/read", json!({})).await.expect_err("a refusal");
    assert_eq!(refused.code, -32603);
    assert!(refused.message.starts_with("invalid configuration: "), "{refused:?}");
}
