//! Lists of threads: pages, filters, and an index that can be lost at any time.

use std::fs;
use std::path::Path;
use std::time::Instant;

use oarlock_journal::{ListQuery, RebuildReason, Store, StoreEvent};
use protocol::{SortDirection, ThreadSortKey, ThreadSourceKind};
use serde_json::{Value, json};

use crate::support::{Events, NOW, batch_at, folder, meta_with, started, thread_id, user};

/// A closed thread, created and last used at these times.
fn make(store: &Store, number: u64, created_at_ms: i64, updated_at_ms: i64, more: Value) {
    let thread = thread_id(number);
    let mut meta = meta_with(&thread, more);
    meta["meta"]["createdAtMs"] = json!(created_at_ms);
    let journal = store.create(&thread, batch_at(created_at_ms, &[meta])).unwrap();
    let words = format!("Thread number {number}");
    journal.append(batch_at(updated_at_ms, &[started("a"), user("a", &words)])).unwrap();
    journal.close().unwrap();
}

fn numbers(store: &Store, query: &ListQuery) -> Vec<u64> {
    let page = store.list(query).unwrap();
    let number = |id: &str| u64::from_str_radix(&id[24..], 16).unwrap();
    page.threads.iter().map(|row| number(row.thread_id.as_str())).collect()
}

fn all_pages(store: &Store, mut query: ListQuery) -> Vec<u64> {
    let mut seen = Vec::new();
    loop {
        seen.extend(numbers(store, &query));
        query.cursor = store.list(&query).unwrap().next_cursor;
        if query.cursor.is_none() {
            return seen;
        }
    }
}

#[test]
fn pages_of_every_size_show_every_thread_once_even_within_one_millisecond() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    // Five at the same millisecond, five in the same second, three seconds apart.
    let times = [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 1_000, 2_000, 3_000];
    for (number, after) in (1..).zip(times) {
        make(&store, number, NOW + after, NOW + 10_000 - after, json!({}));
    }
    let ascending: Vec<u64> = (1..=13).collect();
    let descending: Vec<u64> = (1..=13).rev().collect();
    for limit in 1..=14 {
        for (direction, expected) in [(SortDirection::Asc, &ascending), (SortDirection::Desc, &descending)] {
            let query = ListQuery { limit, direction, ..ListQuery::default() };
            assert_eq!(all_pages(&store, query), *expected, "limit {limit}");
        }
        let query = ListQuery { limit, sort_key: ThreadSortKey::UpdatedAt, ..ListQuery::default() };
        assert_eq!(all_pages(&store, query), [5, 4, 3, 2, 1, 6, 7, 8, 9, 10, 11, 12, 13], "limit {limit}");
    }
}

#[test]
fn an_invalid_cursor_is_named() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    for cursor in ["", "x", "2026-11-15T20:09:51.123Z", "2026-11-15T20:09:51.123Z|x", "|"] {
        let query = ListQuery { cursor: Some(cursor.to_owned()), ..ListQuery::default() };
        assert_eq!(store.list(&query).unwrap_err().to_string(), format!("invalid cursor: {cursor}"));
    }
}

