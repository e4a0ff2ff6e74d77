//! `app/list`.

use serde_json::{Value, json};
use testkit::Stage;

#[tokio::test]
async fn apps_are_shown_to_experimental_clients_only() {
    let stage = Stage::configured(json!([]), "apps = { demo = { enabled = false } }").await;
    let server = stage.listen();
    let (mut experimental, mut stable) = (server.connect().await, server.connect_with(Value::Null).await);
    let read = experimental.ask("config/read", json!({})).await;
    assert_eq!(read["config"]["apps"]["demo"]["enabled"], false);
    let read = stable.ask("config/read", json!({})).await;
    assert!(read["config"]["apps"].is_null(), "{}", read["config"]["apps"]);
}
