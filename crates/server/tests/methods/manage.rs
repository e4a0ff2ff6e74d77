//! `thread/archive`, `thread/unarchive`, `thread/metadata/update`, `thread/unsubscribe`, and the status of threads.

use std::path::Path;

use serde_json::{Value, json};

use crate::client::{text, told};
use crate::stage::{Stage, endless};

const UNKNOWN: &str = "019a8b3c-0000-7000-8000-000000000001";

#[tokio::test]
async fn archiving_needs_a_record_and_moves_it() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    for id in [id.as_str(), UNKNOWN] {
        let message = client.refused("thread/archive", json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"));
    }
    client.turn(&id, "hi").await;
    let path = text(&client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"]);
    client.rest().await;
    client.transcript();
    assert_eq!(client.ask("thread/archive", json!({"threadId": id})).await, json!({}));
    assert_eq!(client.next_of("thread/archived").await, json!({"threadId": id}));
    assert_eq!(client.transcript(), ["thread/status/changed", "= thread/archive", "thread/archived"]);
    assert_eq!(client.status(&id, "notLoaded").await["threadId"], json!(id));
    assert!(!Path::new(&path).exists());
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    let message = client.refused("thread/archive", json!({"threadId": id})).await;
    assert_eq!(message, format!("no rollout found for thread id {id}"));
    let message = client.refused("thread/resume", json!({"threadId": id})).await;
    assert_eq!(message, format!("no rollout found for thread id {id}"));
}

#[tokio::test]
async fn archiving_ends_a_running_turn_first() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.next_of("thread/archived").await;
    let heard = client.transcript();
    let expected = [
        "item/completed",
        "thread/status/changed",
        "turn/completed",
        "thread/status/changed",
        "= thread/archive",
        "thread/archived",
    ];
    assert_eq!(heard, expected);
    let ended = client.next_of("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
}

#[tokio::test]
async fn archiving_ends_a_turn_that_waits_for_a_client() {
    let call = json!({"name": "shell", "callId": "call-1", "arguments": {"command": ["touch", "x"]}});
    let config = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(json!([{"call": call}, {"text": "done"}]), config).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/commandExecution/requestApproval").await;
    client.transcript();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.next_of("thread/archived").await;
    let heard = client.transcript();
    let of = |method: &str| heard.iter().filter(|heard| *heard == method).count();
    assert_eq!(
        (of("item/completed"), of("serverRequest/resolved"), of("turn/completed")),
        (1, 1, 1),
        "{heard:?}"
    );
    let ended = client.next_of("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
    let ended = client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
    assert_eq!(ended["item"]["status"], "declined");
    client.ask("thread/unarchive", json!({"threadId": id})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["turns"][0]["status"], "interrupted");
}

#[tokio::test]
async fn an_archived_thread_forgets_who_listened() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    first.ask("thread/archive", json!({"threadId": id})).await;
    second.ask("thread/unarchive", json!({"threadId": id})).await;
    second.ask("thread/resume", json!({"threadId": id})).await;
    first.rest().await;
    second.turn(&id, "more").await;
    let heard = first.rest().await;
    assert!(heard.iter().all(|method| method == "thread/status/changed"), "{heard:?}");
}

#[tokio::test]
async fn an_archived_thread_is_out_of_reach_until_it_is_brought_back() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.ask("thread/archive", json!({"threadId": id})).await;
    for method in ["thread/resume", "thread/fork"] {
        let message = client.refused(method, json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"), "{method}");
    }
    let named = json!({"threadId": id, "name": "kept"});
    assert_eq!(client.refused("thread/name/set", named.clone()).await, format!("thread not found: {id}"));
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: hi"]);
    client.ask("thread/unarchive", json!({"threadId": id})).await;
    assert_eq!(client.ask("thread/name/set", named).await, json!({}));
    client.ask("thread/fork", json!({"threadId": id})).await;
}

#[tokio::test]
async fn unarchiving_brings_the_record_back() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    stage.clock.set(1_700_000_000_000);
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let path = client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"].clone();
    client.ask("thread/archive", json!({"threadId": id})).await;
    client.rest().await;
    client.transcript();
    stage.clock.set(1_700_000_500_000);
    let thread = client.ask("thread/unarchive", json!({"threadId": id})).await["thread"].clone();
    assert_eq!((&thread["path"], &thread["status"]), (&path, &json!({"type": "notLoaded"})));
    assert!(Path::new(&text(&path)).exists());
    assert_eq!(thread["updatedAt"], 1_700_000_500);
    assert_eq!(client.next_of("thread/unarchived").await, json!({"threadId": id}));
    assert_eq!(client.transcript(), ["= thread/unarchive", "thread/unarchived"]);
    for id in [id.as_str(), UNKNOWN] {
        let message = client.refused("thread/unarchive", json!({"threadId": id})).await;
        assert_eq!(message, format!("no archived rollout found for thread id {id}"));
    }
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["completed: hi"]);
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
        (UNKNOWN, json!({"sha": "s"}), format!("thread not found: {UNKNOWN}")),
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
async fn a_turn_makes_a_thread_active_then_idle() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let id = client.spoken_thread("hi").await;
    // Those who do not listen to the thread hear of it too.
    for client in [&mut client, &mut other] {
        let heard = client.rest_whole().await;
        let statuses: Vec<&Value> = heard
            .iter()
            .filter(|message| message["method"] == "thread/status/changed")
            .map(|message| &message["params"])
            .collect();
        let active = json!({"threadId": id, "status": {"type": "active", "activeFlags": []}});
        let idle = json!({"threadId": id, "status": {"type": "idle"}});
        assert_eq!(statuses, [&active, &idle]);
    }
}