#[test]
fn filters() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    let spawned = json!({"thread_spawn": {"parent_thread_id": thread_id(1), "depth": 1, "agent_nickname": null,
        "agent_role": null}});
    let threads = [
        json!({}),
        json!({"modelProvider": "other", "source": "cli"}),
        json!({"source": "exec"}),
        json!({"source": {"custom": "atlas"}, "cwd": "/elsewhere"}),
        json!({"source": {"subAgent": "review"}}),
        json!({"source": {"subAgent": spawned}}),
        json!({"source": {"custom": "home grown"}}),
    ];
    for (number, more) in (1..).zip(threads) {
        make(&store, number, NOW, NOW, more);
    }
    let kinds =
        |kinds: &[ThreadSourceKind]| ListQuery { source_kinds: kinds.to_vec(), ..ListQuery::default() };
    let cwds = |cwds: &[&str]| {
        let cwds = cwds.iter().map(|cwd| (*cwd).to_owned()).collect();
        ListQuery { cwds, ..ListQuery::default() }
    };
    let search = |term: &str| ListQuery { search_term: Some(term.to_owned()), ..ListQuery::default() };
    let provider = ListQuery { model_providers: vec!["other".to_owned()], ..ListQuery::default() };
    for (query, expected) in [
        (ListQuery::default(), vec![4, 2, 1]),
        (provider, vec![2]),
        (kinds(&[ThreadSourceKind::Exec]), vec![3]),
        (kinds(&[ThreadSourceKind::SubAgent]), vec![6, 5]),
        (kinds(&[ThreadSourceKind::SubAgentReview, ThreadSourceKind::Cli]), vec![5, 2]),
        (kinds(&[ThreadSourceKind::Unknown]), vec![7, 4]),
        (cwds(&["/elsewhere"]), vec![4]),
        (cwds(&["/elsewhere", "/work"]), vec![4, 2, 1]),
        (cwds(&["/else"]), vec![]),
        (search("number 2"), vec![2]),
        (search("Number 2"), vec![]),
        (search("%"), vec![]),
        (ListQuery { archived: true, ..ListQuery::default() }, vec![]),
    ] {
        assert_eq!(numbers(&store, &query), expected, "{query:?}");
    }
}

#[test]
fn appended_changes_are_listed_at_once() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    let thread = thread_id(1);
    let journal = store.create(&thread, batch_at(NOW, &[meta_with(&thread, json!({}))])).unwrap();
    assert_eq!(numbers(&store, &ListQuery::default()), [0; 0], "nobody has said anything");
    assert_eq!(numbers(&store, &ListQuery { with_silent: true, ..ListQuery::default() }), [1]);
    for at_ms in NOW + 1..NOW + 50 {
        journal.append_durable(batch_at(at_ms, &[user("a", "hello")])).unwrap();
        let page = store.list(&ListQuery::default()).unwrap();
        assert_eq!(page.threads[0].summary.updated_at_ms, at_ms);
    }
}

#[test]
fn another_process_sees_what_this_one_has_written() {
    let folder = folder();
    let events = Events::default();
    let here = Store::open(folder.path(), events.options()).unwrap();
    let there = Store::open(folder.path(), Events::default().options()).unwrap();
    assert_eq!(numbers(&there, &ListQuery::default()), [0; 0]);
    make(&here, 1, NOW, NOW, json!({}));
    drop(here);
    assert_eq!(numbers(&there, &ListQuery::default()), [1]);
    make(&there, 2, NOW, NOW, json!({}));
    let here = Store::open(folder.path(), events.options()).unwrap();
    assert_eq!(numbers(&here, &ListQuery::default()), [2, 1]);
}

fn rebuilt(events: &Events) -> Option<RebuildReason> {
    events.take().into_iter().find_map(|event| match event {
        StoreEvent::IndexRebuilding { reason, .. } => Some(reason),
        _ => None,
    })
}

fn index_of(root: &Path) -> std::path::PathBuf {
    root.join("index.sqlite")
}

