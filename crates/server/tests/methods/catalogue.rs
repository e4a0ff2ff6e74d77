//! `model/list`, `experimentalFeature/list`, `config/read` and `configRequirements/read`.

use serde_json::{Value, json};

use crate::client::{Client, text};
use crate::stage::Stage;

fn rows(page: &Value) -> &Vec<Value> {
    page["data"].as_array().expect("rows")
}

/// Follows the cursor to its end, with one row a page.
async fn one_by_one(client: &mut Client, method: &str, key: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let page = client.ask(method, json!({"limit": 1, "cursor": cursor})).await;
        assert_eq!(rows(&page).len(), 1);
        names.push(text(&page["data"][0][key]));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return names;
        }
    }
}

#[tokio::test]
async fn models_are_listed_with_one_default() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let shown = client.ask("model/list", json!({"limit": 100})).await;
    assert_eq!((rows(&shown).len(), &shown["nextCursor"]), (6, &Value::Null));
    assert_eq!(rows(&shown).iter().filter(|model| model["isDefault"] == true).count(), 1);
    assert!(rows(&shown).iter().all(|model| model["hidden"] == false));
    let all = client.ask("model/list", json!({"includeHidden": true})).await;
    assert_eq!(rows(&all).len(), 13);
    assert!(rows(&all).iter().any(|model| model["hidden"] == true));
    let names: Vec<String> = rows(&shown).iter().map(|model| text(&model["id"])).collect();
    assert_eq!(one_by_one(&mut client, "model/list", "id").await, names);
    assert_eq!(client.refused("model/list", json!({"cursor": "x"})).await, "invalid cursor: x");
    let beyond = client.refused("model/list", json!({"cursor": "7"})).await;
    assert_eq!(beyond, "cursor 7 exceeds total models 6");
}

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

#[tokio::test]
async fn requirements_are_null_until_an_administrator_sets_some() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("configRequirements/read", Value::Null).await;
    assert_eq!(read, json!({"requirements": null}));
    let text = "allowed_approval_policies = [\"on-request\"]\nallowed_sandbox_modes = [\"read-only\"]\n\
                allowed_web_search_modes = [\"cached\"]\n[features]\nundo = false";
    stage.write_machine("requirements.toml", text);
    let (_server, mut client) = stage.open().await;
    let read = client.ask("configRequirements/read", json!({})).await;
    let found = &read["requirements"];
    assert_eq!(found["allowedApprovalPolicies"], json!(["on-request"]));
    assert_eq!(found["allowedSandboxModes"], json!(["read-only"]));
    assert_eq!(found["allowedWebSearchModes"], json!(["cached", "disabled"]));
    assert_eq!(found["featureRequirements"], json!({"undo": false}));
    assert_eq!(found["enforceResidency"], Value::Null);
}
