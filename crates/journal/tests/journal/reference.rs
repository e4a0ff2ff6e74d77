//! Rollouts of the reference: listed and read where they are, copied before they are written to, and written again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use oarlock_journal::{
    JournalError, ListQuery, RecordBatch, Store, StoreOptions, export_rollout, rollout_thread_id,
};
use protocol::{RolloutRecord, ThreadId, ThreadItem, ThreadMetadataChange, TriState, TurnId, TurnStatus};
use serde_json::{Value, json};
use tempfile::TempDir;

const ID: &str = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2";
const OTHER: &str = "01a1eb03-5acb-77b0-a58a-8ef42384d8dd";

/// The home of the reference, and a store beside it.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn store(&self) -> Store {
        let options = StoreOptions { reference: Some(self.home()), ..StoreOptions::default() };
        Store::open(&self.home().join("oarlock"), options).unwrap()
    }

    fn place(&self, id: &str) -> PathBuf {
        self.home().join(format!("sessions/2026/11/17/rollout-2026-11-17T19-37-06-{id}.jsonl"))
    }

    fn write(&self, path: &Path, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn line(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2026-11-17T19:37:08.163Z", "type": kind, "payload": payload })
}

fn event(payload: Value) -> Value {
    line("event_msg", payload)
}

fn meta(id: &str) -> Value {
    line(
        "session_meta",
        json!({
            "id": id, "timestamp": "2026-11-17T19:37:08.141Z", "cwd": "/work", "originator": "probe",
            "cli_version": "0.117.0", "source": "vscode", "model_provider": "mock",
            "base_instructions": { "text": "be good" },
            "git": { "commit_hash": "abc", "branch": "main", "repository_url": "https://example.org/r" },
        }),
    )
}

fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    let content = json!([{ "type": kind, "text": text }]);
    line("response_item", json!({ "type": "message", "role": role, "content": content }))
}

/// One turn as the reference writes it.
fn turn(id: &str, said: &str, answered: &str) -> Vec<Value> {
    let tokens = json!({ "input_tokens": 100, "cached_input_tokens": 10, "output_tokens": 20,
        "reasoning_output_tokens": 5, "total_tokens": 120 });
    vec![
        event(json!({ "type": "task_started", "turn_id": id, "model_context_window": 258_400 })),
        message("user", "<environment_context>\n  <cwd>/work</cwd>\n</environment_context>"),
        line(
            "turn_context",
            json!({ "turn_id": id, "cwd": "/work", "model": "mock-model", "effort": "high" }),
        ),
        message("user", said),
        event(json!({ "type": "user_message", "message": said, "images": [], "local_images": [],
            "text_elements": [] })),
        event(json!({ "type": "agent_reasoning", "text": "think" })),
        event(json!({ "type": "agent_message", "message": answered, "phase": null })),
        message("assistant", answered),
        event(json!({ "type": "token_count", "info": { "total_token_usage": tokens,
            "last_token_usage": tokens, "model_context_window": 258_400 } })),
        event(json!({ "type": "task_complete", "turn_id": id, "last_agent_message": answered })),
    ]
}

fn rollout(id: &str) -> Vec<Value> {
    let mut lines = vec![meta(id)];
    lines.extend(turn("t1", "question one", "answer one"));
    lines
}

fn listed(store: &Store, archived: bool) -> Vec<(String, Option<String>)> {
    let page = store.list(&ListQuery { archived, ..ListQuery::default() }).unwrap();
    page.threads.iter().map(|row| (row.thread_id.to_string(), row.summary.preview.clone())).collect()
}

fn item_ids(turns: &[protocol::Turn]) -> Vec<Vec<String>> {
    turns.iter().map(|turn| turn.items.iter().map(|item| item.id().to_string()).collect()).collect()
}

