//! Who decided, started and stopped what at `oarlock host`: in the audit trail, with the operation, and in the record.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::host::{APPROVAL, HostClient, RunningHost, code, command, job, pending, runs, state, until};
use crate::support::{Place, Ran};

fn audit(place: &Place, more: &[&str]) -> Ran {
    let url = format!("unix://{}", place.root().join("tasks.sqlite.sock").display());
    place.run(&[&["host", "audit", "--host", &url], more].concat())
}

/// Who did what, oldest first.
fn trail(place: &Place, more: &[&str]) -> Vec<String> {
    let listed = audit(place, &[&["--json"], more].concat()).good().document();
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let shown = |entry: &Value| format!("{} {}", word(entry, "who"), word(entry, "action"));
    listed.as_array().into_iter().flatten().rev().map(shown).collect()
}

/// Whether the file of the store has these bytes; of what is said here only records have them.
fn store_holds(place: &Place, text: &str) -> bool {
    let read = |name: &str| fs::read(place.root().join(name)).unwrap_or_default();
    let files = [read("tasks.sqlite"), read("tasks.sqlite-wal")];
    files.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// The only decision in a thread, after it is over.
fn decision(client: &mut HostClient, thread: &str) -> Value {
    let by_id = json!({"threadId": thread, "includeTurns": true});
    let read = client.ask("thread/read", &by_id)["decisions"].take();
    let [decided] = read.as_array().expect("a list").as_slice() else { panic!("{read}") };
    let of_thread = json!({"threadId": thread, "state": "finished"});
    let listed = client.ask("operation/list", &of_thread)["data"][0].take();
    assert_eq!((&listed["operationId"], &listed["itemId"]), (&decided["operationId"], &decided["itemId"]));
    assert_eq!(listed["decision"], decided["decision"], "{listed}");
    for shown in [&listed, decided] {
        assert_eq!((shown.get("policy"), shown.get("unbackedDecision")), (None, None), "{shown}");
    }
    assert!(decided["decision"]["decidedAtMs"].as_i64().is_some_and(|at_ms| at_ms > 0), "{decided}");
    decided["decision"].clone()
}

#[test]
fn the_record_has_who_decided_whether_or_not_a_runtime_was_there() {
    let place = Place::new();
    job(&place, "");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {
        "decision": "accept", "origin": {"by": "user:eve", "decidedAtMs": 1}}}));
    client.wait_for("turn/completed");
    let decided = decision(&mut client, &thread);
    assert_eq!(decided["by"], "client:tests", "not as the client claims");
    let recorded = format!("\"decidedAtMs\":{}", decided["decidedAtMs"]);
    assert!(store_holds(&place, "\"by\":\"client:tests\"") && store_holds(&place, &recorded), "{recorded}");

    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    until("the task to wait", || (state(&place) == "waiting").then_some(()));
    host.kill();
    let _host = RunningHost::start(&place, &[]);
    assert!(!store_holds(&place, "\"by\":\"client:oarlock_cli\""));
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    let mut client = HostClient::connect(&place);
    let decided = decision(&mut client, &thread);
    assert_eq!((&decided["by"], runs(&place)), (&json!("client:oarlock_cli"), 2));
    let recorded = format!("\"decidedAtMs\":{}", decided["decidedAtMs"]);
    assert!(store_holds(&place, "\"by\":\"client:oarlock_cli\"") && store_holds(&place, &recorded));
}

