//! `windowsSandbox/setupStart`.

use serde_json::json;
use testkit::Stage;

#[tokio::test]
async fn this_system_has_no_windows_sandbox() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let started = client.ask("windowsSandbox/setupStart", json!({"mode": "elevated"})).await;
    assert_eq!(started, json!({"started": true}));
    let told = client.wait_for("windowsSandbox/setupCompleted", |_| true).await;
    let error = "elevated Windows sandbox setup is only supported on Windows";
    assert_eq!(told, json!({"mode": "elevated", "success": false, "error": error}));
}
