//! `thread/metadata/update`.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, told};

fn remove_index(home: &Path) {
    let mut removed = 0;
    for entry in std::fs::read_dir(home).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(".sqlite") || name.contains(".db") {
            std::fs::remove_file(entry.path()).expect("a file");
            removed += 1;
        }
    }
    assert!(removed > 0, "there is no index where it was looked for");
}

#[tokio::test]
async fn metadata_changes_one_field_and_can_clear_it() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "hi").await;
    client.rest().await;
    let cases = [
        (json!({"branch": "b", "sha": "s"}), json!({"sha": "s", "branch": "b", "originUrl": null})),
        (json!({"originUrl": " u "}), json!({"sha": "s", "branch": "b", "originUrl": "u"})),
        (json!({"sha": null}), json!({"sha": null, "branch": "b", "originUrl": "u"})),
        (json!({"branch": null, "originUrl": null}), Value::Null),
        (json!({"branch": "last"}), json!({"sha": null, "branch": "last", "originUrl": null})),
    ];
    for (change, expected) in cases {
        let updated = client.ask("thread/metadata/update", json!({"threadId": id, "gitInfo": change})).await;
        let read = client.ask("thread/read", json!({"threadId": id})).await;
        for thread in [&updated["thread"], &read["thread"]] {
            assert_eq!(thread["gitInfo"], expected, "{change}");
            assert_eq!((&thread["preview"], &thread["turns"]), (&json!("hi"), &json!([])));
        }
    }
    assert!(client.rest().await.is_empty(), "no notification");
    server.stop().await;
    assert_eq!(stage.read(&id).await["gitInfo"]["branch"], "last");
}

#[tokio::test]
async fn metadata_says_what_is_wrong_with_a_change() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let cases = [
        (id.as_str(), json!({}), "gitInfo must include at least one field".to_owned()),
        (&id, json!({"sha": " "}), "gitInfo.sha must not be empty".to_owned()),
        (&id, json!({"branch": ""}), "gitInfo.branch must not be empty".to_owned()),
        (&id, json!({"originUrl": ""}), "gitInfo.originUrl must not be empty".to_owned()),
        (UNKNOWN_THREAD, json!({"sha": "s"}), format!("thread not found: {UNKNOWN_THREAD}")),
    ];
    for (id, change, expected) in cases {
        let message =
            client.refused("thread/metadata/update", json!({"threadId": id, "gitInfo": change})).await;
        assert_eq!(message, expected);
    }
}

/// The index is derived: what it lost comes back from the records, for stored, archived and loaded threads.
#[tokio::test]
async fn metadata_survives_the_loss_of_the_index() {
    for place in ["stored", "archived", "loaded"] {
        let stage = Stage::new(json!([{"text": "hello"}])).await;
        stage.clock.set(1_700_000_000_000);
        let (server, mut client) = stage.open().await;
        let id = client.spoken_thread("hi").await;
        if place == "archived" {
            client.ask("thread/archive", json!({"threadId": id})).await;
        }
        server.stop().await;
        remove_index(&stage.home());
        stage.clock.set(1_700_000_900_000);
        let (server, mut client) = stage.open().await;
        if place == "loaded" {
            client.ask("thread/resume", json!({"threadId": id})).await;
        }
        let update = json!({"threadId": id, "gitInfo": {"branch": "b"}});
        let thread = client.ask("thread/metadata/update", update).await["thread"].clone();
        assert_eq!(
            (&thread["gitInfo"]["branch"], &thread["preview"]),
            (&json!("b"), &json!("hi")),
            "{place}"
        );
        assert_eq!(thread["createdAt"], 1_700_000_000, "{place}");
        server.stop().await;
        assert_eq!(told(&stage.read(&id).await), ["completed: hi"], "{place}");
    }
}