#[test]
fn a_lost_or_ruined_index_is_made_again_from_the_journals() {
    let folder = folder();
    let events = Events::default();
    type Spoil = fn(&Path);
    let spoil: [(&str, Spoil); 6] = [
        ("missing", |index| fs::remove_file(index).unwrap()),
        ("garbage", |index| fs::write(index, vec![7; 50_000]).unwrap()),
        ("empty", |index| fs::write(index, b"").unwrap()),
        ("header", |index| {
            let mut bytes = fs::read(index).unwrap();
            bytes[..64].fill(0xee);
            fs::write(index, bytes).unwrap();
        }),
        ("pages", |index| {
            let mut bytes = fs::read(index).unwrap();
            bytes[4_096..].fill(0xee);
            fs::write(index, bytes).unwrap();
        }),
        ("version", |index| {
            let connection = rusqlite::Connection::open(index).unwrap();
            connection.pragma_update(None, "user_version", 77).unwrap();
        }),
    ];
    {
        let store = Store::open(folder.path(), events.options()).unwrap();
        for number in 1..=20 {
            make(&store, number, NOW + i64::try_from(number).unwrap(), NOW, json!({}));
        }
    }
    let expected: Vec<u64> = (1..=20).rev().collect();
    for (what, spoil) in spoil {
        spoil(&index_of(folder.path()));
        events.take();
        let store = Store::open(folder.path(), events.options()).unwrap();
        assert_eq!(numbers(&store, &ListQuery::default()), expected, "{what}");
        let reason = rebuilt(&events).unwrap_or_else(|| panic!("{what}: nothing was said"));
        match (what, reason) {
            ("missing" | "empty", RebuildReason::Missing) => {}
            ("garbage" | "header" | "pages", RebuildReason::Corrupt { kept_as: Some(kept_as) }) => {
                assert!(kept_as.exists(), "{what}");
            }
            ("version", RebuildReason::OtherVersion { found: 77 }) => {}
            (what, reason) => panic!("{what}: {reason:?}"),
        }
    }
    let store = Store::open(folder.path(), events.options()).unwrap();
    assert_eq!(numbers(&store, &ListQuery::default()), expected);
    assert_eq!(rebuilt(&events), None, "a sound index is not made again");
}

#[test]
fn an_index_that_is_ruined_while_in_use_is_replaced() {
    let folder = folder();
    let events = Events::default();
    let store = Store::open(folder.path(), events.options()).unwrap();
    for number in 1..=3 {
        make(&store, number, NOW, NOW, json!({}));
    }
    assert_eq!(numbers(&store, &ListQuery::default()), [3, 2, 1]);
    for ending in ["", "-wal"] {
        let path = folder.path().join(format!("index.sqlite{ending}"));
        let length = usize::try_from(fs::metadata(&path).unwrap().len()).unwrap();
        fs::write(&path, vec![0xee; length]).unwrap();
    }
    assert_eq!(numbers(&store, &ListQuery::default()), [3, 2, 1]);
    make(&store, 4, NOW, NOW, json!({}));
    assert_eq!(numbers(&store, &ListQuery::default()), [4, 3, 2, 1]);
}

#[test]
fn two_processes_on_one_index_lose_no_row() {
    const EACH: u64 = 40;
    let folder = folder();
    let stores =
        [0, EACH].map(|from| (from, Store::open(folder.path(), Events::default().options()).unwrap()));
    std::thread::scope(|scope| {
        for (from, store) in &stores {
            scope.spawn(move || {
                for number in from + 1..=from + EACH {
                    make(store, number, NOW, NOW, json!({}));
                    if number % 7 == 0 {
                        store.list(&ListQuery::default()).unwrap();
                    }
                }
            });
        }
    });
    // Each list writes what its process knows.
    for (_, store) in &stores {
        store.list(&ListQuery::default()).unwrap();
    }
    for (_, store) in stores {
        let all = all_pages(&store, ListQuery { limit: 30, ..ListQuery::default() });
        assert_eq!(all, (1..=2 * EACH).rev().collect::<Vec<_>>());
    }
}

#[test]
fn what_was_read_before_another_process_wrote_does_not_replace_its_row() {
    let folder = folder();
    let here = Store::open(folder.path(), Events::default().options()).unwrap();
    let there = Store::open(folder.path(), Events::default().options()).unwrap();
    for store in [&here, &there] {
        assert_eq!(
            numbers(store, &ListQuery::default()),
            [0; 0],
            "compared with the disk, and trusted from now on"
        );
    }
    let thread = thread_id(1);
    let journal = there.create(&thread, batch_at(NOW, &[meta_with(&thread, json!({}))])).unwrap();
    assert_eq!(here.summary(&thread).unwrap().summary.preview, None, "noted, to be written a moment later");
    journal.append_durable(batch_at(NOW + 1, &[started("a"), user("a", "hello")])).unwrap();
    journal.close().unwrap();
    assert_eq!(numbers(&there, &ListQuery::default()), [1]);
    for store in [&here, &there] {
        let page = store.list(&ListQuery::default()).unwrap();
        assert_eq!(page.threads.len(), 1);
        assert_eq!(page.threads[0].summary.preview.as_deref(), Some("hello"));
    }
}

