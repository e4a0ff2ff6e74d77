//! `app/list`.

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

use crate::account::id_token;
use crate::plugin::marketplace;

async fn log_in(client: &mut TestClient) {
    let tokens =
        json!({"type": "chatgptAuthTokens", "accessToken": id_token(), "chatgptAccountId": "workspace-1"});
    client.ask("account/login/start", tokens).await;
}

async fn ids(client: &mut TestClient, params: Value) -> Vec<Value> {
    let listed = client.ask("app/list", params).await;
    listed["data"].as_array().expect("a list").iter().map(|app| app["id"].clone()).collect()
}

#[tokio::test]
async fn apps_of_installed_plugins_are_listed_for_a_chatgpt_account() {
    let settings = "apps = { connector_1 = { enabled = false } }";
    let stage = Stage::configured(json!([]), settings).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    let install = json!({"marketplacePath": file, "pluginName": "p"});
    let installed = client.ask("plugin/install", install.clone()).await;
    assert_eq!(installed["appsNeedingAuth"], json!([]), "nobody is logged in");
    assert_eq!(ids(&mut client, json!({})).await, Vec::<Value>::new());

    log_in(&mut client).await;
    let installed = client.ask("plugin/install", install).await;
    let summary = json!({"id": "connector_1", "name": "calendar", "description": null, "needsAuth": true,
                         "installUrl": "https://chatgpt.com/apps/calendar/connector_1"});
    assert_eq!(installed["appsNeedingAuth"], json!([summary]));
    let listed = client.ask("app/list", json!({})).await;
    let [app] = listed["data"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
    assert_eq!(
        (&app["id"], &app["name"], &app["isAccessible"], &app["isEnabled"], &app["pluginDisplayNames"]),
        (&json!("connector_1"), &json!("calendar"), &json!(false), &json!(false), &json!(["P"])),
    );
    assert_eq!(app["installUrl"], summary["installUrl"]);
    assert_eq!(listed["nextCursor"], Value::Null);

    // A thread's own feature decides for it.
    let without = client.start_thread(json!({"config": {"features.apps": false}})).await;
    assert_eq!(ids(&mut client, json!({"threadId": without})).await, Vec::<Value>::new());
    let with = client.start_thread(json!({})).await;
    assert_eq!(ids(&mut client, json!({"threadId": with})).await, ["connector_1"]);
}

#[tokio::test]
async fn apps_are_listed_in_pages() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let apps = json!({"apps": {"b": {"id": "two"}, "a": {"id": "one"}, "c": {"id": "three"}}});
    std::fs::write(stage.cwd().join("plugins/p/.app.json"), apps.to_string()).expect("written");
    let (_server, mut client) = stage.open().await;
    log_in(&mut client).await;
    client.ask("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    let first = client.ask("app/list", json!({"limit": 2})).await;
    assert_eq!((&first["data"][0]["id"], &first["data"][1]["id"]), (&json!("one"), &json!("two")));
    assert_eq!(ids(&mut client, json!({"cursor": first["nextCursor"], "limit": 2})).await, ["three"]);
    for (cursor, expected) in [("4", "cursor 4 exceeds total apps 3"), ("x", "invalid cursor: x")] {
        assert_eq!(client.refused("app/list", json!({"cursor": cursor})).await, expected);
    }
    let nowhere =
        client.refused("app/list", json!({"threadId": "01a1e1a1-feec-7000-80ad-c975e4b244a3"})).await;
    assert!(nowhere.starts_with("thread not found"), "{nowhere}");
}

#[tokio::test]
async fn clients_are_notified_when_the_list_of_apps_changes() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    log_in(&mut client).await;
    client.ask("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    assert_eq!(other.next_of("app/list/updated").await["data"][0]["id"], "connector_1");
    for (is_on, expected) in [(false, json!([])), (true, json!(["connector_1"]))] {
        client.ask("experimentalFeature/enablement/set", json!({"enablement": {"apps": is_on}})).await;
        let told = other.next_of("app/list/updated").await;
        let ids: Vec<&Value> =
            told["data"].as_array().expect("a list").iter().map(|app| &app["id"]).collect();
        assert_eq!(json!(ids), expected);
    }
    client.ask("plugin/uninstall", json!({"pluginId": "p@m"})).await;
    assert_eq!(other.next_of("app/list/updated").await["data"], json!([]));
}

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
