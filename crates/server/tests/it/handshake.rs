//! Requests that a connection may make, and when.

use protocol::ConfigWarningNotification;
use serde_json::{Value, json};

use crate::app::{over_pipes, over_unix};
use crate::client::{Lines, Peer};

async fn check(client: &mut Lines, method: &str, params: Value, code: i64, begins: &str) {
    let mut message = json!({"id": 7, "method": method});
    if params != json!("absent") {
        message["params"] = params;
    }
    client.send(message.clone()).await;
    let answer = client.receive().await;
    let said = answer["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(answer["error"]["code"], code, "{message} -> {answer}");
    assert!(said.starts_with(begins), "{message} -> {answer}");
}

const BAD: i64 = -32600;

#[tokio::test]
async fn initialize_comes_first_and_once() {
    let (mut client, _server) = over_pipes(|_| {});
    let client_info = json!({"name": "peer_a", "version": "9"});
    for (method, params, begins) in [
        ("no/such", json!({}), "Invalid request: unknown variant `no/such`, expected one of `initialize`"),
        ("thread/loaded/list", json!({}), "Not initialized"),
        ("thread/loaded/list", json!([]), "Not initialized"),
        ("thread/list", json!({}), "Not initialized"),
        ("mock/experimentalMethod", json!({}), "Not initialized"),
        ("initialize", json!("absent"), "Invalid request: missing field `params`"),
        ("initialize", json!(null), "Invalid request: missing field `params`"),
        ("initialize", json!([client_info]), "Invalid request: invalid type: expected an object at `params`"),
        ("initialize", json!({}), "Invalid request: missing field `clientInfo`"),
        (
            "initialize",
            json!({"clientInfo": {"name": 5, "version": "1"}}),
            "Invalid request: invalid type: integer `5`",
        ),
        (
            "initialize",
            json!({"clientInfo": {"name": "a\nb", "version": "1"}}),
            "Invalid clientInfo.name: 'a\nb'. Must be a valid HTTP header value.",
        ),
        (
            "initialize",
            json!({"clientInfo": client_info, "capabilities": {"hostDelegation": {"versions": [1]}}}),
            "initialize.hostDelegation requires experimentalApi capability",
        ),
    ] {
        check(&mut client, method, params, BAD, begins).await;
    }
    let greeted = client.initialize(Value::Null).await;
    assert_eq!(greeted["codexHome"], "/folder/of/oarlock");
    assert_eq!(
        (&greeted["platformFamily"], &greeted["platformOs"]),
        (&json!("unix"), &json!(std::env::consts::OS))
    );
    assert_eq!(greeted.get("capabilities"), None);
    check(&mut client, "initialize", json!({"clientInfo": client_info}), BAD, "Already initialized").await;
    check(&mut client, "initialize", json!("absent"), BAD, "Invalid request: missing field `params`").await;
}

#[tokio::test]
async fn params_are_read_with_errors_that_name_the_field() {
    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    for (method, params, begins) in [
        ("thread/name/set", json!("absent"), "Invalid request: missing field `params`"),
        (
            "thread/name/set",
            json!(["t", "n"]),
            "Invalid request: invalid type: expected an object at `params`",
        ),
        ("thread/name/set", json!("text"), "Invalid request: invalid type: expected an object at `params`"),
        ("thread/name/set", json!({"name": "n"}), "Invalid request: missing field `threadId`"),
        (
            "thread/name/set",
            json!({"threadId": "t", "name": [1]}),
            "Invalid request: invalid type: sequence, expected a string at `name`",
        ),
        (
            "thread/loaded/list",
            json!({"limit": -1}),
            "Invalid request: invalid value: integer `-1`, expected u32 at `limit`",
        ),
        ("account/logout", json!([]), "Invalid request: invalid type: expected an object at `params`"),
        ("thread/list", json!({"limit": "x"}), "thread/list is not supported yet"),
    ] {
        check(&mut client, method, params, BAD, begins).await;
    }
    for params in [json!({}), json!(null), json!({"x": 1})] {
        assert_eq!(client.call(8, "account/logout", params).await["result"], json!({}));
    }
    client.send(json!({"id": 9, "method": "account/logout"})).await;
    assert_eq!(client.receive().await, json!({"id": 9, "result": {}}));
    let long = client.call(10, &"m".repeat(1 << 20), json!({})).await;
    assert!(long["error"]["message"].as_str().is_some_and(|message| message.len() < 1000));
    let long_key = json!({"threadId": "t", "name": {"k".repeat(1 << 20): 1}});
    assert!(client.call(11, "thread/name/set", long_key).await.to_string().len() < 1200);
}

#[tokio::test]
async fn what_is_experimental_needs_the_capability() {
    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(json!({"experimentalApi": false})).await;
    let turn = |more: Value| {
        let mut params = json!({"threadId": "t", "input": []});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    for (method, params, begins) in [
        (
            "mock/experimentalMethod",
            json!({"value": "x"}),
            "mock/experimentalMethod requires experimentalApi",
        ),
        // Before the params are read, and before it is told that nobody carries it out.
        ("mock/experimentalMethod", json!([]), "mock/experimentalMethod requires experimentalApi"),
        ("thread/realtime/stop", json!({}), "thread/realtime/stop requires experimentalApi"),
        (
            "turn/start",
            turn(json!({"additionalContext": {"a": {"value": "x", "kind": "untrusted"}}})),
            "turn/start.additionalContext requires experimentalApi capability",
        ),
    ] {
        check(&mut client, method, params, BAD, begins).await;
    }
    check(&mut client, "turn/start", turn(json!({})), -32602, "reached").await;

    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(json!({"experimentalApi": true})).await;
    let echoed = client.call(1, "mock/experimentalMethod", json!({"value": "x"})).await;
    assert_eq!(echoed["result"], json!({"echoed": "x"}));
    check(&mut client, "thread/realtime/stop", json!({}), BAD, "thread/realtime/stop is not supported yet")
        .await;
    let answer = client.call(2, "turn/start", turn(json!({}))).await;
    assert_eq!(answer["error"]["data"], json!({"reached": true}));
}

fn warning(summary: &str) -> ConfigWarningNotification {
    ConfigWarningNotification { summary: summary.to_owned(), details: None, path: None, range: None }
}

#[tokio::test]
async fn warnings_follow_the_answer_unless_they_are_not_wanted() {
    let warn = |options: &mut oarlock_server::ServerOptions| {
        options.config_warnings = vec![warning("one"), warning("two")];
    };
    let (mut client, _server) = over_pipes(warn);
    client.initialize(Value::Null).await;
    for summary in ["one", "two"] {
        let told = client.receive().await;
        assert_eq!(told, json!({"method": "configWarning", "params": {"summary": summary, "details": null}}));
    }
    let (mut client, _server) = over_pipes(warn);
    client.initialize(json!({"optOutNotificationMethods": ["configWarning", "no/such"]})).await;
    client.call(1, "thread/loaded/list", json!({})).await;
}

#[tokio::test]
async fn the_first_client_names_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _server = over_unix(&path).await;
    let agent = async |name: &str| {
        let mut client = Lines::connect(&path).await;
        let params = json!({"clientInfo": {"name": name, "version": "2"}});
        client.call(0, "initialize", params).await["result"]["userAgent"].as_str().unwrap().to_owned()
    };
    let first = agent("codex-tui").await;
    assert!(first.starts_with("codex_cli_rs/0.166.0 (") && first.ends_with(" (codex-tui; 2)"), "{first}");
    let second = agent("peer_b").await;
    assert!(second.starts_with("codex_cli_rs/0.166.0 (") && second.ends_with(" (peer_b; 2)"), "{second}");
    let middle = second.rsplit_once(" (").unwrap().0.rsplit_once(") ").unwrap().1;
    assert_eq!(middle, concat!("oarlock/", env!("CARGO_PKG_VERSION")));

    let (mut client, _server) = over_pipes(|options| options.originator = Some("chosen".to_owned()));
    let agent = client.initialize(Value::Null).await["userAgent"].as_str().unwrap().to_owned();
    assert!(agent.starts_with("chosen/0.166.0 ("), "{agent}");
}

#[tokio::test]
async fn what_a_host_offers_is_agreed_on_or_refused() {
    let (mut client, _server) = over_pipes(|_| {});
    let params = |version: u32| {
        let offer = json!({"versions": [version], "features": ["modelTransport"]});
        let capabilities = json!({"experimentalApi": true, "hostDelegation": offer});
        json!({"clientInfo": {"name": "host", "version": "1"}, "capabilities": capabilities})
    };
    check(&mut client, "initialize", params(2), -32602, "no version in common").await;
    check(&mut client, "thread/loaded/list", json!({}), BAD, "Not initialized").await;
    let agreed = client.call(1, "initialize", params(1)).await;
    assert_eq!(
        agreed["result"]["capabilities"]["hostDelegation"],
        json!({"version": 1, "features": ["modelTransport"], "runtimeInstanceId": "this"})
    );
}
