//! `account/rateLimits/read`, and logins of another kind.

use serde_json::{Value, json};
use testkit::Stage;

use super::{OPENAI, key};

#[tokio::test]
async fn limits_and_logins_of_another_kind_are_told_apart_from_a_missing_login() {
    let stage = Stage::configured(json!([]), OPENAI).await;
    let (_server, mut client) = stage.open().await;
    let read = "account/rateLimits/read";
    let expected = "codex account authentication required to read rate limits";
    assert_eq!(client.refused(read, Value::Null).await, expected);
    client.ask("account/login/start", key()).await;
    assert_eq!(
        client.refused(read, Value::Null).await,
        "chatgpt authentication required to read rate limits"
    );
    let unknown = json!({"loginId": "00000000-0000-7000-8000-000000000000"});
    assert_eq!(client.ask("account/login/cancel", unknown).await, json!({"status": "notFound"}));
    let message = client.refused("account/login/cancel", json!({"loginId": "mine"})).await;
    assert_eq!(message, "invalid login id: mine");
}