#[tokio::test]
async fn the_last_to_leave_unloads_the_thread() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    second.ask("thread/resume", json!({"threadId": id})).await;
    let leave = json!({"threadId": id});
    assert_eq!(second.ask("thread/unsubscribe", leave.clone()).await["status"], "unsubscribed");
    assert_eq!(second.ask("thread/unsubscribe", leave.clone()).await["status"], "notSubscribed");
    assert_eq!(first.ask("thread/loaded/list", json!({})).await["data"], json!([id]));
    first.rest().await;
    second.rest().await;
    assert_eq!(first.ask("thread/unsubscribe", leave.clone()).await["status"], "unsubscribed");
    for client in [&mut first, &mut second] {
        client.status(&id, "notLoaded").await;
        assert_eq!(client.next_of("thread/closed").await, json!({"threadId": id}));
        assert!(client.rest().await.is_empty());
    }
    assert_eq!(first.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    assert_eq!(first.ask("thread/unsubscribe", leave).await["status"], "notLoaded");
    assert_eq!(first.ask("thread/unsubscribe", json!({"threadId": UNKNOWN})).await["status"], "notLoaded");
    let message = first.refused("thread/unsubscribe", json!({"threadId": "zzz"})).await;
    assert!(message.starts_with("invalid thread id: "), "{message}");
}

#[tokio::test]
async fn leaving_during_a_turn_interrupts_it() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    client.next_of("thread/closed").await;
    // How the thread stands between the turn and its own end is nobody's news.
    assert_eq!(client.transcript(), ["= thread/unsubscribe", "thread/status/changed", "thread/closed"]);
    // Nobody listens any more, so nobody hears of the turn's end; the record has it.
    assert!(!client.rest().await.contains(&"turn/completed".to_owned()));
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["interrupted: work"]);
}

#[tokio::test]
async fn leaving_drops_an_open_question_without_a_word() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage = Stage::new(json!([{"call": call}])).await;
    let (_server, mut client) = stage.open().await;
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = client.start_thread(json!({"dynamicTools": [tool]})).await;
    client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    client.next_of("thread/closed").await;
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["interrupted: look it up"]);
    let heard = client.rest().await;
    for method in ["item/tool/call", "serverRequest/resolved", "turn/completed"] {
        assert!(!heard.contains(&method.to_owned()), "{heard:?}");
    }
    stage.assert_played();
}

#[tokio::test]
async fn a_system_error_is_forgotten_with_the_thread_in_memory() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}});
    let stage = Stage::new(json!([fail])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    assert_eq!(client.turn(&id, "hi").await["status"], "failed");
    client.status(&id, "systemError").await;
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["status"], json!({"type": "idle"}));
    assert_eq!(told(&resumed["thread"]), ["failed: hi"]);
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_threads_loaded() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let id = first.spoken_thread("hi").await;
    drop(first);
    let mut second = server.connect().await;
    assert_eq!(second.ask("thread/loaded/list", json!({})).await["data"], json!([id]));
    // Turns need no subscription; without one only broadcasts come.
    second.start_turn(&id, "more").await;
    second.status(&id, "idle").await;
    let heard = second.rest().await;
    assert!(heard.iter().all(|method| method == "thread/status/changed"), "{heard:?}");
}
