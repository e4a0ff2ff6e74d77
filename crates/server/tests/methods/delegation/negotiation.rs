//! The agreement in `initialize`, and the requests of threads after it.

use serde_json::{Value, json};
use testkit::{Stage, TestClient, text};

use super::{Host, completed, full, full_with, offer};

async fn agreed(stage: &Stage, offered: Value) -> Value {
    let (server, mut client) = stage.open_raw(None);
    let capabilities = json!({"experimentalApi": true, "hostDelegation": offered});
    let told = client.initialize(capabilities).await;
    server.stop().await;
    told["capabilities"]["hostDelegation"].clone()
}

#[tokio::test]
async fn a_host_gets_what_both_sides_have_and_nothing_by_half() {
    let stage = Stage::new(json!([])).await;
    let first = agreed(&stage, json!({"versions": [7, 1], "features": ["modelTransport", "new"]})).await;
    assert_eq!(first["version"], 1);
    assert_eq!(first["features"], json!(["modelTransport"]));
    let second = agreed(&stage, json!({"versions": [1]})).await;
    assert_eq!(second["features"], json!([]));
    assert_ne!(
        text(&first["runtimeInstanceId"]),
        text(&second["runtimeInstanceId"]),
        "new for every process"
    );
    assert_eq!(agreed(&stage, json!({"versions": [2], "features": ["modelTransport"]})).await, Value::Null);
    assert_eq!(agreed(&stage, json!({"versions": []})).await, Value::Null);
}

/// The error of `thread/start` with this delegation.
async fn refusal(client: &mut TestClient, delegation: Value) -> (String, String) {
    let refused =
        client.request("thread/start", json!({"delegation": delegation})).await.expect_err("refused");
    assert_eq!(refused.code, -32602, "{refused:?}");
    (text(&refused.data["code"]), refused.message)
}

#[tokio::test]
async fn what_cannot_be_honoured_is_refused_by_name_before_there_is_a_thread() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open().await;
    let (code, message) = refusal(&mut client, full()).await;
    assert_eq!(code, "delegationUnsupported");
    assert!(message.starts_with("delegation was not agreed on"), "{message}");
    server.stop().await;

    let (server, mut client) = stage.open_raw(None);
    client.initialize(json!({"experimentalApi": true, "hostDelegation": {"versions": [1]}})).await;
    let (_, message) = refusal(&mut client, full()).await;
    assert!(message.starts_with("delegation.mode "), "{message}");
    server.stop().await;

    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    let change = |pointer: &str, value: Value| {
        let mut delegation = full();
        let (parent, field) = pointer.rsplit_once('/').expect("a place");
        delegation.pointer_mut(parent).expect("its parent")[field] = value;
        delegation
    };
    for (delegation, named) in [
        (change("/version", json!(2)), "delegation.version must be 1"),
        (change("/provider", Value::Null), "delegation.provider is missing"),
        (change("/provider/id", json!(" x")), "delegation.provider.id must"),
        (
            change("/provider/capabilities/contextWindow", json!(0)),
            "delegation.provider.capabilities.contextWindow",
        ),
        (full_with(json!({"windowEvents": 0})), "delegation.stream.windowEvents must"),
        (full_with(json!({"windowEvents": 1 << 20})), "delegation.stream.windowEvents must"),
        (full_with(json!({"windowBytes": 0})), "delegation.stream.windowBytes must"),
        (full_with(json!({"firstEventTimeoutMs": 0})), "delegation.stream.firstEventTimeoutMs must"),
        (full_with(json!({"idleTimeoutMs": 0})), "delegation.stream.idleTimeoutMs must"),
        (change("/subagents", json!("host")), "delegation.subagents was not agreed on"),
    ] {
        let (code, message) = refusal(&mut client, delegation).await;
        assert_eq!(code, "delegationUnsupported", "{message}");
        assert!(message.starts_with(named), "{message}");
    }
    assert_eq!(
        client.ask("thread/loaded/list", json!({})).await["data"],
        json!([]),
        "no thread is left behind"
    );
    assert!(client.rest().await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn the_effective_values_are_told_with_every_default() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    let params = json!({"delegation": full_with(json!({"windowEvents": 8})), "rolloutOwnership": "server"});
    let started = client.ask("thread/start", params).await;
    assert_eq!(started["modelProvider"], "host-models");
    assert_eq!(started["thread"]["modelProvider"], "host-models");
    assert_eq!(started["rolloutOwnership"], "server");
    let mut expected = full();
    expected["stream"] = json!({
        "windowEvents": 8, "windowBytes": 1_048_576, "firstEventTimeoutMs": 300_000, "idleTimeoutMs": 300_000,
    });
    assert_eq!(started["delegation"]["stream"], expected["stream"]);
    assert_eq!(started["delegation"]["provider"]["id"], "host-models");
    assert_eq!(started["delegation"]["mode"], "full");

    let direct = client.ask("thread/start", json!({"delegation": {"version": 1, "hostEpoch": 3}})).await;
    assert_eq!(direct["delegation"], json!({"mode": "direct", "version": 1, "hostEpoch": 3}));
    let plain = client.ask("thread/start", json!({})).await;
    assert_eq!((&plain["delegation"], &plain["rolloutOwnership"]), (&Value::Null, &Value::Null));
    server.stop().await;
}

