//! `account/login/start`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::Stage;

use super::{OPENAI, key};

#[tokio::test]
async fn a_login_is_answered_told_and_stored() {
    let stage = Stage::configured(json!([]), OPENAI).await;
    let (server, mut client) = stage.open().await;
    assert_eq!(
        client.ask("account/read", json!({})).await,
        json!({"account": null, "requiresOpenaiAuth": true})
    );
    client.transcript();
    assert_eq!(client.ask("account/login/start", key()).await, json!({"type": "apiKey"}));
    let completed = client.next_of("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": null, "success": true, "error": null}));
    let updated = client.next_of("account/updated").await;
    assert_eq!(updated, json!({"authMode": "apikey", "planType": null}));
    let expected = ["= account/login/start", "account/login/completed", "account/updated"];
    assert_eq!(client.transcript(), expected);
    let stored = stage.home().join("credentials.json");
    let mode = std::fs::metadata(&stored).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    let read = json!({"account": {"type": "apiKey"}, "requiresOpenaiAuth": true});
    assert_eq!(client.ask("account/read", json!({"refreshToken": true})).await, read);
}

#[tokio::test]
async fn a_way_to_log_in_can_be_forbidden() {
    let cases = [
        ("chatgpt", key(), "API key login is disabled. Use ChatGPT login instead."),
        ("api", json!({"type": "chatgpt"}), "ChatGPT login is disabled. Use API key login instead."),
    ];
    for (forced, params, expected) in cases {
        let keys = format!("{OPENAI}\nforced_login_method = {forced:?}");
        let stage = Stage::configured(json!([]), &keys).await;
        let (_server, mut client) = stage.open().await;
        assert_eq!(client.refused("account/login/start", params).await, expected);
        assert_eq!(client.ask("account/read", json!({})).await["account"], Value::Null);
        let heard = client.rest().await;
        assert!(!heard.iter().any(|method| method.starts_with("account/")), "{heard:?}");
    }
}
