//! One search with one answer.

use serde_json::json;
use testkit::Stage;

use super::{files, paths, root};

#[tokio::test]
async fn matches_come_with_scores_and_indices() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["src/alpha.rs", "src/beta.rs", "docs/alpha.md"]);
    let (_server, mut client) = stage.open().await;
    let found = client.ask("fuzzyFileSearch", json!({"query": "alp", "roots": [root(&stage)]})).await;
    assert_eq!(
        found["files"][0],
        json!({
            "root": root(&stage), "path": "docs/alpha.md", "match_type": "file", "file_name": "alpha.md",
            "score": 84, "indices": [5, 6, 7]
        })
    );
    assert_eq!(paths(&found), ["docs/alpha.md", "src/alpha.rs"]);
    for params in [json!({"query": "", "roots": [root(&stage)]}), json!({"query": "alp", "roots": []})] {
        assert_eq!(client.ask("fuzzyFileSearch", params).await, json!({"files": []}));
    }
}

#[tokio::test]
async fn a_later_search_with_the_same_token_cancels_the_earlier_one() {
    let stage = Stage::new(json!([])).await;
    files(&stage, &["alpha", "beta"]);
    let (_server, mut client) = stage.open().await;
    let mut asked = Vec::new();
    for round in 0..20 {
        let query = if round % 2 == 0 { "alpha" } else { "beta" };
        let params = json!({"query": query, "roots": [root(&stage)], "cancellationToken": "t"});
        asked.push(client.send("fuzzyFileSearch", params).await);
    }
    let other = json!({"query": "alpha", "roots": [root(&stage)], "cancellationToken": "other"});
    assert_eq!(
        paths(&client.ask("fuzzyFileSearch", other).await),
        ["alpha"],
        "another token is another search"
    );
    let last = asked.pop().expect("one");
    for id in asked {
        let found = client.outcome(id).await.expect("each is answered");
        assert!(paths(&found).len() <= 1, "{found}");
    }
    assert_eq!(paths(&client.outcome(last).await.expect("found")), ["beta"]);
}
