//! `config/batchWrite`.

use std::fs;

use serde_json::{Value, json};
use testkit::{Stage, text};

use super::{refused, replace};

const WRITE: &str = "config/batchWrite";

#[tokio::test]
async fn all_values_are_written_or_none() {
    let stage = Stage::new(json!([])).await;
    let file = stage.home().join("config.toml");
    let before = fs::read_to_string(&file).expect("readable");
    let (_server, mut client) = stage.open().await;
    let good = [
        replace("model_reasoning_effort", json!("high")),
        json!({"keyPath": "profiles.p", "value": {"model": "pm", "web_search": "live"}, "mergeStrategy": "upsert"}),
        replace("model_provider", json!("other")),
    ];
    let mut bad = good.to_vec();
    bad.push(replace("approval_policy", json!(5)));
    assert_eq!(refused(&mut client, WRITE, json!({"edits": bad})).await.0, "configValidationError");
    assert_eq!(fs::read_to_string(&file).expect("readable"), before);
    client.ask(WRITE, json!({"edits": good})).await;
    let config = client.ask("config/read", json!({})).await["config"].clone();
    assert_eq!(
        (&config["model_reasoning_effort"], &config["model_provider"]),
        (&json!("high"), &json!("other"))
    );
    assert_eq!(config["profiles"]["p"]["model"], "pm");
    let merged = json!({"keyPath": "profiles.p", "value": {"model": "qm"}, "mergeStrategy": "upsert"});
    client.ask(WRITE, json!({"edits": [merged]})).await;
    let config = client.ask("config/read", json!({})).await["config"].clone();
    let profile = &config["profiles"]["p"];
    assert_eq!((&profile["model"], &profile["web_search"]), (&json!("qm"), &json!("live")));
    client.ask(WRITE, json!({"edits": [replace("profiles.p", json!({"model": "rm"}))]})).await;
    let config = client.ask("config/read", json!({})).await["config"].clone();
    assert_eq!(config["profiles"]["p"]["web_search"], Value::Null);
}

#[tokio::test]
async fn a_reload_reaches_the_threads_in_memory() {
    let stage = Stage::new(json!([])).await;
    let folder = stage.home().join("skills/greet");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("SKILL.md"), "---\nname: greet\ndescription: Says hello\n---\n").expect("a file");
    let (_server, mut client) = stage.open().await;
    let cwd = stage.cwd();
    client.ask("thread/start", json!({"cwd": cwd})).await;
    let skills = json!({"cwds": [cwd]});
    let enabled = |listed: &Value| {
        let skills = listed["data"][0]["skills"].as_array().expect("skills").clone();
        skills.iter().find(|skill| text(&skill["name"]) == "greet").expect("the skill")["enabled"].clone()
    };
    assert_eq!(enabled(&client.ask("skills/list", skills.clone()).await), true);
    let off = replace("skills.config", json!([{"name": "greet", "enabled": false}]));
    client.ask(WRITE, json!({"edits": [off], "reloadUserConfig": true})).await;
    assert_eq!(enabled(&client.ask("skills/list", skills).await), false);
}

#[tokio::test]
async fn writers_at_the_same_time_lose_nothing() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let mut asked = Vec::new();
    for number in 0..8 {
        let edits = json!({"edits": [replace(&format!("tui.k{number}"), json!(number))]});
        asked.push(client.send(WRITE, edits).await);
    }
    for id in asked {
        client.outcome(id).await.expect("written");
    }
    let file = fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    assert!((0..8).all(|number| file.contains(&format!("k{number} = {number}"))), "{file}");
}
