use serde_json::json;
use testkit::Stage;

use super::marketplace;

#[tokio::test]
async fn a_marketplace_of_a_folder_is_listed_with_its_plugins() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("plugin/list", json!({"cwds": [stage.cwd()]})).await;
    assert_eq!((&listed["marketplaceLoadErrors"], &listed["remoteSyncError"]), (&json!([]), &json!(null)));
    let found = &listed["marketplaces"][0];
    assert_eq!((&found["name"], &found["path"]), (&json!("m"), &json!(file)));
    assert_eq!(found["interface"], json!({"displayName": "Market"}));
    let names: Vec<_> =
        found["plugins"].as_array().expect("plugins").iter().map(|plugin| &plugin["id"]).collect();
    assert_eq!(names, ["p@m", "closed@m", "empty@m"], "one for another program is left out");
    let p = &found["plugins"][0];
    assert_eq!(p["source"], json!({"type": "local", "path": stage.cwd().join("plugins/p")}));
    assert_eq!((&p["installed"], &p["enabled"]), (&json!(false), &json!(false)));
    assert_eq!((&p["installPolicy"], &p["authPolicy"]), (&json!("AVAILABLE"), &json!("ON_USE")));
    let shown = &p["interface"];
    assert_eq!((&shown["category"], &shown["defaultPrompt"]), (&json!("Work"), &json!(["try it"])));
    assert_eq!(shown["logo"], json!(stage.cwd().join("plugins/p/assets/l.png")));
    assert_eq!(found["plugins"][1]["installPolicy"], "NOT_AVAILABLE");
    let none = client.ask("plugin/list", json!({})).await;
    assert_eq!(none["marketplaces"], json!([]), "only folders that are asked about count");
    let synced = client.ask("plugin/list", json!({"forceRemoteSync": true})).await;
    assert!(synced["remoteSyncError"].as_str().expect("a reason").contains("no remote plugin service"));
}

#[tokio::test]
async fn a_marketplace_that_cannot_be_read_does_not_hide_others() {
    let stage = Stage::new(json!([])).await;
    marketplace(&stage);
    let other = stage.cwd().parent().expect("a parent").join("other");
    std::fs::create_dir_all(other.join(".agents/plugins")).expect("made");
    std::fs::write(other.join(".agents/plugins/marketplace.json"), "{").expect("written");
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("plugin/list", json!({"cwds": [other, stage.cwd()]})).await;
    assert_eq!(listed["marketplaces"].as_array().map(Vec::len), Some(1));
    let error = listed["marketplaceLoadErrors"][0]["message"].as_str().expect("a reason");
    assert!(error.starts_with("invalid marketplace file `"), "{error}");
    client.refused("plugin/list", json!({"cwds": ["relative"]})).await;
    stage.configure("[features]\nplugins = false\n");
    let off = client.ask("plugin/list", json!({"cwds": [stage.cwd()]})).await;
    assert_eq!(off["marketplaces"], json!([]));
}
