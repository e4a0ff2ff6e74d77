//! `config/value/write`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::Stage;

use super::{refused, replace};

const WRITE: &str = "config/value/write";

#[tokio::test]
async fn a_value_is_written_and_the_comments_stay() {
    let stage = Stage::configured(json!([]), "# about effort\nmodel_verbosity = \"low\" # why").await;
    let file = stage.home().join("config.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
    let before = fs::read_to_string(&file).expect("readable");
    let (_server, mut client) = stage.open().await;
    let written = client.ask(WRITE, replace("model_verbosity", json!("high"))).await;
    assert_eq!((&written["status"], &written["overriddenMetadata"]), (&json!("ok"), &Value::Null));
    assert_eq!(written["filePath"], json!(file));
    let after = fs::read_to_string(&file).expect("readable");
    assert_eq!(after, before.replace("model_verbosity = \"low\"", "model_verbosity = \"high\""));
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    let read = client.ask("config/read", json!({})).await;
    assert_eq!(read["config"]["model_verbosity"], "high");
    assert_eq!(read["origins"]["model_verbosity"]["version"], written["version"]);
    client.ask(WRITE, replace("model_verbosity", Value::Null)).await;
    let read = client.ask("config/read", json!({})).await;
    assert_eq!(read["config"]["model_verbosity"], Value::Null);
}

#[tokio::test]
async fn a_write_that_makes_no_sense_changes_nothing() {
    let stage = Stage::new(json!([])).await;
    let file = stage.home().join("config.toml");
    let before = fs::read_to_string(&file).expect("readable");
    let (_server, mut client) = stage.open().await;
    let mut elsewhere = replace("model", json!("z"));
    elsewhere["filePath"] = json!(stage.cwd().join("other.toml"));
    let mut stale = replace("model", json!("z"));
    stale["expectedVersion"] = json!("sha256:0");
    let deep = "a.".repeat(100) + "b";
    for (params, code, part) in [
        (replace("sandbox_mode", json!("bogus")), "configValidationError", "unknown variant `bogus`"),
        (replace("model_provider", json!("none")), "configValidationError", "`none` not found"),
        (replace("model", json!({"a": null})), "configValidationError", "a null inside a value"),
        (replace("a..b", json!(1)), "configValidationError", "empty part"),
        (replace("", json!(1)), "configValidationError", "empty part"),
        (replace(&deep, json!(1)), "configValidationError", "too many"),
        (replace("x", json!(u64::MAX)), "configValidationError", "too large"),
        (replace("none.of.these", Value::Null), "configPathNotFound", "no table around it"),
        (replace("model.x", Value::Null), "configPathNotFound", "no table around it"),
        (elsewhere, "configLayerReadonly", "Only writes to the user config are allowed"),
        (stale, "configVersionConflict", "Fetch latest version and retry"),
    ] {
        let (found, message) = refused(&mut client, WRITE, params.clone()).await;
        assert!(found == code && message.contains(part), "{params}: {found}: {message}");
    }
    assert_eq!(fs::read_to_string(&file).expect("readable"), before);
    let named: Vec<_> = fs::read_dir(stage.home()).expect("readable").flatten().collect();
    assert!(named.iter().all(|entry| !entry.file_name().to_string_lossy().contains("tmp")), "{named:?}");
}

#[tokio::test]
async fn the_version_that_was_read_is_the_one_that_is_expected() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("config/read", json!({})).await;
    let mut params = replace("model", json!("first"));
    params["expectedVersion"] = read["origins"]["model"]["version"].clone();
    let written = client.ask(WRITE, params.clone()).await;
    params["value"] = json!("second");
    assert_eq!(refused(&mut client, WRITE, params.clone()).await.0, "configVersionConflict");
    params["expectedVersion"] = written["version"].clone();
    client.ask(WRITE, params).await;
    assert_eq!(client.ask("config/read", json!({})).await["config"]["model"], "second");
}

#[tokio::test]
async fn a_value_that_another_layer_sets_is_told() {
    let stage = Stage::new(json!([])).await;
    let file = stage.write_machine("managed.toml", "model_verbosity = \"low\"\n");
    let (_server, mut client) = stage.open().await;
    let written = client.ask(WRITE, replace("model_verbosity", json!("high"))).await;
    assert_eq!(written["status"], "okOverridden");
    let told = &written["overriddenMetadata"];
    assert_eq!(told["effectiveValue"], "low");
    assert_eq!(told["overridingLayer"]["name"]["type"], "legacyManagedConfigTomlFromFile");
    assert_eq!(told["message"], format!("Overridden by legacy managed_config.toml: {}", file.display()));
}

#[tokio::test]
async fn what_requirements_forbid_is_not_written() {
    let stage = Stage::new(json!([])).await;
    let limits = "allowed_approval_policies = [\"untrusted\"]\nallowed_sandbox_modes = [\"read-only\"]\n\
                  [features]\nfast_mode = false\n";
    stage.write_machine("requirements.toml", limits);
    let (_server, mut client) = stage.open().await;
    for (key, value) in [
        ("approval_policy", json!("never")),
        ("sandbox_mode", json!("danger-full-access")),
        ("profiles.p.sandbox_mode", json!("danger-full-access")),
        ("features.fast_mode", json!(true)),
    ] {
        let (code, message) = refused(&mut client, WRITE, replace(key, value)).await;
        assert!(code == "configValidationError" && message.contains("requirements.toml"), "{key}: {message}");
    }
    client.ask(WRITE, replace("approval_policy", json!("untrusted"))).await;
}
