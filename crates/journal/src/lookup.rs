//! Reads stored threads without side effects: no lock, no index, no new folder.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use protocol::ThreadId;

use crate::error::JournalError;
use crate::layout::{StoreLayout, StoredJournal, ThreadKey};
use crate::reader::ReadOptions;
use crate::row::ThreadRow;
use crate::store::{ReadThread, read_history_file};

/// Reads a thread of the state folder `root`; also one that another process is writing, up to the last complete line.
pub fn look_up(root: &Path, thread_id: &ThreadId) -> Result<ReadThread, JournalError> {
    let key = ThreadKey::parse(thread_id.as_str())?;
    let layout = StoreLayout::new(root.to_owned());
    match layout.find(&key) {
        Some(path) => read(&layout, &key, &path),
        None => Err(JournalError::NotFound(key.as_str().to_owned())),
    }
}

/// The most recently written thread that `fits`. Ignores the archive and unreadable threads.
pub fn look_up_last(root: &Path, fits: impl Fn(&ThreadRow) -> bool) -> Option<ReadThread> {
    let layout = StoreLayout::new(root.to_owned());
    let written =
        |stored: &StoredJournal| fs::symlink_metadata(&stored.path).and_then(|found| found.modified());
    let mut stored: Vec<(SystemTime, StoredJournal)> = layout
        .walk()
        .into_iter()
        .filter(|stored| !stored.is_archived)
        .map(|stored| (written(&stored).unwrap_or(SystemTime::UNIX_EPOCH), stored))
        .collect();
    // Ids start with their creation time, which breaks ties.
    stored.sort_by(|(at, one), (other_at, other)| (other_at, &other.key).cmp(&(at, &one.key)));
    let read = |(_, stored): (_, StoredJournal)| read(&layout, &stored.key, &stored.path).ok();
    stored.into_iter().filter_map(read).find(|read| fits(&read.row))
}

fn read(layout: &StoreLayout, key: &ThreadKey, path: &Path) -> Result<ReadThread, JournalError> {
    let (history, read) = read_history_file(path, &ReadOptions::default())?;
    if read.records == 0 {
        return Err(JournalError::Unreadable { path: path.to_owned() });
    }
    let row = ThreadRow {
        thread_id: key.thread_id(),
        is_archived: layout.is_archived(path),
        path: path.to_owned(),
        is_damaged: read.damage.is_beyond_tail(),
        length: read.length,
        summary: history.summary.clone(),
    };
    Ok(ReadThread { row, history, damage: read.damage })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::time::Duration;

    use protocol::{RolloutRecord, SessionMeta};

    use super::*;
    use crate::{RecordBatch, Store, StoreOptions};

    const IDS: [&str; 3] = [
        "019a8b3c-0000-7000-8000-000000000001",
        "019a8b3c-0000-7000-8000-000000000002",
        "019a8b3c-0000-7000-8000-000000000003",
    ];

    fn store(root: &Path, id: &str, cwd: &str, age: u64) {
        let store = Store::open(root, StoreOptions::default()).expect("a store");
        let meta: SessionMeta = serde_json::from_value(serde_json::json!({
            "threadId": id, "sessionId": id, "createdAtMs": 1, "cwd": cwd, "originator": "test",
            "cliVersion": "1", "source": "cli", "modelProvider": "p",
        }))
        .expect("an identity");
        let first = RolloutRecord::SessionMeta { meta: Box::new(meta) };
        let journal =
            store.create(&ThreadId::new(id), RecordBatch::one(1, &first).expect("a batch")).expect("made");
        let path = journal.path().to_owned();
        drop(journal);
        let at = SystemTime::now() - Duration::from_secs(age);
        File::options().write(true).open(path).expect("there").set_modified(at).expect("set");
    }

    #[test]
    fn the_last_that_fits_is_found_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("there").join("state");
        assert!(look_up_last(&root, |_| true).is_none());
        assert!(matches!(look_up(&root, &ThreadId::new(IDS[0])), Err(JournalError::NotFound(_))));
        assert!(!root.exists(), "looking makes no folder");
        for (id, cwd, age) in [(IDS[0], "/a", 30), (IDS[1], "/b", 10), (IDS[2], "/a", 20)] {
            store(&root, id, cwd, age);
        }
        let found = |cwd: &str| {
            let fits = |row: &ThreadRow| row.summary.cwd.as_deref() == Some(cwd);
            look_up_last(&root, fits).map(|read| read.row.thread_id.to_string())
        };
        assert_eq!(found("/a").as_deref(), Some(IDS[2]));
        assert_eq!(found("/b").as_deref(), Some(IDS[1]));
        assert_eq!(found("/c"), None);
        let archive = Store::open(&root, StoreOptions::default()).expect("a store");
        archive.archive(&ThreadId::new(IDS[2])).expect("archived");
        assert_eq!(found("/a").as_deref(), Some(IDS[0]));
        let read = look_up(&root, &ThreadId::new(IDS[2])).expect("also in the archive");
        assert!(read.row.is_archived);
    }
}
