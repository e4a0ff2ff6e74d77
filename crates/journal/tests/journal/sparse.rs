//! Files that claim to be far larger than what was ever written to them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use oarlock_journal::{DamageKind, ListQuery, Store, StoreOptions};

use crate::support::{batch, folder, meta, options, thread_id, told, user};

const FAR: u64 = 3 << 30;
/// Reading all the zeros takes many times as long, even on a fast machine.
const QUICK: Duration = Duration::from_millis(700);

fn store(root: &std::path::Path) -> Store {
    Store::open(root, StoreOptions { writer: options(), ..StoreOptions::default() }).unwrap()
}

/// A thread with a few records.
fn thread(store: &Store, number: u64) -> PathBuf {
    let id = thread_id(number);
    let journal = store.create(&id, batch(&[meta(&id)])).unwrap();
    for number in 0..10 {
        journal.append(batch(&[user("t", &format!("words {number}")), told("t", "answer")])).unwrap();
    }
    let path = journal.path().to_owned();
    drop(journal);
    path
}

fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let done = work();
    assert!(begun.elapsed() < QUICK, "{what} took {:?}", begun.elapsed());
    done
}

fn titles(store: &Store) -> usize {
    let query = ListQuery { model_providers: Vec::new(), ..ListQuery::default() };
    store.list(&query).unwrap().threads.len()
}

#[test]
fn a_hole_at_the_end_costs_nothing_and_is_cut_off() {
    let folder = folder();
    let root = folder.path().join("state");
    let path = {
        let store = store(&root);
        thread(&store, 2);
        thread(&store, 1)
    };
    // The store has written everything once it is dropped.
    let length = std::fs::metadata(&path).unwrap().len();
    File::options().write(true).open(&path).unwrap().set_len(FAR).unwrap();
    let store = store(&root);
    assert_eq!(quickly("listing", || titles(&store)), 2);
    let read = quickly("reading", || store.read(&thread_id(1)).unwrap());
    // The rest of the last block, and the hole.
    let cut = read.damage.named().iter().map(|place| match place.what {
        DamageKind::TornTail { bytes } => bytes,
        _ => panic!("{place}"),
    });
    assert_eq!(cut.sum::<u64>(), FAR - length);
    let resumed = quickly("opening", || store.resume(&thread_id(1)).unwrap());
    assert_eq!(std::fs::metadata(&path).unwrap().len(), length);
    resumed.journal.append(batch(&[told("t", "more")])).unwrap();
    drop(resumed);
    assert_eq!(store.read(&thread_id(1)).unwrap().damage.total(), 0);
}

#[test]
fn a_hole_in_the_middle_costs_nothing_and_what_is_behind_it_counts() {
    let folder = folder();
    let root = folder.path().join("state");
    let path = thread(&store(&root), 1);
    let whole = std::fs::read(&path).unwrap();
    // The last half of the file, gigabytes later and in the middle of a line.
    let cut = whole.len() / 2;
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(cut as u64).unwrap();
    file.write_all_at(&whole[cut..], FAR + 100).unwrap();
    let store = store(&root);
    assert_eq!(quickly("listing", || titles(&store)), 1);
    let read = quickly("reading", || store.read(&thread_id(1)).unwrap());
    let sound = whole.split(|byte| *byte == b'\n').count() - 2;
    let missing =
        read.damage.named().iter().filter(|place| matches!(place.what, DamageKind::Missing { .. })).count();
    assert_eq!(missing, 1, "one record was cut: {:?}", read.damage.named());
    let skipped = |what: &DamageKind| matches!(what, DamageKind::TooLong { bytes } if *bytes > FAR / 2);
    assert!(read.damage.named().iter().any(|place| skipped(&place.what)), "{:?}", read.damage.named());
    assert_eq!(
        quickly("opening", || store.resume(&thread_id(1)).unwrap()).recovery.next_seq as usize,
        sound + 2
    );
}
