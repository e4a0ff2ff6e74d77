//! Deleted threads: what is deleted with them, and when they stay.

use oarlock_journal::{JournalError, ListQuery, Store};
use protocol::ThreadSourceKind;
use serde_json::{Value, json};

use crate::support::{Events, NOW, batch_at, folder, meta_with, started, thread_id, user};

fn make(store: &Store, number: u64, more: Value) {
    let thread = thread_id(number);
    let journal = store.create(&thread, batch_at(NOW, &[meta_with(&thread, more)])).unwrap();
    journal.append(batch_at(NOW, &[started("a"), user("a", "hello")])).unwrap();
    journal.close().unwrap();
}

fn child_of(number: u64) -> Value {
    let spawned = json!({"thread_spawn": {"parent_thread_id": thread_id(number), "depth": 1,
        "agent_nickname": null, "agent_role": null}});
    json!({"source": {"subAgent": spawned}})
}

fn stored(store: &Store) -> Vec<String> {
    let kinds = vec![ThreadSourceKind::Cli, ThreadSourceKind::Vscode, ThreadSourceKind::SubAgent];
    let mut ids = Vec::new();
    for archived in [false, true] {
        let query = ListQuery { archived, limit: 100, source_kinds: kinds.clone(), ..ListQuery::default() };
        ids.extend(store.list(&query).unwrap().threads.iter().map(|row| row.thread_id.to_string()));
    }
    ids.sort();
    ids
}

fn ids(numbers: &[u64]) -> Vec<String> {
    numbers.iter().map(|number| thread_id(*number).to_string()).collect()
}

/// 1 has the children 2 and 3, 3 has 4; 5 is alone.
fn family(store: &Store) {
    make(store, 1, json!({"source": "cli"}));
    make(store, 2, child_of(1));
    make(store, 3, child_of(1));
    make(store, 4, child_of(3));
    make(store, 5, json!({"source": "cli"}));
}

#[test]
fn a_thread_is_deleted_with_its_descendants() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    family(&store);
    store.archive(&thread_id(2)).unwrap();
    let mut deleted: Vec<String> =
        store.delete(&thread_id(1)).unwrap().iter().map(|row| row.thread_id.to_string()).collect();
    assert_eq!(deleted[0], thread_id(1).to_string());
    deleted.sort();
    assert_eq!(deleted, ids(&[1, 2, 3, 4]));
    assert_eq!(stored(&store), ids(&[5]));
    for number in 1..=4 {
        assert!(matches!(store.summary(&thread_id(number)), Err(JournalError::NotFound(_))), "{number}");
    }
    assert!(matches!(store.delete(&thread_id(1)), Err(JournalError::NotFound(_))));
    drop(store);
    // It does not reappear with the index of another process, or with a new one.
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    assert_eq!(stored(&store), ids(&[5]));
    store.delete_index().unwrap();
    assert_eq!(stored(&store), ids(&[5]));
}

#[test]
fn a_family_with_an_open_member_is_not_deleted() {
    let folder = folder();
    let store = Store::open(folder.path(), Events::default().options()).unwrap();
    family(&store);
    let open = store.resume(&thread_id(4)).unwrap();
    assert!(matches!(store.delete(&thread_id(1)), Err(JournalError::Locked { .. })));
    assert_eq!(stored(&store), ids(&[1, 2, 3, 4, 5]));
    open.journal.close().unwrap();
    assert_eq!(store.delete(&thread_id(1)).unwrap().len(), 4);
    assert_eq!(stored(&store), ids(&[5]));
}
