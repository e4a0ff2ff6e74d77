//! `experimentalFeature/enablement/set`.

use serde_json::{Value, json};
use testkit::Stage;

const SET: &str = "experimentalFeature/enablement/set";

#[tokio::test]
async fn flags_are_switched_for_the_process_and_never_against_configuration() {
    let stage = Stage::configured(json!([]), "features = { apps = true }").await;
    let (_server, mut client) = stage.open().await;
    let flags = json!({"enablement": {"apps": false, "tool_search": true}});
    assert_eq!(client.ask(SET, flags.clone()).await, flags);
    assert_eq!(client.ask(SET, json!({"enablement": {}})).await, json!({"enablement": {}}));
    let features = |read: Value| read["config"]["features"].clone();
    let here = features(client.ask("config/read", json!({})).await);
    let there = features(client.ask("config/read", json!({"cwd": stage.cwd()})).await);
    for features in [here, there] {
        assert_eq!((&features["apps"], &features["tool_search"]), (&json!(true), &json!(true)));
    }
    let listed = client.ask("experimentalFeature/list", json!({})).await;
    let all = listed["data"].as_array().expect("flags");
    let search = all.iter().find(|flag| flag["name"] == "tool_search").expect("the flag");
    assert_eq!(search["enabled"], true);
}

#[tokio::test]
async fn only_some_flags_can_be_switched() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (key, expected) in [
        (
            "undo",
            "unsupported feature enablement `undo`: currently supported features are apps, plugins, tool_search, \
             tool_suggest, tool_call_mcp_elicitation",
        ),
        ("connectors", "invalid feature enablement `connectors`: use canonical feature key `apps`"),
        ("no_such", "invalid feature enablement `no_such`"),
    ] {
        assert_eq!(client.refused(SET, json!({"enablement": {key: true}})).await, expected);
    }
}
