//! Any bytes as the record of a thread: what is sound is read, the same each time, and the rest is reported.
#![no_main]

use std::fs;

use journal::{ReadOptions, read_history_file};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

fuzz_target!(|data: &[u8]| {
    let Ok(folder) = TempDir::new() else { return };
    let path = folder.path().join("thread.jsonl");
    if fs::write(&path, data).is_err() {
        return;
    }
    let read =
        || read_history_file(&path, &ReadOptions::default()).map(|(history, _)| format!("{history:?}"));
    assert_eq!(read().ok(), read().ok(), "read twice, understood in two ways");
    assert_eq!(fs::read(&path).ok().as_deref(), Some(data), "reading changed the file");
});
