//! `getAuthStatus`.

use serde_json::{Value, json};
use testkit::Stage;

use super::{OPENAI, key};

#[tokio::test]
async fn the_older_question_never_shows_the_key() {
    let stage = Stage::configured(json!([]), OPENAI).await;
    let (_server, mut client) = stage.open().await;
    let status = |method: Value| json!({"authMethod": method, "authToken": null, "requiresOpenaiAuth": true});
    assert_eq!(client.ask("getAuthStatus", json!({})).await, status(Value::Null));
    client.ask("account/login/start", key()).await;
    assert_eq!(client.ask("getAuthStatus", json!({})).await, status(json!("apikey")));
    assert_eq!(client.ask("getAuthStatus", json!({"includeToken": true})).await, status(json!("apikey")));

    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let none = json!({"authMethod": null, "authToken": null, "requiresOpenaiAuth": false});
    assert_eq!(client.ask("getAuthStatus", json!({"includeToken": true})).await, none);
}
