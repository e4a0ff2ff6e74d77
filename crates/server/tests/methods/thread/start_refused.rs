//! Settings that would do harm in silence are refused or said.

use serde_json::json;
use testkit::Stage;

#[tokio::test]
async fn a_misspelt_provider_of_a_request_opens_no_thread() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (config, expected) in [
        (
            json!({"model_providers.corp": {"name": "c", "base_ur": "http://127.0.0.1:1"}}),
            "did you mean `base_url`?",
        ),
        (json!({"model_providers": {"corp": {"name": "c"}}}), "model_providers.corp has no base_url"),
        (json!({"model_provder": "corp"}), "did you mean `model_provider`?"),
        (json!({"sandbox.deny_raed": ["/x"]}), "did you mean `deny_read`?"),
    ] {
        let message = client.refused("thread/start", json!({"cwd": stage.cwd(), "config": config})).await;
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn without_a_key_a_turn_is_unauthorized_and_names_the_variable() {
    let keys = "model_providers.keyed = { name = \"k\", base_url = \"http://127.0.0.1:1\", env_key = \"NOBODY_SET_THIS\" }";
    let stage = Stage::configured(json!([]), keys).await;
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": stage.cwd(), "modelProvider": "keyed"})).await;
    let turn = client.turn(&thread, "hello").await;
    assert_eq!(turn["error"]["codexErrorInfo"], "unauthorized", "{turn}");
    assert!(turn["error"]["message"].as_str().is_some_and(|text| text.contains("NOBODY_SET_THIS")), "{turn}");
}
