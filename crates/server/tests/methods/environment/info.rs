//! `environment/info`.

use serde_json::{Value, json};
use testkit::Stage;

use super::{Door, attaches, status};

#[tokio::test]
async fn an_environment_describes_itself_once_it_was_reached() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let door = Door::new(&stage);
    door.add(&mut client).await;
    let info = client.ask("environment/info", json!({"environmentId": "box"})).await;
    let spec = json!({"type": "command", "argv": [door.prefix], "cwd": "/"});
    assert_eq!(info, json!({"environmentId": "box", "environment": spec, "shell": null, "cwd": null}));
    door.open();
    attaches(&mut client, "box").await;
    let info = client.ask("environment/info", json!({"environmentId": "box"})).await;
    assert_eq!(info["cwd"], "/");
    assert!(info["shell"]["path"].as_str().is_some_and(|path| path.starts_with('/')), "{info}");
    let here = client.ask("environment/info", json!({"environmentId": "local"})).await;
    assert_eq!((&here["environment"]["type"], &here["cwd"]), (&json!("local"), &here["environment"]["cwd"]));
    assert_eq!(status(&mut client, "local").await.0, "attached");
    assert_eq!(status(&mut client, "elsewhere").await, (json!("unknown"), Value::Null));
}