#[test]
fn they_are_listed_beside_our_own_with_their_names_and_facts() {
    let scene = Scene::new();
    scene.write(&scene.place(ID), &rollout(ID));
    let archived = scene.home().join(format!("archived_sessions/rollout-2026-11-17T19-37-08-{OTHER}.jsonl"));
    scene.write(&archived, &rollout(OTHER));
    scene.write(
        &scene.home().join("session_index.jsonl"),
        &[
            json!({ "id": ID, "thread_name": "old", "updated_at": "x" }),
            json!({ "id": ID, "thread_name": "A name", "updated_at": "x" }),
        ],
    );
    let store = scene.store();
    assert_eq!(listed(&store, false), [(ID.to_owned(), Some("question one".to_owned()))]);
    assert_eq!(listed(&store, true), [(OTHER.to_owned(), Some("question one".to_owned()))]);
    let row = store.summary(&ThreadId::new(ID)).unwrap();
    assert_eq!(row.path, scene.place(ID));
    assert_eq!(row.summary.name.as_deref(), Some("A name"));
    assert_eq!(row.summary.model.as_deref(), Some("mock-model"));
    assert_eq!(row.summary.tokens, Some(120));
    assert_eq!(row.summary.cwd.as_deref(), Some("/work"));
    assert_eq!(row.summary.git_info.unwrap().branch.as_deref(), Some("main"));
    // One that comes later, and a new name, show in the next list.
    let third = "01a1eb03-5b2a-7710-981b-327ad1edba70";
    scene.write(&scene.place(third), &rollout(third));
    scene.write(&scene.home().join("session_index.jsonl"), &[json!({ "id": ID, "thread_name": "Newer" })]);
    assert_eq!(listed(&store, false).len(), 2);
    assert_eq!(store.summary(&ThreadId::new(ID)).unwrap().summary.name.as_deref(), Some("Newer"));
}

#[test]
fn turns_and_history_are_what_the_reference_makes_of_them() {
    let scene = Scene::new();
    let mut lines = rollout(ID);
    lines.push(event(json!({ "type": "exec_command_end", "call_id": "call_1", "turn_id": "t1",
        "command": ["/bin/bash", "-lc", "echo hi"], "cwd": "/work", "source": "unified_exec_startup",
        "parsed_cmd": [{ "type": "unknown", "cmd": "echo hi" }], "aggregated_output": "hi\n", "exit_code": 0,
        "duration": { "secs": 1, "nanos": 5_000_000 }, "status": "completed" })));
    lines.extend(turn("t2", "rolled back", "gone"));
    lines.push(event(json!({ "type": "thread_rolled_back", "num_turns": 1 })));
    lines.extend(turn("t3", "question two", "answer two"));
    lines.push(event(json!({ "type": "task_started", "turn_id": "t4" })));
    lines.push(event(json!({ "type": "user_message", "message": "", "images": ["data:x"] })));
    lines.push(event(json!({ "type": "turn_aborted", "turn_id": "t4", "reason": "interrupted" })));
    scene.write(&scene.place(ID), &lines);
    let read = scene.store().read(&ThreadId::new(ID)).unwrap();
    let turns = &read.history.turns;
    let ids: Vec<&str> = turns.iter().map(|turn| turn.id.as_str()).collect();
    assert_eq!(ids, ["t1", "t3", "t4"]);
    assert_eq!(
        item_ids(turns),
        [vec!["item-1", "item-2", "item-3", "call_1"], vec!["item-5", "item-6", "item-7"], vec!["item-8"]]
    );
    let statuses: Vec<TurnStatus> = turns.iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnStatus::Completed, TurnStatus::Completed, TurnStatus::Interrupted]);
    let ThreadItem::CommandExecution { command, duration_ms, .. } = &turns[0].items[3] else {
        panic!("{turns:?}")
    };
    assert_eq!((command.as_str(), *duration_ms), ("/bin/bash -lc 'echo hi'", Some(1_005)));
    // Two turns of three messages each.
    assert_eq!(read.history.model.len(), 6);
    assert_eq!(read.history.token_usage.unwrap().total.total_tokens, 120);
}

#[test]
fn old_rollouts_have_turns_and_summaries_too() {
    let scene = Scene::new();
    scene.write(
        &scene.place(ID),
        &[
            meta(ID),
            message("user", "first"),
            event(json!({ "type": "user_message", "message": "first" })),
            event(json!({ "type": "agent_message", "message": "one" })),
            message("assistant", "one"),
            line("compacted", json!({ "message": "the summary" })),
            message("user", "second"),
            event(json!({ "type": "user_message", "message": "second" })),
            event(json!({ "type": "error", "message": "it broke" })),
        ],
    );
    let read = scene.store().read(&ThreadId::new(ID)).unwrap();
    let said: Vec<TurnStatus> = read.history.turns.iter().map(|turn| turn.status).collect();
    assert_eq!(said, [TurnStatus::Completed, TurnStatus::Failed]);
    assert_eq!(read.history.turns[1].error.as_ref().unwrap().message, "it broke");
    let texts = json!(read.history.model).to_string();
    assert!(texts.contains("first") && texts.contains("the summary") && texts.contains("second"), "{texts}");
    assert!(!texts.contains("\"one\""), "{texts}");
}

