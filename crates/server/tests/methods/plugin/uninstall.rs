use serde_json::json;
use testkit::Stage;

use super::marketplace;

#[tokio::test]
async fn an_uninstalled_plugin_leaves_nothing() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    let before = std::fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    client.ask("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    for _ in 0..2 {
        assert_eq!(client.ask("plugin/uninstall", json!({"pluginId": "p@m"})).await, json!({}));
    }
    assert!(!stage.home().join("plugins/cache/m/p").exists());
    let after = std::fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    assert_eq!(after.trim_end(), before.trim_end());
    let listed = client.ask("plugin/list", json!({"cwds": [stage.cwd()]})).await;
    assert_eq!(listed["marketplaces"][0]["plugins"][0]["installed"], false);
    let skills = client.ask("skills/list", json!({"cwds": [stage.cwd()]})).await;
    assert!(!skills.to_string().contains("p:one"));
    for bad in ["p", "", "../p@m", "p@m/x"] {
        let refused = client.refused("plugin/uninstall", json!({"pluginId": bad})).await;
        assert_eq!(refused, format!("invalid plugin key `{bad}`; expected <plugin>@<marketplace>"));
    }
}
