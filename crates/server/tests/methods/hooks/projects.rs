//! Hooks of a project count only after a review of exactly what they are.

use std::fs;

use serde_json::{Value, json};
use testkit::Stage;

use super::{FREE, run, thread};

/// A project whose hook leaves a file, in a folder that the user trusts or not.
async fn project(is_trusted: bool) -> Stage {
    let stage = Stage::new(json!([{"text": "one"}, {"text": "two"}, {"text": "three"}])).await;
    let folder = stage.cwd().join(".codex");
    fs::create_dir(&folder).expect("a folder");
    write(&stage, "touch ran");
    let trust = if is_trusted { "trusted" } else { "untrusted" };
    let cwd = stage.cwd();
    stage.configure(&format!("{FREE}\nprojects = {{ {cwd:?} = {{ trust_level = \"{trust}\" }} }}"));
    stage
}

fn write(stage: &Stage, command: &str) {
    let hooks = json!({"hooks": {"UserPromptSubmit": run(command)}});
    fs::write(stage.cwd().join(".codex/hooks.json"), hooks.to_string()).expect("a file");
}

#[tokio::test]
async fn hooks_of_a_project_that_is_not_trusted_do_not_exist() {
    let stage = project(false).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.turn(&id, "hello").await;
    assert!(!stage.cwd().join("ran").exists());
    let listed = client.ask("hooks/list", json!({"cwds": [stage.cwd()]})).await;
    assert_eq!(listed["data"][0]["hooks"], json!([]));
}

#[tokio::test]
async fn hooks_of_a_trusted_project_wait_for_a_review_of_exactly_them() {
    let stage = project(true).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    let told = client.next_of("configWarning").await.to_string();
    assert!(told.contains("touch ran") && told.contains("oarlock trust"), "{told}");
    client.turn(&id, "hello").await;
    assert!(!stage.cwd().join("ran").exists());
    let list = json!({"cwds": [stage.cwd()]});
    let shown = |listed: &Value| {
        let hook = listed["data"][0]["hooks"][0].clone();
        (hook["enabled"].clone(), hook["trustStatus"].clone(), hook["source"].clone())
    };
    let listed = client.ask("hooks/list", list.clone()).await;
    assert_eq!(shown(&listed), (json!(false), json!("untrusted"), json!("project")));
    // The user agrees to this content.
    let loader = stage.loader();
    let reviews = loader.to_review(&stage.cwd()).expect("readable");
    loader.accept(&reviews).expect("written");
    let listed = client.ask("hooks/list", list.clone()).await;
    assert_eq!(shown(&listed), (json!(true), json!("trusted"), json!("project")));
    let second = thread(&stage, &mut client).await;
    client.turn(&second, "hello").await;
    assert!(stage.cwd().join("ran").exists());
    // Another content is another question.
    write(&stage, "touch ran-again");
    let third = thread(&stage, &mut client).await;
    client.turn(&third, "hello").await;
    assert!(!stage.cwd().join("ran-again").exists());
    assert_eq!(shown(&client.ask("hooks/list", list).await).0, json!(false));
}
