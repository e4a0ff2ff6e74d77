//! A state folder: making, finding, resuming, editing and archiving threads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use oarlock_journal::{JournalError, ListQuery, RecordBatch, Store, ThreadJournal};
use protocol::{ThreadId, ThreadMetadataChange, TriState, TurnStatus};
use serde_json::json;

use crate::support::{
    Events, Fault, FaultyDisk, NOW, batch, batch_at, ended, folder, meta, started, thread_id, told, user,
};

fn open(root: &Path) -> Store {
    Store::open(root, Events::default().options()).unwrap()
}

fn create(store: &Store, number: u64) -> ThreadJournal {
    let thread = thread_id(number);
    let journal = store.create(&thread, batch(&[meta(&thread)])).unwrap();
    let turn =
        [started("a"), user("a", &format!("thread {number}")), told("a", "A"), ended("a", "completed")];
    journal.append_durable(batch(&turn)).unwrap();
    journal
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_thread_is_one_private_file_in_the_folder_of_its_day() {
    let folder = folder();
    let root = folder.path().join("state");
    let store = open(&root);
    let journal = create(&store, 1);
    let expected = format!("threads/2026/11/15/{}.jsonl", thread_id(1));
    assert_eq!(journal.path(), store.root().join(expected));
    assert_eq!(mode(journal.path()), 0o600);
    for path in journal.path().ancestors().skip(1).take(5) {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    store.check_writable().unwrap();
    store.list(&ListQuery::default()).unwrap();
    for file in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite.lock"] {
        assert_eq!(mode(&store.root().join(file)), 0o600, "{file}");
    }
}

#[test]
fn the_day_of_a_thread_is_that_of_its_start_and_not_of_its_first_turn() {
    let folder = folder();
    let store = open(folder.path());
    let reported = store.path_for(&thread_id(1), NOW).unwrap();
    let journal = store.create(&thread_id(1), batch_at(NOW + 86_400_000, &[meta(&thread_id(1))])).unwrap();
    assert_eq!(journal.path(), reported);
}

#[test]
fn an_id_that_tells_its_time_is_found_wherever_its_journal_lies() {
    let folder = folder();
    let thread = ThreadId::new(format!("{:08x}-{:04x}-7000-8000-000000000001", NOW >> 16, NOW & 0xffff));
    let journal = open(folder.path()).create(&thread, batch(&[meta(&thread)])).unwrap();
    journal.append_durable(batch(&[started("a"), told("a", "A")])).unwrap();
    let place = journal.path().to_owned();
    journal.close().unwrap();
    let found = |root: &Path| {
        let resumed = open(root).resume(&thread).unwrap();
        assert_eq!(resumed.history.model.len(), 1);
        resumed.journal.path().to_owned()
    };
    assert_eq!(found(folder.path()), place);
    // Made just before midnight, and its first record written just after.
    let next_day = place.parent().unwrap().with_file_name("16").join(place.file_name().unwrap());
    fs::create_dir(next_day.parent().unwrap()).unwrap();
    fs::rename(&place, &next_day).unwrap();
    assert_eq!(found(folder.path()), next_day);
    let archived = place.ancestors().nth(5).unwrap().join("archived").join(place.file_name().unwrap());
    fs::rename(&next_day, &archived).unwrap();
    assert_eq!(found(folder.path()), archived);
    assert!(open(folder.path()).read(&thread).unwrap().row.is_archived);
}

#[test]
fn what_the_disk_refused_is_not_listed() {
    let folder = folder();
    let fault = Fault { errno: 28, is_partial: true, calls: 3 };
    let disk = Arc::new(FaultyDisk::new(24, fault));
    let mut options = Events::default().options();
    options.writer.disk = disk.clone();
    let store = Store::open(folder.path(), options).unwrap();
    let journal = create(&store, 1);
    let mut at_ms = NOW;
    let mut listed = NOW;
    while !disk.has_failed() || listed != at_ms {
        at_ms += 1;
        if journal.append_durable(batch_at(at_ms, &[user("a", "hello")])).is_ok() {
            listed = at_ms;
        }
        let page = store.list(&ListQuery::default()).unwrap();
        assert_eq!(page.threads[0].summary.updated_at_ms, listed);
        assert_eq!(store.read(&thread_id(1)).unwrap().history.summary.updated_at_ms, listed);
    }
}

#[test]
fn failed_turns_and_tool_items_are_there_after_resume() {
    let folder = folder();
    let item = json!({"type": "dynamicToolCall", "id": "c", "tool": "t", "arguments": {}, "status": "failed",
        "contentItems": null, "success": false, "durationMs": 3});
    let turn = [
        started("b"),
        json!({"kind": "threadItem", "turnId": "b", "item": item}),
        ended("b", "failed"),
        started("c"),
        user("c", "and then"),
    ];
    {
        let store = open(folder.path());
        create(&store, 1).append_durable(batch(&turn)).unwrap();
    }
    let store = open(folder.path());
    let resumed = store.resume(&thread_id(1)).unwrap();
    let statuses: Vec<TurnStatus> = resumed.history.turns.iter().map(|turn| turn.status).collect();
    assert_eq!(statuses, [TurnStatus::Completed, TurnStatus::Failed, TurnStatus::Interrupted]);
    assert_eq!(serde_json::to_value(&resumed.history.turns[1].items).unwrap()[0]["status"], "failed");
    assert!(resumed.recovery.damage.is_empty());
    assert_eq!(resumed.journal.next_seq(), 11);
    // A read beside an open journal shows its durable part.
    resumed.journal.append_durable(batch(&[ended("c", "completed")])).unwrap();
    let read = store.read(&thread_id(1)).unwrap();
    assert_eq!(read.history.turns[2].status, TurnStatus::Completed);
    assert_eq!(read.row, resumed.journal.row());
    assert!(matches!(store.resume(&thread_id(1)), Err(JournalError::Locked { .. })));
}

#[test]
fn a_torn_tail_is_cut_on_resume_and_said() {
    let folder = folder();
    let store = open(folder.path());
    let journal = create(&store, 1);
    let path = journal.path().to_owned();
    journal.close().unwrap();
    let before = fs::read(&path).unwrap();
    fs::write(&path, [&before[..], b"{\"seq\":6,\"at\":\"2026"].concat()).unwrap();
    let resumed = store.resume(&thread_id(1)).unwrap();
    assert_eq!((resumed.recovery.cut, resumed.recovery.damage.total()), (19, 1));
    assert!(!resumed.journal.row().is_damaged);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_lost_head_is_filled_from_the_index_or_refused() {
    let folder = folder();
    let store = open(folder.path());
    let journal = create(&store, 1);
    let path = journal.path().to_owned();
    journal.close().unwrap();
    assert_eq!(store.list(&ListQuery::default()).unwrap().threads.len(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let resumed = store.resume(&thread_id(1)).unwrap();
    assert_eq!(resumed.history.summary.cwd.as_deref(), Some("/work"));
    assert_eq!(resumed.history.meta, None);
    assert!(resumed.journal.row().is_damaged);
    resumed.journal.close().unwrap();
    drop(store);
    for file in fs::read_dir(folder.path()).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("index") {
            fs::remove_file(file.path()).unwrap();
        }
    }
    let store = open(folder.path());
    assert!(matches!(store.resume(&thread_id(1)), Err(JournalError::Headless { .. })));
    let listed = store.list(&ListQuery::default()).unwrap();
    assert!(listed.threads[0].is_damaged);
    assert_eq!(listed.threads[0].summary.preview.as_deref(), Some("thread 1"));
}

#[test]
fn ids_that_are_not_uuids_never_reach_the_disk() {
    let folder = folder();
    let store = open(folder.path());
    for id in ["../../../etc/passwd", "", "x", "00000000-0000-4000-8000-00000000000/"] {
        let id = ThreadId::new(id);
        assert!(matches!(store.create(&id, RecordBatch::at(NOW)), Err(JournalError::InvalidThreadId(_))));
        assert!(matches!(store.resume(&id), Err(JournalError::InvalidThreadId(_))));
        assert!(matches!(store.archive(&id), Err(JournalError::InvalidThreadId(_))));
    }
    assert!(matches!(store.resume(&thread_id(9)), Err(JournalError::NotFound(_))));
}

#[test]
fn a_thread_is_made_once() {
    let folder = folder();
    let store = open(folder.path());
    create(&store, 1).close().unwrap();
    let again = store.create(&thread_id(1), batch_at(NOW + 86_400_000, &[meta(&thread_id(1))]));
    assert!(matches!(again, Err(JournalError::AlreadyExists { .. })), "{again:?}");
    store.archive(&thread_id(1)).unwrap();
    let again = store.create(&thread_id(1), batch(&[meta(&thread_id(1))]));
    assert!(matches!(again, Err(JournalError::AlreadyExists { .. })), "{again:?}");
}

#[test]
fn the_archive_is_a_place_and_survives_the_index() {
    let folder = folder();
    let store = open(folder.path());
    let journal = create(&store, 1);
    let place = journal.path().to_owned();
    assert!(matches!(store.archive(&thread_id(1)), Err(JournalError::Locked { .. })), "open threads stay");
    journal.close().unwrap();
    create(&store, 2).close().unwrap();
    let archived = store.archive(&thread_id(1)).unwrap();
    assert_eq!(archived.path, store.root().join(format!("archived/{}.jsonl", thread_id(1))));
    let ids = |archived: bool| -> Vec<ThreadId> {
        let page = store.list(&ListQuery { archived, ..ListQuery::default() }).unwrap();
        page.threads.into_iter().map(|row| row.thread_id).collect()
    };
    for _ in 0..2 {
        assert_eq!((ids(true), ids(false)), (vec![thread_id(1)], vec![thread_id(2)]));
        store.delete_index().unwrap();
    }
    assert!(matches!(store.archive(&thread_id(1)), Err(JournalError::NotFound(_))));
    assert!(matches!(store.unarchive(&thread_id(2), NOW), Err(JournalError::NotFound(_))));
    assert_eq!(archived.summary.updated_at_ms, NOW);
    let back = store.unarchive(&thread_id(1), NOW + 5_000).unwrap();
    assert_eq!((back.path, back.is_archived), (place, false));
    for _ in 0..2 {
        assert_eq!((ids(true), ids(false).len()), (vec![], 2));
        assert_eq!(store.summary(&thread_id(1)).unwrap().summary.updated_at_ms, NOW + 5_000);
        store.delete_index().unwrap();
    }
}

#[test]
fn edits_are_in_the_journal_first() {
    let folder = folder();
    let store = open(folder.path());
    create(&store, 1).close().unwrap();
    let change = ThreadMetadataChange { name: TriState::Set("Renamed".to_owned()), ..Default::default() };
    let row = store.edit(&thread_id(1), change, NOW + 9_000).unwrap();
    assert_eq!(row.summary.name.as_deref(), Some("Renamed"));
    store.delete_index().unwrap();
    let row = store.summary(&thread_id(1)).unwrap();
    assert_eq!(row.summary.name.as_deref(), Some("Renamed"));
    assert_eq!(row.summary.updated_at_ms, NOW);
    let thread = row.to_thread(protocol::ThreadStatus::NotLoaded, Vec::new());
    assert_eq!((thread.name.as_deref(), thread.preview.as_str()), (Some("Renamed"), "thread 1"));
}

#[test]
fn links_below_the_root_are_not_followed() {
    let folder = folder();
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let store = open(&folder.path().join("state"));
    std::os::unix::fs::symlink(&outside, store.root().join("threads/2026")).unwrap();
    let refused = store.create(&thread_id(1), batch(&[meta(&thread_id(1))]));
    assert!(matches!(refused, Err(JournalError::Storage { .. })), "{refused:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}