#[test]
fn the_first_write_copies_them_and_theirs_stays_as_it_is() {
    let scene = Scene::new();
    scene.write(&scene.place(ID), &rollout(ID));
    let before = fs::read(scene.place(ID)).unwrap();
    let (store, id) = (scene.store(), ThreadId::new(ID));
    let (read, found) = store.read_reference(&id).unwrap().unwrap();
    // Lines that the reference adds after we have read the file are not in our copy.
    let mut longer = rollout(ID);
    longer.extend(turn("theirs", "elsewhere", "later"));
    scene.write(&scene.place(ID), &longer);
    let next = RolloutRecord::TurnStarted { turn_id: TurnId::new("ours"), at_ms: 1_800_000_000_000 };
    let journal = store.adopt(&found, RecordBatch::one(1_800_000_000_000, &next).unwrap()).unwrap();
    assert!(journal.path().starts_with(scene.home().join("oarlock")), "{journal:?}");
    journal.close().unwrap();
    let ours = store.read(&id).unwrap();
    assert_eq!(ours.history.turns[..1], read.history.turns[..]);
    assert_eq!(ours.history.turns[1].id.as_str(), "ours");
    assert_eq!(ours.history.turns.len(), 2);
    assert_eq!(ours.history.model, read.history.model);
    assert_eq!(listed(&store, false).len(), 1);
    assert!(store.read_reference(&id).unwrap().is_none());
    assert!(matches!(store.import_rollout(&scene.place(ID)), Err(JournalError::AlreadyExists { .. })));
    assert!(fs::read(scene.place(ID)).unwrap().starts_with(&before));
    // After a restart, with an empty index.
    drop(store);
    fs::remove_file(scene.home().join("oarlock/index.sqlite")).unwrap();
    let store = scene.store();
    assert_eq!(store.summary(&id).unwrap().path, ours.row.path);
    assert_eq!(listed(&store, false).len(), 1);
}

#[test]
fn both_homes_may_be_one_folder() {
    let scene = Scene::new();
    scene.write(&scene.place(ID), &rollout(ID));
    let options = StoreOptions { reference: Some(scene.home()), ..StoreOptions::default() };
    let (store, id) = (Store::open(&scene.home(), options).unwrap(), ThreadId::new(ID));
    assert_eq!(listed(&store, false).len(), 1);
    assert_eq!(store.read(&id).unwrap().history.turns.len(), 1);
    let mut records = 0;
    store.read_entries(&id, |_| records += 1).unwrap();
    assert!(records > 5);
    store.archive(&id).unwrap();
    assert_eq!(listed(&store, true)[0].0, ID);
    assert!(scene.place(ID).exists());
}

#[test]
fn names_and_the_archive_are_ours_once_they_are_changed() {
    let scene = Scene::new();
    let archived = scene.home().join(format!("archived_sessions/rollout-2026-11-17T19-37-08-{OTHER}.jsonl"));
    scene.write(&archived, &rollout(OTHER));
    scene.write(&scene.place(ID), &rollout(ID));
    let (store, id, other) = (scene.store(), ThreadId::new(ID), ThreadId::new(OTHER));
    let change = ThreadMetadataChange { name: TriState::Set("mine".to_owned()), ..Default::default() };
    assert_eq!(store.edit(&id, change, 5).unwrap().summary.name.as_deref(), Some("mine"));
    store.archive(&id).unwrap();
    store.unarchive(&other, 1_800_000_000_000).unwrap();
    assert_eq!(listed(&store, false)[0].0, OTHER);
    assert_eq!(listed(&store, true)[0].0, ID);
    assert!(scene.place(ID).exists() && archived.exists());
}

