//! `config/read`.

use serde_json::{Value, json};
use testkit::{Stage, text};

#[tokio::test]
async fn configuration_is_read_with_its_origins_and_layers() {
    let keys = "sandbox_mode = \"workspace-write\"\ntools = { web_search = { context_size = \"low\" } }";
    let stage = Stage::configured(json!([]), keys).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("config/read", json!({"includeLayers": true})).await;
    let config = &read["config"];
    assert_eq!(
        (&config["model"], &config["sandbox_mode"]),
        (&json!("mock-model"), &json!("workspace-write"))
    );
    assert_eq!(config["tools"]["web_search"]["context_size"], "low");
    assert_eq!(config.get("review_model"), Some(&Value::Null), "every known key is there");
    for key in ["apps", "plugins", "tool_search", "tool_suggest", "tool_call_mcp_elicitation"] {
        assert!(config["features"][key].is_boolean(), "{key}: {}", config["features"]);
    }
    let file = stage.home().join("config.toml");
    let user = json!({"type": "user", "file": file});
    assert_eq!(read["origins"]["model"]["name"], user);
    assert_eq!(read["origins"]["tools.web_search.context_size"]["name"], user);
    let layers = read["layers"].as_array().expect("layers");
    let layer = layers.iter().find(|layer| layer["name"] == user).expect("the user's layer");
    assert_eq!(layer["version"], read["origins"]["model"]["version"]);
    assert!(text(&layer["version"]).starts_with("sha256:"), "{layer}");
    assert_eq!(layer["config"]["model"], "mock-model");
    let plain = client.ask("config/read", json!({})).await;
    assert!(plain.get("layers").is_none(), "{plain}");
}

#[tokio::test]
async fn a_bare_switch_for_web_search_is_ignored() {
    let stage = Stage::configured(json!([]), "tools = { web_search = true, view_image = false }").await;
    let (_server, mut client) = stage.open().await;
    let tools = client.ask("config/read", json!({})).await["config"]["tools"].clone();
    assert_eq!((&tools["web_search"], &tools["view_image"]), (&Value::Null, &json!(false)));
}

#[tokio::test]
async fn a_project_counts_where_its_folder_is_named() {
    let stage = Stage::new(json!([])).await;
    let folder = stage.cwd().join(".codex");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(folder.join("config.toml"), "model_reasoning_effort = \"high\"").expect("a file");
    let cwd = stage.cwd().to_string_lossy().into_owned();
    stage.configure(&format!("projects = {{ {cwd:?} = {{ trust_level = \"trusted\" }} }}"));
    let (_server, mut client) = stage.open().await;
    let read = client.ask("config/read", json!({"includeLayers": true, "cwd": cwd})).await;
    assert_eq!(read["config"]["model_reasoning_effort"], "high");
    let origin = &read["origins"]["model_reasoning_effort"]["name"];
    assert_eq!(origin, &json!({"type": "project", "dotCodexFolder": folder}));
    let layers = read["layers"].as_array().expect("layers");
    let place = |kind: &str| layers.iter().position(|layer| layer["name"]["type"] == kind);
    assert!(place("project") < place("user"), "highest first: {layers:?}");
    let without = client.ask("config/read", json!({})).await;
    assert_eq!(without["config"]["model_reasoning_effort"], Value::Null);
}

#[tokio::test]
async fn secrets_are_not_read_out() {
    let keys = "model_providers.keyed = { name = \"k\", base_url = \"http://127.0.0.1:1\", \
                http_headers = { Authorization = \"Bearer hidden-secret\" } }";
    let stage = Stage::configured(json!([]), keys).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("config/read", json!({"includeLayers": true})).await;
    assert_eq!(read["config"]["model_providers"]["keyed"]["name"], "k");
    assert!(!read.to_string().contains("hidden-secret"), "{read}");
}

#[tokio::test]
async fn the_machines_files_stand_below_and_above_the_users() {
    let stage = Stage::configured(json!([]), "approval_policy = \"never\"").await;
    let below = "approval_policy = \"untrusted\"\nreview_model = \"reviewer\"";
    let system = json!({"type": "system", "file": stage.write_machine("system.toml", below)});
    let managed = stage.write_machine("managed.toml", "model = \"managed-model\"");
    let managed = json!({"type": "legacyManagedConfigTomlFromFile", "file": managed});
    let user = json!({"type": "user", "file": stage.home().join("config.toml")});
    let (_server, mut client) = stage.open().await;
    let read = client.ask("config/read", json!({"includeLayers": true})).await;
    for (key, value, layer) in [
        ("model", "managed-model", &managed),
        ("approval_policy", "never", &user),
        ("review_model", "reviewer", &system),
    ] {
        assert_eq!((&read["config"][key], &read["origins"][key]["name"]), (&json!(value), layer));
    }
    let layers = read["layers"].as_array().expect("layers");
    let names: Vec<&Value> = layers.iter().map(|layer| &layer["name"]).collect();
    assert_eq!(names, [&managed, &user, &system]);
}
