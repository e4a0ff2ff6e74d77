//! `fs/watch`, `fs/unwatch` and `fs/changed`.

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, text};

use super::{at, refusal, text_of, write};

async fn watch(client: &mut TestClient, path: &std::path::Path) -> String {
    let answer = client.ask("fs/watch", json!({"path": text_of(path)})).await;
    assert_eq!(answer["path"], text_of(path));
    text(&answer["watchId"])
}

async fn changed(client: &mut TestClient, id: &str) -> Vec<String> {
    let told = client.wait_for("fs/changed", |params| params["watchId"] == id).await;
    told["changedPaths"].as_array().expect("paths").iter().map(text).collect()
}

#[tokio::test]
async fn changes_are_told_to_the_watching_connection_alone() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let (mut client, mut stranger) = (server.connect().await, server.connect().await);
    let folder = at(&stage, "src");
    fs::create_dir(&folder).expect("made");
    let id = watch(&mut client, &folder).await;
    assert_eq!(id.len(), 36, "{id}");
    assert_eq!(id.as_bytes()[14], b'7', "ids sort by time: {id}");
    write(&mut client, &folder.join("b"), "x").await;
    write(&mut client, &folder.join("a"), "x").await;
    let mut seen = changed(&mut client, &id).await;
    while seen.len() < 2 {
        seen.extend(changed(&mut client, &id).await);
    }
    assert_eq!(seen, [text_of(&folder.join("a")), text_of(&folder.join("b"))], "sorted, no temporary names");
    assert!(!stranger.rest().await.contains(&"fs/changed".to_owned()));
}

#[tokio::test]
async fn a_file_that_is_missing_or_replaced_stays_watched() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let file = at(&stage, "new/file");
    let id = watch(&mut client, &file).await;
    client.ask("fs/createDirectory", json!({"path": text_of(&at(&stage, "new"))})).await;
    for round in 0..3 {
        write(&mut client, &file, &format!("{round}")).await;
        assert_eq!(changed(&mut client, &id).await, [text_of(&file)], "round {round}");
    }
}

#[tokio::test]
async fn nothing_is_told_after_unwatch() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let file = at(&stage, "file");
    let id = watch(&mut client, &file).await;
    write(&mut client, &file, "x").await;
    assert_eq!(client.ask("fs/unwatch", json!({"watchId": id})).await, json!({}));
    client.rest().await;
    let other = watch(&mut client, &file).await;
    write(&mut client, &file, "y").await;
    let told: Value = client.wait_for("fs/changed", |_| true).await;
    assert_eq!(told["watchId"], other);
    assert_eq!(client.ask("fs/unwatch", json!({"watchId": "unknown"})).await, json!({}));
}

#[tokio::test]
async fn a_connection_has_so_many_watches_and_no_more() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let mut ids = Vec::new();
    for number in 0..128 {
        ids.push(watch(&mut client, &at(&stage, &format!("f{number}"))).await);
    }
    let params = json!({"path": text_of(&at(&stage, "more"))});
    let (code, message) = refusal(&mut client, "fs/watch", params.clone()).await;
    assert_eq!(code, -32600);
    assert_eq!(message, "128 paths are watched by this connection, which is the most; end one by fs/unwatch");
    watch(&mut other, &at(&stage, "more")).await;
    client.ask("fs/unwatch", json!({"watchId": ids[0]})).await;
    client.ask("fs/watch", params).await;
}
