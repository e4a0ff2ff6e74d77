//! `account/*` and `getAuthStatus`.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::stage::Stage;

const OPENAI: &str = "model_provider = \"openai\"";

fn key() -> Value {
    json!({"type": "apiKey", "apiKey": "sk-test-1234"})
}

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

#[tokio::test]
async fn a_provider_without_openai_auth_has_no_account() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    client.ask("account/login/start", key()).await;
    let read = json!({"account": null, "requiresOpenaiAuth": false});
    assert_eq!(client.ask("account/read", json!({})).await, read);
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
