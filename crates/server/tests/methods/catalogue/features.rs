//! `experimentalFeature/list`.

use serde_json::{Value, json};
use testkit::{Stage, text};

use super::{one_by_one, rows};

#[tokio::test]
async fn features_are_listed_with_their_stage() {
    let stage = Stage::configured(json!([]), "features = { undo = true }").await;
    let (_server, mut client) = stage.open().await;
    let all = client.ask("experimentalFeature/list", json!({})).await;
    assert_eq!((rows(&all).len(), &all["nextCursor"]), (53, &Value::Null));
    let keys = ["announcement", "defaultEnabled", "description", "displayName", "enabled", "name", "stage"];
    for feature in rows(&all) {
        let mut found: Vec<&str> =
            feature.as_object().expect("a feature").keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, keys);
        assert_eq!(feature["announcement"].is_string(), feature["stage"] == "beta", "{feature}");
    }
    let undo = rows(&all).iter().find(|feature| feature["name"] == "undo").expect("the flag");
    assert_eq!((&undo["enabled"], &undo["defaultEnabled"]), (&json!(true), &json!(false)));
    let names: Vec<String> = rows(&all).iter().map(|feature| text(&feature["name"])).collect();
    assert_eq!(one_by_one(&mut client, "experimentalFeature/list", "name").await, names);
    let beyond = client.refused("experimentalFeature/list", json!({"cursor": "54"})).await;
    assert_eq!(beyond, "cursor 54 exceeds total feature flags 53");
    let bad = client.refused("experimentalFeature/list", json!({"cursor": "x"})).await;
    assert_eq!(bad, "invalid cursor: x");
}
