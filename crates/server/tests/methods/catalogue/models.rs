//! `model/list`.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{OfflineModel, Stage, VendorServer, Wire, text};

use super::{one_by_one, rows};

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
async fn a_provider_that_can_tell_is_asked_for_its_models() {
    let stage = Stage::new(json!([])).await;
    let vendor = VendorServer::start(Wire::Chat, Arc::new(OfflineModel));
    let config =
        format!("model_provider = \"vendor\"\nmodel = \"mock-model\"\n{}", vendor.provider_table("vendor"));
    std::fs::write(stage.home().join("config.toml"), config).expect("a file");
    let (_server, mut client) = stage.open().await;
    let shown = client.ask("model/list", json!({})).await;
    assert_eq!(rows(&shown).len(), 2, "{shown}");
    let model = &rows(&shown)[0];
    assert_eq!((&model["id"], &model["isDefault"]), (&json!("mock-model"), &json!(true)), "{shown}");
    // Nobody was asked for an answer.
    assert_eq!(vendor.bodies(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_provider_that_does_not_answer_leaves_the_catalogue() {
    let stage = Stage::new(json!([])).await;
    let config = "model_provider = \"gone\"\n[model_providers.gone]\nname = \"gone\"\n\
                  base_url = \"http://127.0.0.1:9/v1\"\nwire_api = \"chat\"\n";
    std::fs::write(stage.home().join("config.toml"), config).expect("a file");
    let (_server, mut client) = stage.open().await;
    let shown = client.ask("model/list", json!({})).await;
    assert_eq!(rows(&shown).len(), 6, "{shown}");
}

#[tokio::test]
async fn a_model_nobody_knows_works_and_is_told_once() {
    let stage = Stage::new(json!([])).await;
    let vendor = VendorServer::start(Wire::Chat, Arc::new(OfflineModel));
    let config = format!(
        "model_provider = \"vendor\"\nmodel = \"never-heard-of\"\n{}",
        vendor.provider_table("vendor")
    );
    std::fs::write(stage.home().join("config.toml"), config).expect("a file");
    let (_server, mut client) = stage.open().await;
    let first = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let warned = client.next_of("configWarning").await;
    let summary = text(&warned["summary"]);
    assert!(summary.contains("`never-heard-of`") && summary.contains("128000 tokens"), "{warned}");
    assert!(text(&warned["details"]).contains("model_context_window"), "{warned}");
    assert_eq!(client.turn(&first, "say hello").await["status"], "completed");
    client.start_thread(json!({"cwd": stage.cwd()})).await;
    let more = client.rest().await;
    assert!(!more.iter().any(|word| word.contains("configWarning")), "{more:?}");
}
