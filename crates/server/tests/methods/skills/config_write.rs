//! `skills/config/write`.

use std::fs;

use serde_json::{Value, json};
use testkit::Stage;

use super::{here, listed, skill};

#[tokio::test]
async fn skills_are_switched_off_and_on() {
    let stage = Stage::new(json!([])).await;
    let path = skill(&stage, "home/skills/a", "a");
    skill(&stage, "work/.agents/skills/a", "another a");
    let (_server, mut client) = stage.open().await;
    let list = json!({"cwds": [here(&stage)]});
    let before = fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    let write = |selector: Value, enabled: bool| {
        let mut params = selector;
        params["enabled"] = json!(enabled);
        params
    };
    let off = client.ask("skills/config/write", write(json!({"path": path}), false)).await;
    assert_eq!(off, json!({"effectiveEnabled": false}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a true", "user a false"]);
    let off = client.ask("skills/config/write", write(json!({"name": "a"}), false)).await;
    assert_eq!(off, json!({"effectiveEnabled": false}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a false", "user a false"]);
    let on = client.ask("skills/config/write", write(json!({"path": path}), true)).await;
    assert_eq!(on, json!({"effectiveEnabled": true}));
    assert_eq!(listed(&mut client, list.clone()).await, ["repo a false", "user a true"]);
    client.ask("skills/config/write", write(json!({"name": "a"}), true)).await;
    client.ask("skills/config/write", write(json!({"path": path}), true)).await;
    assert_eq!(listed(&mut client, list).await, ["repo a true", "user a true"]);
    let after = fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    assert_eq!(after.trim_end(), before.trim_end(), "nothing of it is left");
}

#[tokio::test]
async fn a_switch_names_one_thing() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for params in [
        json!({"enabled": true}),
        json!({"enabled": true, "name": " "}),
        json!({"enabled": true, "name": "a", "path": "/a"}),
    ] {
        let id = client.send("skills/config/write", params).await;
        let refused = client.outcome(id).await.expect_err("refused");
        assert_eq!(refused.code, -32602);
        assert_eq!(refused.message, "skills/config/write requires exactly one of path or name");
    }
    stage.configure("broken = [");
    let id = client.send("skills/config/write", json!({"name": "a", "enabled": false})).await;
    let refused = client.outcome(id).await.expect_err("refused");
    assert_eq!(refused.code, -32603);
    assert!(refused.message.contains("config.toml:"), "{refused:?}");
}
