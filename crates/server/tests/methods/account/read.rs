//! `account/read`.

use serde_json::json;
use testkit::Stage;

use super::key;

#[tokio::test]
async fn a_provider_without_openai_auth_has_no_account() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    client.ask("account/login/start", key()).await;
    let read = json!({"account": null, "requiresOpenaiAuth": false});
    assert_eq!(client.ask("account/read", json!({})).await, read);
}