#[test]
fn hostile_files_harm_nothing() {
    let scene = Scene::new();
    let day = scene.home().join("sessions/2026/11/17");
    let mut torn: Vec<u8> = rollout(ID).iter().flat_map(|line| format!("{line}\n").into_bytes()).collect();
    torn.extend_from_slice(b"not json\n\xff\xfe\n{\"type\":\"newer\",\"payload\":{}}\n[]\n{}\n");
    torn.extend_from_slice(
        format!("{}\n", line("response_item", json!({ "type": "newer_item" }))).as_bytes(),
    );
    torn.extend_from_slice(format!("{}\n", event(json!({ "type": "newer_event" }))).as_bytes());
    torn.extend_from_slice(b"{\"timestamp\":\"");
    fs::create_dir_all(&day).unwrap();
    fs::write(scene.place(ID), &torn).unwrap();
    // A link, a folder and a pipe with the names of rollouts, one of another thread, and one without identity.
    let secret = scene.home().join("secret");
    fs::write(&secret, meta(OTHER).to_string()).unwrap();
    let named = |last: u32| {
        day.join(format!("rollout-2026-11-17T19-37-06-01a1eb03-0000-7000-8000-00000000000{last}.jsonl"))
    };
    symlink(&secret, named(1)).unwrap();
    fs::create_dir(named(2)).unwrap();
    scene.write(&named(3), &rollout(OTHER));
    scene.write(&named(4), &turn("t", "nobody", "nothing"));
    fs::write(named(5), "").unwrap();
    symlink(scene.home(), scene.home().join("sessions/2027")).unwrap();
    let store = scene.store();
    assert_eq!(listed(&store, false), [(ID.to_owned(), Some("question one".to_owned()))]);
    assert_eq!(store.read(&ThreadId::new(ID)).unwrap().history.turns.len(), 1);
    for last in 1..=5 {
        let id = ThreadId::new(format!("01a1eb03-0000-7000-8000-00000000000{last}"));
        assert!(store.read(&id).is_err(), "{last}");
    }
    assert!(rollout_thread_id(&named(1)).is_err());
}

#[test]
fn lines_of_any_length_are_passed_over() {
    let scene = Scene::new();
    let mut text = format!("{}\n", meta(ID));
    text.push_str(&format!("{}\n", event(json!({ "type": "user_message", "message": "hello" }))));
    text.push_str(&message("user", "LONG").to_string().replace("LONG", &"x".repeat(101_000_000)));
    text.push('\n');
    text.push_str(&format!("{}\n", event(json!({ "type": "agent_message", "message": "after" }))));
    fs::create_dir_all(scene.place(ID).parent().unwrap()).unwrap();
    fs::write(scene.place(ID), text).unwrap();
    let store = scene.store();
    assert_eq!(listed(&store, false).len(), 1);
    let read = store.read(&ThreadId::new(ID)).unwrap();
    assert_eq!(item_ids(&read.history.turns), [["item-1", "item-2"]]);
    assert!(read.history.model.is_empty());
}

#[test]
fn what_is_exported_reads_as_the_same_thread() {
    let scene = Scene::new();
    let mut lines = rollout(ID);
    lines.extend(turn("t2", "rolled back", "gone"));
    lines.push(event(json!({ "type": "thread_rolled_back", "num_turns": 1 })));
    lines.extend(turn("t3", "question two", "answer two"));
    scene.write(&scene.place(ID), &lines);
    let store = scene.store();
    let mut entries = Vec::new();
    store.read_entries(&ThreadId::new(ID), |entry| entries.push(entry)).unwrap();
    let exported = export_rollout(&entries).unwrap();
    assert_eq!(exported.left_out, 0);
    assert!(!String::from_utf8_lossy(&exported.text).contains("rolled back"));
    let again = Scene::new();
    let path = again.home().join(&exported.place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &exported.text).unwrap();
    assert_eq!(rollout_thread_id(&path).unwrap().as_str(), ID);
    let (one, other) =
        (store.read(&ThreadId::new(ID)).unwrap(), again.store().read(&ThreadId::new(ID)).unwrap());
    assert_eq!(other.history.model, one.history.model);
    assert_eq!(item_ids(&other.history.turns).concat().len(), item_ids(&one.history.turns).concat().len());
    assert_eq!(other.history.meta, one.history.meta);
    assert_eq!(other.history.token_usage, one.history.token_usage);
}
