//! `feedback/upload`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use testkit::{Stage, text};

#[tokio::test]
async fn feedback_is_a_folder_without_credentials() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("my token is ghp_0123456789abcdefghij").await;
    let log = stage.cwd().join("app.log");
    // A token that a reader of pieces would find in two of them.
    let long = format!("{} ghp_abcdefghij0123456789", "x".repeat((1 << 20) - 12));
    fs::write(&log, format!("Authorization: Bearer abc123\nall is well\n{long}\n")).expect("written");
    let params = json!({
        "classification": "bug", "reason": "password=hunter2 does not work", "threadId": id, "includeLogs": true,
        "extraLogFiles": [log.to_string_lossy(), "/nowhere/x.log"],
    });
    let saved = client.ask("feedback/upload", params).await;
    assert_eq!(saved["threadId"], json!(id));
    let folder = text(&saved["path"]);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(Path::new(&folder)), 0o700);
    let mut all = String::new();
    for entry in fs::read_dir(&folder).expect("listed").flatten() {
        assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
        all.push_str(&fs::read_to_string(entry.path()).expect("text"));
    }
    let all = all.replace("xxxxxxxx", "");
    assert!(all.contains("all is well") && all.contains("hello"), "{all}");
    for secret in ["ghp_0123456789abcdefghij", "abcdefghij0123456789", "hunter2", "abc123"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    assert!(all.contains("not read"), "a file that is missing is named: {all}");
}

#[tokio::test]
async fn feedback_without_a_thread_has_an_id_all_the_same() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let saved = client.ask("feedback/upload", json!({"classification": "other", "includeLogs": false})).await;
    assert!(text(&saved["threadId"]).starts_with("no-active-thread-"), "{saved}");
}

#[tokio::test]
async fn feedback_can_be_forbidden() {
    let stage = Stage::configured(json!([]), "[feedback]\nenabled = false").await;
    let (_server, mut client) = stage.open().await;
    let params = json!({"classification": "bug", "includeLogs": false});
    let refused = client.refused("feedback/upload", params).await;
    assert_eq!(refused, "sending feedback is disabled by configuration");
    assert!(!stage.home().join("oarlock/feedback").exists());
}
