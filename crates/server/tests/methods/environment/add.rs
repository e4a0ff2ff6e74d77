//! `environment/add`: what is refused.

use serde_json::json;
use testkit::{Stage, turn_plus};

use super::add_folder;

#[tokio::test]
async fn a_bad_choice_or_description_is_refused_before_anything_starts() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    add_folder(&stage, &mut client, "a").await;
    let thread = client.start_thread(json!({})).await;
    client.rest().await;
    let cwd = stage.cwd();
    let one = |id: &str, cwd: &str| json!([{"environmentId": id, "cwd": cwd}]);
    let twice = json!([{"environmentId": "a", "cwd": cwd}, {"environmentId": "a", "cwd": cwd}]);
    let choices = [
        (
            one("b", "/w"),
            "environments[0].environmentId: no environment has the id `b`; known are `local`, `a`",
        ),
        (twice, "environments[1].environmentId: `a` is chosen twice"),
        (one("local", "w"), "environments[0].cwd must be an absolute path of this machine"),
    ];
    for (chosen, expected) in choices {
        assert_eq!(client.refused("thread/start", json!({"environments": chosen})).await, expected);
        let refused = client.refused("turn/start", turn_plus(&thread, "hi", "environments", chosen)).await;
        assert_eq!(refused, expected);
    }
    let here = json!({"type": "local", "cwd": "/"});
    let descriptions = [
        ("local", here.clone(), "environmentId: `local` is this machine and always there; choose another id"),
        ("x", json!({"type": "command", "argv": [], "cwd": "/"}), "environment.argv must name a program"),
        (
            "x",
            json!({"type": "command", "argv": ["ssh", "a\0b"], "cwd": "/"}),
            "environment.argv[1] must not contain a NUL byte",
        ),
    ];
    for (id, environment, expected) in descriptions {
        let params = json!({"environmentId": id, "environment": environment});
        assert_eq!(client.refused("environment/add", params).await, expected);
    }
    assert!(client.rest().await.is_empty(), "nothing began");
    // The environment of a loaded thread is not replaced.
    let user = client.start_thread(json!({"environments": one("a", &cwd.to_string_lossy())})).await;
    let replacement = json!({"environmentId": "a", "environment": here});
    let refused = client.refused("environment/add", replacement.clone()).await;
    assert!(refused.starts_with("environmentId: `a` is used by a loaded thread"), "{refused}");
    client.ask("thread/unsubscribe", json!({"threadId": user})).await;
    client.ask("environment/add", replacement).await;
    client.turn(&thread, "hi").await;
    assert!(!stage.asked()[0]["input"].to_string().contains("<environments>"), "nothing was chosen");
}
