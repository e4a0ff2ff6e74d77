//! Decisions that only a host may make: offered only where it was agreed on, and carried out.

use serde_json::{Value, json};
use testkit::Stage;

use super::{Host, call, completed, done, full, prompt, whole};

const COMMAND: &str = "item/commandExecution/requestApproval";
const PATCH: &str = "item/fileChange/requestApproval";

fn patch(name: &str, line: &str) -> String {
    format!("*** Begin Patch\n*** Add File: {name}\n+{line}\n*** End Patch")
}

async fn host(stage: &Stage, features: Value) -> (testkit::TestServer, Host) {
    let (server, mut client) = stage.open_raw(None);
    let offer = json!({"versions": [1], "features": features});
    client.initialize(json!({"experimentalApi": true, "hostDelegation": offer})).await;
    let params = json!({
        "cwd": stage.cwd(), "model": "mock-model", "delegation": full(), "approvalPolicy": "untrusted",
        "sandbox": "workspace-write",
    });
    let thread = client.start_thread(params).await;
    (server, Host { client, thread })
}

/// The names of the decisions in a list, in order.
fn names(decisions: &Value) -> Vec<String> {
    let name = |decision: &Value| match decision {
        Value::String(name) => name.clone(),
        Value::Object(fields) => fields.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    };
    decisions.as_array().expect("decisions").iter().map(name).collect()
}

#[tokio::test]
async fn what_was_agreed_on_is_offered_with_the_question() {
    let extras = ["acceptWithCommandOverride", "acceptWithArguments", "respond"];
    for (features, is_agreed) in
        [(json!(["modelTransport"]), false), (json!(["modelTransport", "operations"]), true)]
    {
        let stage = Stage::new(json!([])).await;
        let (server, mut host) = host(&stage, features).await;
        let request = host.begin("go").await;
        let asks = call("c1", "exec_command", &json!({"cmd": "touch first"}));
        host.push(&request, 0, json!([done(asks), completed()])).await;
        let question = host.client.next_of(COMMAND).await;
        let offered = names(&question["params"]["availableDecisions"]);
        for extra in extras {
            assert_eq!(offered.iter().any(|name| name == extra), is_agreed, "{extra} in {offered:?}");
        }
        assert_eq!(offered.last().map(String::as_str), Some("cancel"));
        // An offered decision is shown as an example, and can be sent back as it is.
        let decision = match is_agreed {
            true => question["params"]["availableDecisions"]
                .as_array()
                .and_then(|all| all.iter().find(|one| one.get("acceptWithArguments").is_some()).cloned())
                .expect("it is offered"),
            false => json!("accept"),
        };
        host.client.answer(&question, json!({"decision": decision})).await;
        let next = host.accept().await;
        assert!(stage.cwd().join("first").exists(), "{:?}", prompt(&next));
        host.push(&next, 0, whole("done")).await;
        host.ended().await;
        server.stop().await;
    }
}

#[tokio::test]
async fn another_patch_is_applied_instead_of_the_models() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = host(&stage, json!(["modelTransport", "operations"])).await;
    let request = host.begin("go").await;
    let cmd = format!("apply_patch <<'E'\n{}\nE\n", patch("model.txt", "of the model"));
    let asks = call("c1", "exec_command", &json!({"cmd": cmd}));
    host.push(&request, 0, json!([done(asks), completed()])).await;
    let question = host.client.next_of(PATCH).await;
    let arguments = json!({"input": patch("host.txt", "of the host")});
    host.client
        .answer(&question, json!({"decision": {"acceptWithArguments": {"arguments": arguments}}}))
        .await;
    let next = host.accept().await;
    assert_eq!(std::fs::read_to_string(stage.cwd().join("host.txt")).ok().as_deref(), Some("of the host\n"));
    assert!(!stage.cwd().join("model.txt").exists());
    assert!(prompt(&next).iter().any(|line| line.contains("host.txt")), "{:?}", prompt(&next));
    let shown = host.client.wait_for("item/completed", |params| params["item"]["type"] == "fileChange").await;
    assert!(
        shown["item"]["changes"][0]["path"].as_str().is_some_and(|path| path.ends_with("host.txt")),
        "{shown}"
    );
    host.finish(&next, "done").await;
    server.stop().await;
}
