use serde_json::json;
use testkit::Stage;

use super::marketplace;

#[tokio::test]
async fn an_installed_plugin_brings_its_skills_and_servers_to_threads() {
    let call = json!({"call": {"name": "mcp__t__echo", "callId": "call-1", "arguments": {"text": "hi"}}});
    let stage = Stage::new(json!([call, {"text": "done"}])).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    let installed = client.ask("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    assert_eq!(installed, json!({"authPolicy": "ON_USE", "appsNeedingAuth": []}));
    let listed = client.ask("plugin/list", json!({"cwds": [stage.cwd()]})).await;
    let p = &listed["marketplaces"][0]["plugins"][0];
    assert_eq!((&p["installed"], &p["enabled"]), (&json!(true), &json!(true)));

    // The copy is what counts from now on.
    std::fs::remove_dir_all(stage.cwd().join("plugins")).expect("removed");
    let skills = client.ask("skills/list", json!({"cwds": [stage.cwd()]})).await;
    assert!(skills.to_string().contains("\"p:one\""), "{skills}");
    let status = client.ask("mcpServerStatus/list", json!({})).await;
    assert_eq!(status["data"][0]["name"], "t");
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "use $p:one of [@p](plugin://p@m) and [@q](plugin://q@m)").await;
    let warned = client.next_of("configWarning").await;
    let problem = "is not installed, or switched off; the message is sent without it.";
    assert_eq!(warned["summary"], format!("The plugin q@m {problem}"));
    let done = client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
    assert_eq!(done["item"]["status"], "completed", "{done}");
    client.next_of("turn/completed").await;
    let asked = stage.asked()[0].to_string();
    assert!(asked.contains("The body of one."), "the skill is read");
    assert!(asked.contains("This tool is part of the plugin `p`."), "its tools say whose they are");
    assert!(asked.contains("<plugins_instructions>") && asked.contains("- p: first"), "{asked}");
    let hint = "The user asks for the plugin `p`. Its skills begin with `p:`. Its MCP servers: `t`. Its apps: `calendar`.";
    assert!(asked.contains(hint), "{asked}");
}

#[tokio::test]
async fn what_is_not_offered_is_not_installed() {
    let stage = Stage::new(json!([])).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    for (name, expected) in [
        ("closed", "plugin `closed` is not available for install in marketplace `m`"),
        ("elsewhere", "plugin `elsewhere` is not available for install in marketplace `m`"),
        ("nobody", "plugin `nobody` was not found in marketplace `m`"),
    ] {
        let refused =
            client.refused("plugin/install", json!({"marketplacePath": file, "pluginName": name})).await;
        assert_eq!(refused, expected);
    }
    client.refused("plugin/install", json!({"marketplacePath": "relative", "pluginName": "p"})).await;
    assert!(!stage.home().join("plugins/cache").exists());
}

#[tokio::test]
async fn a_project_cannot_switch_a_plugin_on() {
    let stage = Stage::new(json!([{"text": "done"}])).await;
    let file = marketplace(&stage);
    let (_server, mut client) = stage.open().await;
    client.ask("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    let config = stage.home().join("config.toml");
    let text =
        std::fs::read_to_string(&config).expect("readable").replace("enabled = true", "enabled = false");
    std::fs::write(&config, text).expect("written");
    std::fs::create_dir_all(stage.cwd().join(".codex")).expect("made");
    let own = "[plugins.\"p@m\"]\nenabled = true\n";
    std::fs::write(stage.cwd().join(".codex/config.toml"), own).expect("written");
    let skills = client.ask("skills/list", json!({"cwds": [stage.cwd()], "forceReload": true})).await;
    assert!(!skills.to_string().contains("p:one"), "{skills}");
}

/// A repository whose server takes the connection and never says anything.
#[tokio::test]
async fn an_installation_that_hangs_holds_up_no_other_request() {
    let stage = Stage::new(json!([])).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}/r.git", silent.local_addr().expect("an address"));
    let source = json!({"source": "git", "url": url, "commit": "0".repeat(40)});
    let file = stage.cwd().join(".agents/plugins/marketplace.json");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("made");
    let market = json!({"name": "m", "plugins": [{"name": "p", "source": source}]});
    std::fs::write(&file, market.to_string()).expect("written");
    let (_server, mut client) = stage.open().await;
    let install = client.send("plugin/install", json!({"marketplacePath": file, "pluginName": "p"})).await;
    let (connection, _) = testkit::within("git to connect", silent.accept()).await.expect("a connection");
    // An id of the installation would come first here, if these waited for it.
    client.ask("model/list", json!({})).await;
    client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.ask("skills/list", json!({"cwds": [stage.cwd()]})).await;
    drop((connection, silent));
    client.outcome(install).await.expect_err("there is no repository");
}
