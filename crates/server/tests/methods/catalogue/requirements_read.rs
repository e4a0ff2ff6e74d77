//! `configRequirements/read`.

use serde_json::{Value, json};
use testkit::Stage;

#[tokio::test]
async fn requirements_are_null_until_an_administrator_sets_some() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("configRequirements/read", Value::Null).await;
    assert_eq!(read, json!({"requirements": null}));
    let text = "allowed_approval_policies = [\"on-request\"]\nallowed_sandbox_modes = [\"read-only\"]\n\
                allowed_web_search_modes = [\"cached\"]\n[features]\nundo = false";
    stage.write_machine("requirements.toml", text);
    let (_server, mut client) = stage.open().await;
    let read = client.ask("configRequirements/read", json!({})).await;
    let found = &read["requirements"];
    assert_eq!(found["allowedApprovalPolicies"], json!(["on-request"]));
    assert_eq!(found["allowedSandboxModes"], json!(["read-only"]));
    assert_eq!(found["allowedWebSearchModes"], json!(["cached", "disabled"]));
    assert_eq!(found["featureRequirements"], json!({"undo": false}));
    assert_eq!(found["enforceResidency"], Value::Null);
}
