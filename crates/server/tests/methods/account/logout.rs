//! `account/logout`.

use serde_json::{Value, json};
use testkit::Stage;

use super::{OPENAI, key};

#[tokio::test]
async fn a_logout_is_answered_told_and_forgotten() {
    let stage = Stage::configured(json!([]), OPENAI).await;
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    client.ask("account/login/start", key()).await;
    client.rest().await;
    other.rest().await;
    client.transcript();
    assert_eq!(client.ask("account/logout", Value::Null).await, json!({}));
    for client in [&mut client, &mut other] {
        assert_eq!(client.next_of("account/updated").await, json!({"authMode": null, "planType": null}));
    }
    assert_eq!(client.transcript(), ["= account/logout", "account/updated"]);
    assert!(!stage.home().join("credentials.json").exists());
    let read = json!({"account": null, "requiresOpenaiAuth": true});
    assert_eq!(client.ask("account/read", json!({})).await, read);
}