#[test]
fn without_a_place_for_the_index_lists_come_from_the_journals() {
    let folder = folder();
    let events = Events::default();
    make(&Store::open(folder.path(), events.options()).unwrap(), 1, NOW, NOW, json!({}));
    fs::remove_file(index_of(folder.path())).unwrap();
    fs::create_dir(index_of(folder.path())).unwrap();
    let store = Store::open(folder.path(), events.options()).unwrap();
    make(&store, 2, NOW, NOW, json!({}));
    assert_eq!(numbers(&store, &ListQuery::default()), [2, 1]);
    assert!(events.take().iter().any(|event| matches!(event, StoreEvent::IndexInMemory { .. })));
}

#[test]
fn one_bad_journal_of_a_thousand_is_flagged_and_blocks_nothing() {
    let folder = folder();
    let events = Events::default();
    let store = Store::open(folder.path(), events.options()).unwrap();
    for number in 1..=1_000 {
        make(&store, number, NOW + i64::try_from(number).unwrap(), NOW, json!({}));
    }
    drop(store);
    let day = folder.path().join("threads/2026/11/15");
    fs::write(day.join(format!("{}.jsonl", thread_id(500))), b"").unwrap();
    fs::write(day.join(format!("{}.jsonl", thread_id(501))), vec![0xff; 10_000]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", day.join(format!("{}.jsonl", thread_id(2_000)))).unwrap();
    fs::remove_file(index_of(folder.path())).unwrap();
    events.take();
    let began = Instant::now();
    let store = Store::open(folder.path(), events.options()).unwrap();
    assert_eq!(all_pages(&store, ListQuery { limit: 100, ..ListQuery::default() }).len(), 1_000);
    let built = began.elapsed();
    let events = events.take();
    let unreadable = |event: &&StoreEvent| matches!(event, StoreEvent::ThreadUnreadable { .. });
    assert_eq!(events.iter().filter(unreadable).count(), 2);
    let progress = |event: &&StoreEvent| matches!(event, StoreEvent::IndexProgress { .. });
    assert!(events.iter().filter(progress).count() > 10);
    let query = ListQuery { limit: 100, ..ListQuery::default() };
    store.list(&query).unwrap();
    let began = Instant::now();
    for _ in 0..10 {
        store.list(&query).unwrap();
    }
    println!("made in {built:?}, a page of 100 in {:?}", began.elapsed() / 10);
}

#[test]
fn journals_that_come_and_go_unseen_are_found_on_the_next_start() {
    let folder = folder();
    let events = Events::default();
    {
        let store = Store::open(folder.path(), events.options()).unwrap();
        for number in 1..=3 {
            make(&store, number, NOW, NOW, json!({}));
        }
        assert_eq!(numbers(&store, &ListQuery::default()), [3, 2, 1]);
    }
    let day = folder.path().join("threads/2026/11/15");
    let file = |number| day.join(format!("{}.jsonl", thread_id(number)));
    fs::remove_file(file(1)).unwrap();
    fs::rename(file(2), folder.path().join(format!("archived/{}.jsonl", thread_id(2)))).unwrap();
    let store = Store::open(folder.path(), events.options()).unwrap();
    assert_eq!(numbers(&store, &ListQuery::default()), [3]);
    assert_eq!(numbers(&store, &ListQuery { archived: true, ..ListQuery::default() }), [2]);
}
