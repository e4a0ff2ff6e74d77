//! Logging in with a ChatGPT account.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, text};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::issuer::{MockIssuer, SECRET, access_token, id_token};

async fn stage() -> (Stage, MockIssuer) {
    let issuer = MockIssuer::start().await;
    let stage = Stage::configured(json!([]), &issuer.settings()).await;
    stage.set_issuer(&issuer.address);
    (stage, issuer)
}

/// A value of a query, decoded as far as these tests need it.
fn value(url: &str, name: &str) -> String {
    let query = url.split_once('?').expect("a query").1;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(known, _)| *known == name).expect("a value").1;
    found.replace("%3A", ":").replace("%2F", "/")
}

/// The status with which a page answers.
async fn open_page(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").expect("http").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host.replace("localhost", "127.0.0.1")).await.expect("connected");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(!answer.contains(SECRET), "{answer}");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

/// Logs in with the code of a device.
async fn log_in(client: &mut TestClient) {
    client.ask("account/login/start", json!({"type": "chatgptDeviceCode"})).await;
    client.next_of("account/updated").await;
}

fn account() -> Value {
    json!({"account": {"type": "chatgpt", "email": "user@example.org", "planType": "plus"}, "requiresOpenaiAuth": true})
}

#[tokio::test]
async fn a_browser_comes_back_with_a_code_and_the_tokens_are_stored() {
    let (stage, issuer) = stage().await;
    let (server, mut client) = stage.open().await;
    let started = client.ask("account/login/start", json!({"type": "chatgpt"})).await;
    let url = text(&started["authUrl"]);
    assert!(url.starts_with(&format!("{}/oauth/authorize?", issuer.address)), "{url}");
    let (redirect, state) = (value(&url, "redirect_uri"), value(&url, "state"));
    // A stranger who knows the port, but not the secret, changes nothing.
    for wrong in ["?code=evil&state=guess", "?code=evil", "", "?state="] {
        assert_eq!(open_page(&format!("{redirect}{wrong}")).await, "404");
    }
    assert_eq!(open_page(&format!("{redirect}?code=the%20code&state={state}")).await, "200");
    let completed = client.next_of("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": started["loginId"], "success": true, "error": null}));
    let updated = client.next_of("account/updated").await;
    assert_eq!(updated, json!({"authMode": "chatgpt", "planType": "plus"}));
    let exchanged = &issuer.asked("/oauth/token")[0].1;
    assert!(exchanged.contains("code=the%20code") && exchanged.contains("code_verifier="), "{exchanged}");
    let stored = stage.home().join("credentials.json");
    assert_eq!(std::fs::metadata(&stored).expect("a file").permissions().mode() & 0o777, 0o600);
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    assert_eq!(client.ask("account/read", json!({})).await, account());
    let status = client.ask("getAuthStatus", json!({"includeToken": true, "refreshToken": false})).await;
    assert_eq!(status, json!({"authMethod": "chatgpt", "authToken": null, "requiresOpenaiAuth": true}));
    client.ask("account/logout", Value::Null).await;
    assert_eq!(client.next_of("account/updated").await, json!({"authMode": null, "planType": null}));
    assert!(!stored.exists());
}

#[tokio::test]
async fn a_code_on_another_device_logs_in_too() {
    let (stage, issuer) = stage().await;
    issuer.state.lock().expect("not poisoned").device_waits = 2;
    let (_server, mut client) = stage.open().await;
    let started = client.ask("account/login/start", json!({"type": "chatgptDeviceCode"})).await;
    assert_eq!(started["userCode"], "ABCD-EFGH");
    assert_eq!(started["verificationUrl"], format!("{}/codex/device", issuer.address));
    assert_eq!(client.next_of("account/login/completed").await["success"], true);
    client.next_of("account/updated").await;
    assert_eq!(client.ask("account/read", json!({})).await, account());
    assert_eq!(issuer.asked("/api/accounts/deviceauth/token").len(), 3);
    let limits = client.ask("account/rateLimits/read", Value::Null).await;
    assert_eq!(limits["rateLimits"]["primary"]["usedPercent"], 40);
    assert_eq!(issuer.asked("/api/codex/usage")[0].0, access_token(0));
}