#[test]
fn the_trail_says_who_decided_started_and_stopped_what() {
    let place = Place::new();
    job(&place, "");
    let _host = RunningHost::start(&place, &[]);
    assert_eq!(audit(&place, &[]).good().out, "nothing was done yet\n");
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    let turn = client.turn(&thread, "run sh job.sh", "i1");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    command(&place, &["task", "suspend", &thread]).good();
    command(&place, &["task", "resume", &thread]).good();
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    let next = client.turn(&thread, "run sh job.sh", "i2")["id"].clone();
    until("the question", || pending(&place).pop());
    client.ask("turn/interrupt", &json!({"threadId": thread, "turnId": next}));
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    let other = client.start_thread(&place, "never");
    client.ask("task/suspend", &json!({"threadId": other}));
    client.ask("task/delete", &json!({"threadId": thread}));

    let of_task = [
        "client:tests thread/start",
        "client:tests turn/start",
        "client:oarlock_cli thread/suspend",
        "client:oarlock_cli task/resume",
        "client:oarlock_cli operation/decide",
        "client:tests turn/start",
        "client:tests turn/interrupt",
        "client:tests task/delete",
    ];
    assert_eq!(trail(&place, &["--task", &thread]), of_task, "also when the task is gone");
    let all = trail(&place, &["--days", "1"]);
    assert_eq!(all.len(), of_task.len() + 2, "{all:?}");
    assert_eq!(trail(&place, &["--limit", "1"]), ["client:tests task/delete"]);
    let shown = audit(&place, &[]).good().out;
    assert!(shown.starts_with("TIME") && shown.contains("operation/decide"), "{shown}");

    // By pages, through the wire.
    let first = client.ask("audit/list", &json!({"threadId": thread, "limit": 5}));
    let cursor = first["nextCursor"].clone();
    let rest = client.ask("audit/list", &json!({"threadId": thread, "limit": 5, "cursor": cursor}));
    let numbers = |page: &Value| -> Vec<i64> {
        page["data"].as_array().into_iter().flatten().filter_map(|entry| entry["number"].as_i64()).collect()
    };
    let all: Vec<i64> = numbers(&first).into_iter().chain(numbers(&rest)).collect();
    assert_eq!((all.len(), &rest["nextCursor"]), (of_task.len(), &Value::Null));
    assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {all:?}");
    let started = &rest["data"][1];
    assert_eq!((&started["subject"], &started["taskId"]), (&turn["id"], &json!(thread)), "{started}");
    assert_eq!(started["details"], json!({"inputId": "i1"}));
    let refused = client.try_ask("audit/list", &json!({"cursor": "x"})).expect_err("no cursor");
    assert_eq!(refused["message"], "invalid cursor: x");
}

#[test]
fn old_entries_are_removed_and_no_task_with_them() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "say hello", "i1");
    client.wait_for("turn/completed");
    // A task that is not at rest is adopted, which is an entry again.
    until("the rest", || (state(&place) == "idle").then_some(()));
    drop(client);
    host.kill();
    let _host = RunningHost::start(&place, &["-c", "host.audit_retention_days=0"]);
    until("the removal", || trail(&place, &[]).is_empty().then_some(()));
    assert_eq!(state(&place), "idle");
}

#[test]
fn a_suspended_thread_leaves_its_workspace_as_it_is_when_that_is_asked_for() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let plain = client.start_thread(&place, "untrusted");
    let refused = client.try_ask("thread/suspend", &json!({"threadId": plain, "snapshot": true}));
    let refused = refused.expect_err("nothing to keep");
    assert!(refused["message"].as_str().is_some_and(|text| text.starts_with("snapshot: ")), "{refused}");
    assert_eq!(host.runtimes().len(), 1, "nothing was suspended");
    let suspended = client.ask("thread/suspend", &json!({"threadId": plain}));
    assert_eq!((&suspended["task"]["hasRuntime"], suspended.get("placement")), (&json!(false), None));
    client.ask("task/delete", &json!({"threadId": plain}));

    let text = json!({"type": "text", "text": "echo x >> runs\nsleep 300\n"});
    let placement = json!({"backend": "local", "manifest": {"entries": {"slow.sh": text}}});
    let params = json!({"placement": placement, "approvalPolicy": "never", "sandbox": "workspace-write"});
    let started = client.ask("thread/start", &params);
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    let folder = PathBuf::from(started["cwd"].as_str().expect("a folder"));
    client.turn(&thread, "run sh slow.sh", "i1");
    until("the command", || folder.join("runs").exists().then_some(()));
    // A command is under way: the turn comes to a safe point first, and only then the workspace is kept.
    let said = command(&place, &["task", "suspend", &thread, "--snapshot"]).good().out;
    assert!(said.contains(&format!("{thread} is ")) && said.contains("kept as "), "{said}");
    assert_eq!(host.runtimes(), Vec::<String>::new());
    let listed = client.ask("placement/list", &json!({}))["data"].clone();
    let kept = listed[0]["snapshot"].as_str().expect("a digest").to_owned();
    assert!(said.contains(&kept), "{said}");
    assert_eq!(listed[0]["status"], "ready");
    assert_eq!(
        trail(&place, &["--limit", "2"]),
        ["client:oarlock_cli thread/suspend", "client:oarlock_cli placement/snapshot"]
    );
    // What the turn did before it was suspended is in the snapshot.
    fs::remove_dir_all(&folder).expect("removed");
    client.ask("placement/abandon", &json!({"placementId": listed[0]["id"]}));
    client.ask("task/resume", &json!({"threadId": thread}));
    let made = until("the workspace", || {
        let listed = client.ask("placement/list", &json!({}))["data"].clone();
        let made = PathBuf::from(listed[0]["workspace"].as_str()?);
        (made != folder && made.join("runs").exists()).then_some(made)
    });
    assert_eq!(fs::read_to_string(made.join("runs")).expect("it ran"), "x\n");
    host.kill();
}
