//! Facts about the repository that a turn works in, as the provider is told them.

use std::fs;

use serde_json::{Value, json};
use testkit::{ScriptedModel, Stage};

const SHA: &str = "0123456789abcdef0123456789abcdef01234567";

/// The metadata of the next request, in lower case as the model keeps it.
async fn metadata(model: &mut ScriptedModel) -> Value {
    let request = model.next().await;
    serde_json::from_str(request.header("x-codex-turn-metadata").expect("a header")).expect("JSON")
}

#[tokio::test]
async fn a_request_names_the_commit_and_the_origin_without_a_password() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "");
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&thread, "hi").await;
    assert_eq!(metadata(&mut model).await.get("workspaces"), None, "there is no repository yet");
    let git = stage.cwd().join(".git");
    fs::create_dir(&git).expect("made");
    fs::write(git.join("HEAD"), SHA).expect("written");
    let config = "[remote \"origin\"]\n\turl = https://me:secret@host.example/p.git\n";
    fs::write(git.join("config"), config).expect("written");
    client.turn(&thread, "again").await;
    let told = metadata(&mut model).await;
    let facts = told["workspaces"].as_object().expect("workspaces").values().next().expect("one").clone();
    let origin = json!({"origin": "https://host.example/p.git"});
    assert_eq!(facts, json!({"associated_remote_urls": origin, "latest_git_commit_hash": SHA}));
}