#[tokio::test]
async fn a_delegated_thread_goes_on_with_its_host_or_by_choice() {
    let stage = Stage::new(json!([{"text": "from the configured model"}])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    host.turn("hello", "hi").await;
    let thread = host.thread.clone();
    server.stop().await;

    let (server, mut client) = stage.open().await;
    let refused = client.request("thread/resume", json!({"threadId": thread})).await.expect_err("no host");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("delegationUnsupported")));
    assert!(refused.message.starts_with("delegation is missing"), "{refused:?}");
    let refused = client.request("thread/fork", json!({"threadId": thread})).await.expect_err("no host");
    assert!(refused.message.starts_with("delegation is missing"), "{refused:?}");
    let chosen = client.ask("thread/resume", json!({"threadId": thread, "modelProvider": "mock"})).await;
    assert_eq!(chosen["modelProvider"], "mock");
    assert_eq!(client.turn(&thread, "and now?").await["status"], "completed");
    server.stop().await;
    stage.assert_played();
}

#[tokio::test]
async fn a_resumed_or_forked_thread_is_carried_with_its_history() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let first = host.turn("hello", "hi").await;
    let thread = host.thread.clone();
    server.stop().await;

    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    let resumed = client.ask("thread/resume", json!({"threadId": thread, "delegation": full()})).await;
    assert_eq!((&resumed["modelProvider"], &resumed["model"]), (&json!("host-models"), &json!("mock-model")));
    let mut host = Host { client, thread: thread.clone() };
    let second = host.turn("again", "sure").await;
    let before = first["body"]["input"].as_array().expect("input");
    assert_eq!(&second["body"]["input"].as_array().expect("input")[..before.len()], &before[..]);
    let fork = host.client.ask("thread/fork", json!({"threadId": thread, "delegation": full()})).await;
    host.thread = text(&fork["thread"]["id"]);
    let third = host.turn("third", "yes").await;
    assert_eq!(third["threadId"], json!(host.thread));
    let lines = super::prompt(&third);
    for said in ["user: hello", "assistant: hi", "user: again", "assistant: sure", "user: third"] {
        assert!(lines.iter().any(|line| line == said), "{said} is not in {lines:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_older_lease_is_fenced_off() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let client = server.connect_with(offer()).await;
    let with_epoch = |epoch: Value| {
        let mut delegation = full();
        delegation["hostEpoch"] = epoch;
        delegation
    };
    let mut host = Host::start(client, &stage, with_epoch(json!(5))).await;
    host.turn("hello", "hi").await;
    let thread = host.thread.clone();
    let mut other = server.connect_with(offer()).await;
    for stale in [json!(4), Value::Null] {
        let params = json!({"threadId": thread, "delegation": with_epoch(stale)});
        let refused = other.request("thread/resume", params).await.expect_err("stale");
        assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("fenced")));
        assert!(refused.message.contains("hostEpoch"), "{refused:?}");
    }
    // The newer lease takes the seat, also while the thread is in memory; the request under way is tried again there.
    let request = host.begin("more").await;
    let params = json!({"threadId": thread, "delegation": with_epoch(json!(6))});
    assert_eq!(other.ask("thread/resume", params).await["delegation"]["hostEpoch"], 6);
    let mut successor = Host { client: other, thread };
    let again = successor.accept().await;
    assert_eq!(
        (&again["retryOf"], &again["requestDigest"]),
        (&request["modelRequestId"], &request["requestDigest"])
    );
    let (code, data) = host.refused(&request, 0, json!([completed()])).await;
    assert_eq!((code, &data["code"]), (-32602, &json!("staleRequest")));
    let (_, data) = host.refused(&again, 0, json!([completed()])).await;
    assert_eq!(data["code"], "notTheHost");
    successor.finish(&again, "taken over").await;
    server.stop().await;
}

#[tokio::test]
async fn requests_stay_within_what_the_provider_can_do() {
    let stage = Stage::new(json!([])).await;
    let mut delegation = full();
    delegation["provider"]["capabilities"] =
        json!({"wire": "chat", "parallelToolCalls": false, "imagesIn": false, "jsonSchemaOutput": false});
    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    let params = json!({"cwd": stage.cwd(), "model": "gpt-5.4", "delegation": delegation});
    let thread = client.start_thread(params).await;
    let mut host = Host { client, thread };
    let request = host.turn("hello", "hi").await;
    assert_eq!(request["requires"], json!([]));
    let body = &request["body"];
    assert_eq!((&body["parallel_tool_calls"], &body["include"]), (&json!(false), &json!([])));
    let kinds = body["tools"].as_array().expect("tools").iter().map(|tool| text(&tool["type"]));
    assert!(kinds.clone().all(|kind| kind == "function"), "{:?}", kinds.collect::<Vec<_>>());
    assert!(body["tools"].as_array().expect("tools").iter().any(|tool| tool["name"] == "apply_patch"));
    // A missing capability of the provider is reported before anything is sent.
    let image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let input = json!([{"type": "text", "text": "look"}, {"type": "image", "url": image}]);
    let turn = host.client.turn_with(json!({"threadId": host.thread, "input": input})).await;
    assert_eq!((&turn["status"], &turn["error"]["codexErrorInfo"]), (&json!("failed"), &json!("badRequest")));
    assert!(text(&turn["error"]["message"]).contains("imageInput"), "{turn}");
    server.stop().await;
}

#[tokio::test]
async fn a_rich_provider_is_told_what_a_request_uses() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open_raw(None);
    client.initialize(offer()).await;
    let config = json!({"web_search": "live"});
    let params = json!({"cwd": stage.cwd(), "model": "gpt-5.4", "config": config, "delegation": full()});
    let thread = client.start_thread(params).await;
    let mut host = Host { client, thread };
    let mut params = super::said(&host.thread, "answer as JSON");
    params["outputSchema"] = json!({"type": "object"});
    host.client.ask("turn/start", params).await;
    let request = host.accept().await;
    assert_eq!(
        request["requires"],
        json!(["encryptedReasoning", "freeformTools", "hostedTool:web_search", "jsonSchemaOutput"])
    );
    host.finish(&request, "{}").await;
    server.stop().await;
}