#[tokio::test]
async fn a_login_that_waits_can_be_cancelled() {
    let (stage, _issuer) = stage().await;
    let (_server, mut client) = stage.open().await;
    let started = client.ask("account/login/start", json!({"type": "chatgpt"})).await;
    let id = json!({"loginId": started["loginId"]});
    assert_eq!(client.ask("account/login/cancel", id.clone()).await, json!({"status": "canceled"}));
    let completed = client.next_of("account/login/completed").await;
    assert_eq!((&completed["loginId"], &completed["success"]), (&started["loginId"], &json!(false)));
    assert_eq!(client.ask("account/login/cancel", id).await, json!({"status": "notFound"}));
    assert_eq!(client.ask("account/read", json!({})).await["account"], Value::Null);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_nobody_is_shown_one() {
    let (stage, issuer) = stage().await;
    let (_server, mut client) = stage.open().await;
    log_in(&mut client).await;
    let id = client.start_thread(json!({})).await;
    assert_eq!(client.turn(&id, "one").await["status"], "completed");
    issuer.state.lock().expect("not poisoned").good.clear();
    assert_eq!(client.turn(&id, "two").await["status"], "completed");
    let tokens: Vec<String> = issuer.asked("/v1/responses").into_iter().map(|(token, _)| token).collect();
    assert_eq!(tokens, [access_token(0), access_token(0), access_token(1)]);
    // Until the issuer will not renew it any more.
    {
        let mut state = issuer.state.lock().expect("not poisoned");
        state.refuses_refresh = true;
        state.good.clear();
    }
    let ended = client.turn(&id, "three").await;
    assert_eq!(ended["status"], "failed");
    let message = text(&ended["error"]["message"]);
    assert!(message.contains("Log in again"), "{message}");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let heard: Vec<Value> = client.rest_whole().await;
    assert!(!format!("{read}{heard:?}{ended}").contains(SECRET));
    let record = std::fs::read_to_string(text(&read["thread"]["path"])).expect("a record");
    assert!(!record.contains(SECRET));
}

#[tokio::test]
async fn tokens_of_a_client_stay_in_memory_and_it_renews_them() {
    let (stage, issuer) = stage().await;
    let (_server, mut client) = stage.open().await;
    let tokens = json!({"type": "chatgptAuthTokens", "accessToken": id_token(), "chatgptAccountId": "workspace-1",
        "chatgptPlanType": "pro"});
    assert_eq!(client.ask("account/login/start", tokens).await, json!({"type": "chatgptAuthTokens"}));
    let completed = client.next_of("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": null, "success": true, "error": null}));
    let updated = client.next_of("account/updated").await;
    assert_eq!(updated, json!({"authMode": "chatgptAuthTokens", "planType": "pro"}));
    assert!(!stage.home().join("credentials.json").exists());
    let refused = client.refused("account/login/start", json!({"type": "chatgpt"})).await;
    assert!(refused.starts_with("External auth is active."), "{refused}");
    let id = client.start_thread(json!({})).await;
    client.ask("turn/start", json!({"threadId": id, "input": [{"type": "text", "text": "go"}]})).await;
    let question = client.next_of("account/chatgptAuthTokens/refresh").await;
    assert_eq!(question["params"], json!({"reason": "unauthorized", "previousAccountId": "workspace-1"}));
    let fresh =
        json!({"accessToken": access_token(0), "chatgptAccountId": "workspace-1", "chatgptPlanType": null});
    client.answer(&question, fresh).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert_eq!(issuer.asked("/v1/responses").len(), 2);
    client.ask("account/logout", Value::Null).await;
    assert_eq!(client.ask("account/read", json!({})).await["account"], Value::Null);
}

#[tokio::test]
async fn only_the_forced_workspace_may_log_in() {
    let issuer = MockIssuer::start().await;
    let settings = format!("{}\nforced_chatgpt_workspace_id = \"other\"", issuer.settings());
    let stage = Stage::configured(json!([]), &settings).await;
    stage.set_issuer(&issuer.address);
    let (_server, mut client) = stage.open().await;
    let tokens = json!({"type": "chatgptAuthTokens", "accessToken": "x", "chatgptAccountId": "workspace-1"});
    let refused = client.refused("account/login/start", tokens).await;
    assert_eq!(refused, "External auth must use workspace other, but received \"workspace-1\".");
    client.ask("account/login/start", json!({"type": "chatgptDeviceCode"})).await;
    let completed = client.next_of("account/login/completed").await;
    assert_eq!(completed["error"], "Login is restricted to workspace id other.");
    assert!(!stage.home().join("credentials.json").exists());
}
