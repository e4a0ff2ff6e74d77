//! Inputs of earlier sessions, one JSON text to a line, for the owner's eyes alone.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// A file that has grown beyond this is cut to its end.
const MOST_BYTES: u64 = 1 << 20;
const KEPT_ENTRIES: usize = 500;

#[derive(Debug, Clone)]
pub struct HistoryFile(Option<PathBuf>);

impl HistoryFile {
    /// None keeps nothing.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(path)
    }

    pub(crate) fn read(&self) -> Vec<String> {
        let Some(path) = &self.0 else { return Vec::new() };
        let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
        let entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if text.len() as u64 > MOST_BYTES {
            self.rewrite(&entries[entries.len().saturating_sub(KEPT_ENTRIES)..]);
        }
        entries
    }

    /// An entry that cannot be kept is no reason to stop.
    pub(crate) fn add(&self, text: &str) {
        let Some(path) = &self.0 else { return };
        if let Some(folder) = path.parent() {
            let _ = fs::create_dir_all(folder);
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        if let Ok(mut file) = file {
            let _ = file.write_all(format!("{}\n", serde_json::Value::from(text)).as_bytes());
        }
    }

    fn rewrite(&self, entries: &[String]) {
        let Some(path) = &self.0 else { return };
        let beside = path.with_extension("new");
        let _ = fs::remove_file(&beside);
        let text: String =
            entries.iter().map(|text| format!("{}\n", serde_json::Value::from(text.as_str()))).collect();
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside);
        if file.is_ok_and(|mut file| file.write_all(text.as_bytes()).is_ok()) {
            let _ = fs::rename(&beside, path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn entries_come_back_and_nobody_else_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history.jsonl");
        let file = HistoryFile::new(Some(path.clone()));
        assert!(file.read().is_empty());
        file.add("one\ntwo");
        file.add("three");
        assert_eq!(file.read(), ["one\ntwo", "three"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_long_file_is_cut_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let file = HistoryFile::new(Some(path));
        let long = "x".repeat(1_100);
        (0..1_000).for_each(|number| file.add(&format!("{number} {long}")));
        assert_eq!(file.read().len(), 1_000);
        let kept = file.read();
        assert_eq!((kept.len(), &kept[0][..4]), (KEPT_ENTRIES, "500 "));
    }
}
