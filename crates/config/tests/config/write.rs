//! Writes, where the user's file and ours are two.

use std::fs;

use oarlock_config::{ConfigWriteError, Home, LoadRequest, Loader, LoaderOptions};
use protocol::{ConfigBatchWriteParams, ConfigEdit, ConfigWriteResponse, MergeStrategy, WriteStatus};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::mode;

/// A home that another program shares.
fn shared(config: &str) -> (TempDir, Loader) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("config.toml"), config).expect("a file");
    let path = folder.path().as_os_str().to_owned();
    let home = Home::find(&|name| (name == "CODEX_HOME").then(|| path.clone())).expect("a home");
    let options = LoaderOptions {
        system_file: None,
        managed_file: None,
        requirements_file: None,
        environment: oarlock_config::Env::fixed([("HOME", folder.path().as_os_str())]),
    };
    (folder, Loader::new(home, Vec::new(), options))
}

fn write(
    loader: &Loader,
    (key, value): (&str, Value),
    file: Option<String>,
    version: Option<String>,
) -> Result<ConfigWriteResponse, ConfigWriteError> {
    let edit = ConfigEdit { key_path: key.to_owned(), value, merge_strategy: MergeStrategy::Replace };
    loader.write(&ConfigBatchWriteParams {
        edits: vec![edit],
        file_path: file,
        expected_version: version,
        reload_user_config: false,
    })
}

fn version(loader: &Loader) -> String {
    let config = loader.load(&LoadRequest::default()).expect("a configuration");
    config.read_response(false).expect("shown").origins["model"].version.clone()
}

#[test]
fn ours_is_written_and_the_other_programs_stays() {
    let (folder, loader) = shared("model = \"theirs\"\n");
    let read = version(&loader);
    let written = write(&loader, ("model", json!("ours")), None, Some(read)).expect("written");
    let own = folder.path().canonicalize().expect("a folder").join("oarlock/config.toml");
    assert_eq!(written.file_path.as_str(), own.to_string_lossy());
    assert_eq!((written.status, mode(&own)), (WriteStatus::Ok, 0o600));
    assert_eq!(fs::read_to_string(folder.path().join("config.toml")).expect("there"), "model = \"theirs\"\n");
    assert_eq!(version(&loader), written.version);
    // A value that stands in the other file alone cannot be cleared in ours, and the answer says so.
    write(&loader, ("model", Value::Null), None, None).expect("written");
    let cleared = write(&loader, ("model", Value::Null), None, None).expect("written");
    assert_eq!(cleared.status, WriteStatus::OkOverridden);
    let told = cleared.overridden_metadata.expect("why");
    assert!(told.message.starts_with("Overridden by user config: "), "{}", told.message);
    assert_eq!(told.effective_value, "theirs");
}

#[test]
fn a_file_is_written_that_the_request_names_if_it_is_the_users() {
    let (folder, loader) = shared("model = \"theirs\" # mine\n");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    write(&loader, ("model", json!("new")), Some(path("oarlock/../config.toml")), None).expect("written");
    assert_eq!(fs::read_to_string(path("config.toml")).expect("there"), "model = \"new\" # mine\n");
    for other in ["other.toml", "oarlock", ".", "config.toml/x"] {
        let refused = write(&loader, ("model", json!("x")), Some(path(other)), None);
        assert!(matches!(refused, Err(ConfigWriteError::ReadOnlyLayer)), "{other}: {refused:?}");
    }
    let refused = write(&loader, ("model", json!("x")), Some("config.toml".to_owned()), None);
    assert!(matches!(refused, Err(ConfigWriteError::ReadOnlyLayer)), "relative: {refused:?}");
}

#[test]
fn a_broken_file_is_not_made_worse() {
    let (folder, loader) = shared("model = [\n");
    let file = folder.path().join("config.toml").to_string_lossy().into_owned();
    let refused = write(&loader, ("model", json!("x")), Some(file.clone()), None);
    assert!(matches!(refused, Err(ConfigWriteError::Invalid(_))), "{refused:?}");
    assert_eq!(fs::read_to_string(&file).expect("there"), "model = [\n");
}

#[test]
fn secrets_of_other_layers_are_not_told() {
    let (folder, loader) = shared(
        "[model_providers.p]\nname = \"p\"\nbase_url = \"http://x\"\nexperimental_bearer_token = \"planted\"\n",
    );
    let refused = write(&loader, ("model_providers.p", Value::Null), None, None);
    assert!(matches!(refused, Err(ConfigWriteError::PathNotFound(_))), "{refused:?}");
    write(&loader, ("model_providers.q", json!({"name": "q", "base_url": "http://y"})), None, None)
        .expect("written");
    let cleared = write(&loader, ("model_providers.p", Value::Null), None, None).expect("written");
    let told = format!("{cleared:?}");
    assert!(told.contains("***") && !told.contains("planted"), "{told}");
    assert!(folder.path().join("oarlock/config.toml").exists());
}
