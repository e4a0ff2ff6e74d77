use serde_json::json;
use testkit::Stage;

use super::marketplace;

#[tokio::test]
async fn a_plugin_is_read_with_all_it_contains() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    // A link out of the plugin is no skill of it.
    let secret = stage.cwd().join("secret");
    std::fs::create_dir_all(&secret).expect("made");
    std::fs::write(secret.join("SKILL.md"), "---\nname: stolen\ndescription: d\n---\n").expect("written");
    std::os::unix::fs::symlink(&secret, stage.cwd().join("plugins/p/skills/link")).expect("linked");
    let (_server, mut client) = stage.open().await;
    let read = client.ask("plugin/read", json!({"marketplacePath": file, "pluginName": "p"})).await;
    let plugin = &read["plugin"];
    assert_eq!((&plugin["marketplaceName"], &plugin["description"]), (&json!("m"), &json!("first")));
    assert_eq!(plugin["summary"]["id"], "p@m");
    assert_eq!(
        plugin["skills"],
        json!([{"name": "p:one", "description": "does one", "shortDescription": null, "interface": null,
                "path": stage.cwd().join("plugins/p/skills/one/SKILL.md"), "enabled": true}])
    );
    assert_eq!(plugin["mcpServers"], json!(["t"]));
    assert_eq!(
        (&plugin["apps"][0]["id"], &plugin["apps"][0]["name"]),
        (&json!("connector_1"), &json!("calendar"))
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let empty = stage.cwd().join("plugins/empty");
    let (_server, mut client) = stage.open().await;
    let missing = stage.cwd().join("none.json");
    for (path, name, expected) in [
        (&missing, "p", format!("marketplace file `{}` does not exist", missing.display())),
        (&file, "nobody", "plugin `nobody` was not found in marketplace `m`".to_owned()),
        (&file, "empty", format!("plugin source path is not a directory: {}", empty.display())),
    ] {
        let refused =
            client.refused("plugin/read", json!({"marketplacePath": path, "pluginName": name})).await;
        assert_eq!(refused, expected);
    }
    std::fs::create_dir_all(empty).expect("made");
    let refused =
        client.refused("plugin/read", json!({"marketplacePath": file, "pluginName": "empty"})).await;
    assert_eq!(refused, "plugin `empty`: it has no .codex-plugin/plugin.json");
    stage.configure("[features]\nplugins = false\n");
    let refused = client.refused("plugin/read", json!({"marketplacePath": file, "pluginName": "p"})).await;
    assert_eq!(refused, "plugins feature is disabled");
}
