//! Sessions.

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

use super::{files, paths, root};

const UPDATED: &str = "fuzzyFileSearch/sessionUpdated";
const COMPLETED: &str = "fuzzyFileSearch/sessionCompleted";

async fn start(client: &mut TestClient, id: &str, stage: &Stage) {
    let params = json!({"sessionId": id, "roots": [root(stage)]});
    assert_eq!(client.ask("fuzzyFileSearch/sessionStart", params).await, json!({}));
}

async fn update(client: &mut TestClient, id: &str, query: &str) {
    let params = json!({"sessionId": id, "query": query});
    assert_eq!(client.ask("fuzzyFileSearch/sessionUpdate", params).await, json!({}));
}

async fn found(client: &mut TestClient, id: &str, query: &str) -> Vec<String> {
    let fits = |params: &Value| params["sessionId"] == id && params["query"] == query;
    let updated = client.wait_for(UPDATED, fits).await;
    client.wait_for(COMPLETED, |params| params["sessionId"] == id).await;
    paths(&updated)
}

#[tokio::test]
async fn a_session_follows_its_query() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["src/alpha.rs", "src/beta.rs"]);
    let (_server, mut client) = stage.open().await;
    start(&mut client, "a", &stage).await;
    assert_eq!(found(&mut client, "a", "").await, [""; 0], "as the reference tells");
    for (query, expected) in [
        ("al", &["src/alpha.rs"][..]),
        ("alp", &["src/alpha.rs"]),
        ("zzz", &[]),
        ("", &[]),
        ("beta", &["src/beta.rs"]),
    ] {
        update(&mut client, "a", query).await;
        assert_eq!(found(&mut client, "a", query).await, expected, "{query}");
    }
    assert_eq!(client.rest().await, [""; 0], "nothing more until the query changes");
}

#[tokio::test]
async fn sessions_are_independent_and_end_when_they_are_stopped() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["alpha", "beta"]);
    let (_server, mut client) = stage.open().await;
    start(&mut client, "a", &stage).await;
    start(&mut client, "b", &stage).await;
    update(&mut client, "a", "alpha").await;
    update(&mut client, "b", "beta").await;
    assert_eq!(found(&mut client, "a", "alpha").await, ["alpha"]);
    assert_eq!(client.ask("fuzzyFileSearch/sessionStop", json!({"sessionId": "a"})).await, json!({}));
    let refused =
        client.refused("fuzzyFileSearch/sessionUpdate", json!({"sessionId": "a", "query": "x"})).await;
    assert_eq!(refused, "fuzzy file search session not found: a");
    update(&mut client, "b", "bet").await;
    assert_eq!(found(&mut client, "b", "bet").await, ["beta"]);
    let told = client.rest_whole().await;
    let is_stopped = |message: &&Value| message["params"]["sessionId"] == "a";
    assert_eq!(told.iter().filter(is_stopped).count(), 0, "{told:?}");
    assert_eq!(client.ask("fuzzyFileSearch/sessionStop", json!({"sessionId": "a"})).await, json!({}));
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["alpha"]);
    let (_server, mut client) = stage.open().await;
    let refused =
        client.refused("fuzzyFileSearch/sessionStart", json!({"sessionId": "", "roots": ["/"]})).await;
    assert_eq!(refused, "sessionId must not be empty");
    let refused =
        client.request("fuzzyFileSearch/sessionStart", json!({"sessionId": "a", "roots": []})).await;
    let refused = refused.expect_err("refused");
    let sentence = "failed to start fuzzy file search session: at least one search directory is required";
    assert_eq!((refused.code, refused.message.as_str()), (-32603, sentence));
    for number in 0..16 {
        start(&mut client, &format!("s{number}"), &stage).await;
    }
    let params = json!({"sessionId": "more", "roots": [root(&stage)]});
    let refused = client.refused("fuzzyFileSearch/sessionStart", params.clone()).await;
    assert!(refused.starts_with("16 fuzzy file search sessions are open"), "{refused}");
    start(&mut client, "s3", &stage).await;
    client.ask("fuzzyFileSearch/sessionStop", json!({"sessionId": "s4"})).await;
    client.ask("fuzzyFileSearch/sessionStart", params).await;
    update(&mut client, "more", "alp").await;
    assert_eq!(found(&mut client, "more", "alp").await, ["alpha"]);
}

#[tokio::test]
async fn a_session_ends_with_its_connection() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["alpha"]);
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    start(&mut client, "a", &stage).await;
    drop(client);
    let refused =
        other.refused("fuzzyFileSearch/sessionUpdate", json!({"sessionId": "a", "query": "x"})).await;
    assert_eq!(refused, "fuzzy file search session not found: a");
}
