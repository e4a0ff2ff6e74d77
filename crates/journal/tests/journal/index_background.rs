//! Lists of a large store whose index is lost: the first page comes before all journals are read.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use oarlock_journal::{ListQuery, Store, StoreEvent, StoreOptions};
use protocol::{SortDirection, ThreadId, ThreadSortKey};
use serde_json::json;

use crate::support::{Events, NOW, batch_at, folder, meta_with, options, thread_id, user};

const THREADS: u64 = 3_000;
const APART_MS: u64 = 5_000;

/// Far more than any wait here takes.
const LONG: Duration = Duration::from_secs(60);

/// With its time in it, as new threads have.
fn timed_id(number: u64) -> ThreadId {
    let at_ms = created_at(number).cast_unsigned();
    ThreadId::new(format!("{:08x}-{:04x}-7000-8000-{number:012x}", at_ms >> 16, at_ms & 0xffff))
}

fn created_at(number: u64) -> i64 {
    NOW + (number * APART_MS).cast_signed()
}

/// The newest was last used first. Its index is gone.
fn fill(root: &Path, threads: u64, id: fn(u64) -> ThreadId) {
    let store = Store::open(root, Events::default().options()).unwrap();
    for number in 1..=threads {
        let thread = id(number);
        let mut meta = meta_with(&thread, json!({}));
        meta["meta"]["createdAtMs"] = json!(created_at(number));
        let updated_at = created_at(2 * threads - number);
        let journal = store.create(&thread, batch_at(created_at(number), &[meta])).unwrap();
        journal.append(batch_at(updated_at, &[user("a", &format!("Thread {number}"))])).unwrap();
        let path = journal.path().to_owned();
        journal.close().unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_millis(updated_at.cast_unsigned());
        File::options().write(true).open(path).unwrap().set_modified(written).unwrap();
    }
    drop(store);
    fs::remove_file(root.join("index.sqlite")).unwrap();
}

/// Blocks after two portions of journals until released, and reports when all are read.
struct Held {
    options: StoreOptions,
    go_on: Sender<()>,
    complete: Receiver<()>,
}

fn held() -> Held {
    let (go_on, wait) = mpsc::channel::<()>();
    let (done, complete) = mpsc::channel();
    let wait = Mutex::new(wait);
    let observer = move |event: &StoreEvent| match event {
        // Once the other end is gone, at once.
        StoreEvent::IndexProgress { done: 100.., .. } => drop(wait.lock().unwrap().recv()),
        StoreEvent::IndexRebuilt { .. } => drop(done.send(())),
        _ => {}
    };
    let options = StoreOptions {
        writer: options(),
        observer: Arc::new(observer),
        list_wait: Duration::ZERO,
        ..StoreOptions::default()
    };
    Held { options, go_on, complete }
}

fn number(id: &ThreadId) -> u64 {
    u64::from_str_radix(&id.as_str()[24..], 16).unwrap()
}

/// The threads on this page and all that follow.
fn all_pages(store: &Store, mut query: ListQuery) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        let page = store.list(&query).unwrap();
        seen.extend(page.threads.iter().map(|row| number(&row.thread_id)));
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return seen;
        }
    }
}

#[test]
fn the_first_page_comes_before_the_index_is_complete_and_the_others_miss_and_repeat_nothing() {
    let folder = folder();
    fill(folder.path(), THREADS, timed_id);
    let newest_first: Vec<u64> = (1..=THREADS).rev().collect();
    let oldest_first: Vec<u64> = (1..=THREADS).collect();
    for (sort_key, expected) in
        [(ThreadSortKey::CreatedAt, &newest_first), (ThreadSortKey::UpdatedAt, &oldest_first)]
    {
        let Held { options, go_on, complete } = held();
        let store = Store::open(folder.path(), options).unwrap();
        let query = ListQuery { sort_key, limit: 20, ..ListQuery::default() };
        let first = store.list(&query).unwrap();
        assert!(complete.try_recv().is_err(), "{sort_key:?}: answered before all was read");
        let mut seen: Vec<u64> = first.threads.iter().map(|row| number(&row.thread_id)).collect();
        assert_eq!(seen, expected[..20]);
        drop(go_on);
        seen.extend(all_pages(&store, ListQuery { cursor: first.next_cursor, ..query.clone() }));
        assert_eq!(seen, *expected, "{sort_key:?}: pages read while the index was made");
        complete.recv_timeout(LONG).unwrap();
        assert_eq!(all_pages(&store, query), *expected, "{sort_key:?}: pages of the whole index");
        drop(store);
        fs::remove_file(folder.path().join("index.sqlite")).unwrap();
    }
}

#[test]
fn what_a_closed_store_left_unread_is_read_by_the_next() {
    let folder = folder();
    fill(folder.path(), 500, timed_id);
    let Held { options, go_on, .. } = held();
    let store = Store::open(folder.path(), options).unwrap();
    store.list(&ListQuery::default()).unwrap();
    drop(go_on);
    drop(store);
    let Held { options, go_on, .. } = held();
    let store = Store::open(folder.path(), options).unwrap();
    drop(go_on);
    let search_term = Some("Thread 1".to_owned());
    let found = all_pages(&store, ListQuery { search_term, limit: 100, ..ListQuery::default() });
    assert_eq!(found.len(), 111, "1, 10 to 19 and 100 to 199");
    let oldest = ListQuery { direction: SortDirection::Asc, limit: 100, ..ListQuery::default() };
    assert_eq!(all_pages(&store, oldest), (1..=500).collect::<Vec<_>>());
}

#[test]
fn ids_without_a_time_are_listed_at_once_too_and_changes_meanwhile_are_kept() {
    let folder = folder();
    fill(folder.path(), 500, thread_id);
    let Held { options, go_on, complete } = held();
    let store = Store::open(folder.path(), options).unwrap();
    let first = store.list(&ListQuery::default()).unwrap();
    assert!(complete.try_recv().is_err());
    assert_eq!(first.threads.len(), 25);
    drop(go_on);
    // Some that are read by now and some that are not.
    for number in [1, 250, 500] {
        store.archive(&thread_id(number)).unwrap();
    }
    // Nothing is listed meanwhile: the background thread does it.
    complete.recv_timeout(LONG).unwrap();
    let shown = all_pages(&store, ListQuery::default());
    assert_eq!(shown.len(), 497);
    assert_eq!(shown.iter().collect::<HashSet<_>>().len(), 497);
    let archived = ListQuery { archived: true, ..ListQuery::default() };
    assert_eq!(all_pages(&store, archived), [500, 250, 1]);
}
