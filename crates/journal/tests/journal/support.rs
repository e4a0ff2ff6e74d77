//! Records, folders, chance and a disk that fails, for all tests.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use oarlock_journal::{
    Committer, JournalDisk, RealDisk, RecordBatch, Stat, StoreEvent, StoreOptions, WriterOptions,
};
use protocol::{RolloutRecord, ThreadId};
use serde_json::{Value, json};

/// 2026-11-15T20:09:51.123Z
pub(crate) const NOW: i64 = 1_794_773_391_123;

pub(crate) fn record(json: Value) -> RolloutRecord {
    serde_json::from_value(json).unwrap()
}

pub(crate) fn batch(records: &[Value]) -> RecordBatch {
    batch_at(NOW, records)
}

pub(crate) fn batch_at(at_ms: i64, records: &[Value]) -> RecordBatch {
    let mut batch = RecordBatch::at(at_ms);
    for json in records {
        batch.push(&record(json.clone())).unwrap();
    }
    batch
}

pub(crate) fn thread_id(number: u64) -> ThreadId {
    ThreadId::new(format!("00000000-0000-4000-8000-{number:012x}"))
}

pub(crate) fn meta(thread: &ThreadId) -> Value {
    meta_with(thread, json!({}))
}

pub(crate) fn meta_with(thread: &ThreadId, more: Value) -> Value {
    let mut meta = json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": NOW, "cwd": "/work", "originator": "tests",
        "cliVersion": "0.1.0", "source": "vscode", "modelProvider": "acme", "model": "m-1",
    });
    for (key, value) in more.as_object().unwrap() {
        meta[key] = value.clone();
    }
    json!({"kind": "sessionMeta", "meta": meta})
}

pub(crate) fn user(turn: &str, text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let item = json!({"type": "userMessage", "id": format!("{turn}-u"), "content": content});
    json!({"kind": "threadItem", "turnId": turn, "item": item})
}

/// A distinguishable item for the model.
pub(crate) fn told(turn: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    let item = json!({"type": "message", "role": "assistant", "content": content});
    json!({"kind": "responseItem", "turnId": turn, "item": item})
}

pub(crate) fn started(turn: &str) -> Value {
    json!({"kind": "turnStarted", "turnId": turn, "atMs": NOW})
}

pub(crate) fn ended(turn: &str, status: &str) -> Value {
    json!({"kind": "turnEnded", "turnId": turn, "status": status, "atMs": NOW + 1_500})
}

/// A folder on a disk that syncs at once, where there is one.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn options() -> WriterOptions {
    WriterOptions { committer: Committer::with_threads(2), ..WriterOptions::default() }
}

/// How often to do what takes chance: more often when the environment says so.
pub(crate) fn rounds(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(default)
}

/// All events of a store.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<StoreEvent>>>);

impl Events {
    pub(crate) fn options(&self) -> StoreOptions {
        let events = self.clone();
        let observer = Arc::new(move |event: &StoreEvent| events.0.lock().unwrap().push(event.clone()));
        StoreOptions { writer: options(), observer, ..StoreOptions::default() }
    }

    pub(crate) fn take(&self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The same numbers for the same seed, everywhere.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit.max(1) as u64).unwrap()
    }
}

/// How a call fails.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) errno: i32,
    /// Writes do half of their work before they fail.
    pub(crate) is_partial: bool,
    /// The number of calls in a row that fail.
    pub(crate) calls: usize,
}

/// A disk whose calls fail from the Nth on, and that knows what a power cut would leave.
#[derive(Debug)]
pub(crate) struct FaultyDisk {
    fault: Fault,
    first: usize,
    calls: AtomicUsize,
    synced: Mutex<HashMap<(u64, u64), u64>>,
}

impl FaultyDisk {
    pub(crate) fn new(first: usize, fault: Fault) -> Self {
        Self { fault, first, calls: AtomicUsize::new(0), synced: Mutex::default() }
    }

    /// Whether the fault was reached at all.
    pub(crate) fn has_failed(&self) -> bool {
        self.calls.load(Ordering::SeqCst) > self.first
    }

    /// Takes from a file what was written and never synced.
    pub(crate) fn cut_power(&self, path: &Path) {
        let Ok(file) = File::options().write(true).open(path) else { return };
        let metadata = file.metadata().unwrap();
        let synced = self.synced.lock().unwrap().get(&(metadata.dev(), metadata.ino())).copied();
        if let Some(synced) = synced.filter(|synced| *synced < metadata.len()) {
            file.set_len(synced).unwrap();
        }
    }

    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let failing = self.first..self.first.saturating_add(self.fault.calls);
        if failing.contains(&call) { Err(io::Error::from_raw_os_error(self.fault.errno)) } else { Ok(()) }
    }

    fn mark(&self, file: &File, length: impl FnOnce(u64, Option<u64>) -> u64) {
        let metadata = file.metadata().unwrap();
        let inode = (metadata.dev(), metadata.ino());
        let mut synced = self.synced.lock().unwrap();
        let before = synced.get(&inode).copied();
        synced.insert(inode, length(metadata.len(), before));
    }
}

impl JournalDisk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        self.call()?;
        let file = RealDisk.create(path)?;
        self.mark(&file, |_, _| 0);
        Ok(file)
    }
    fn open(&self, path: &Path) -> io::Result<File> {
        self.call()?;
        RealDisk.open(path)
    }
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        match self.call() {
            Ok(()) => RealDisk.write(file, bytes),
            Err(error) => {
                if self.fault.is_partial {
                    RealDisk.write(file, &bytes[..bytes.len() / 2])?;
                }
                Err(error)
            }
        }
    }
    fn sync(&self, file: &File) -> io::Result<()> {
        self.call()?;
        self.mark(file, |length, _| length);
        Ok(())
    }
    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.call()?;
        RealDisk.truncate(file, length)?;
        self.mark(file, |length, before| before.map_or(length, |before| before.min(length)));
        Ok(())
    }
    fn stat(&self, file: &File) -> io::Result<Stat> {
        self.call()?;
        RealDisk.stat(file)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.rename(from, to)
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        self.call()
    }
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.call()?;
        RealDisk.make_dir(path)
    }
}

/// A journal file and its lock in a folder.
pub(crate) fn places(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("a.jsonl"), folder.join("a.lock"))
}
