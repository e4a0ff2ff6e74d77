//! File paths: `threads/YYYY/MM/DD/<thread>.jsonl`, `archived/<thread>.jsonl`, `locks/<thread>.lock`.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use protocol::ThreadId;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::error::JournalError;
use crate::reference::ReferenceHome;
use crate::time;

/// A thread id that is a valid UUID, and so safe in a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ThreadKey(String);

impl ThreadKey {
    pub(crate) fn parse(id: &str) -> Result<Self, JournalError> {
        // Only the form with hyphens has this length.
        match Uuid::try_parse(id).ok().filter(|_| id.len() == Hyphenated::LENGTH) {
            Some(uuid) => Ok(Self(uuid.to_string())),
            None => Err(JournalError::InvalidThreadId(id.chars().take(100).collect())),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn thread_id(&self) -> ThreadId {
        ThreadId::new(self.0.as_str())
    }

    /// The creation time, if the id contains one.
    pub(crate) fn made_at_ms(&self) -> Option<i64> {
        let is_timed = self.0.as_bytes()[14] == b'7';
        let digits = format!("{}{}", &self.0[..8], &self.0[9..13]);
        is_timed.then(|| i64::from_str_radix(&digits, 16).ok())?
    }
}

/// The program that wrote a file, which determines the format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum JournalFormat {
    #[default]
    Own,
    /// A rollout of the reference, which stores the names of threads elsewhere.
    Reference { name: Option<String> },
}

/// A journal on the disk.
#[derive(Debug, Clone)]
pub(crate) struct StoredJournal {
    pub(crate) key: ThreadKey,
    pub(crate) path: PathBuf,
    pub(crate) is_archived: bool,
    pub(crate) length: u64,
    /// When the file was last written.
    pub(crate) written_at_ms: i64,
    pub(crate) format: JournalFormat,
}

impl StoredJournal {
    pub(crate) fn of(key: ThreadKey, path: PathBuf, is_archived: bool, metadata: &fs::Metadata) -> Self {
        let written_at_ms =
            metadata.mtime().saturating_mul(1_000).saturating_add(metadata.mtime_nsec() / 1_000_000);
        let (length, format) = (metadata.len(), JournalFormat::Own);
        Self { key, path, is_archived, length, written_at_ms, format }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct StoreLayout {
    root: PathBuf,
    reference: Option<ReferenceHome>,
}

impl StoreLayout {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, reference: None }
    }

    /// Includes the rollouts in the reference's home.
    pub(crate) fn with_reference(self, home: Option<PathBuf>) -> Self {
        Self { reference: home.map(ReferenceHome::new), ..self }
    }

    pub(crate) fn reference(&self) -> Option<&ReferenceHome> {
        self.reference.as_ref()
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn threads(&self) -> PathBuf {
        self.root.join("threads")
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.root.join("archived")
    }

    pub(crate) fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.root.join("index.sqlite")
    }

    pub(crate) fn lock(&self, key: &ThreadKey) -> PathBuf {
        self.locks().join(format!("{}.lock", key.as_str()))
    }

    pub(crate) fn archived(&self, key: &ThreadKey) -> PathBuf {
        self.archive().join(file_name(key))
    }

    /// The path of a thread created at this time.
    pub(crate) fn active(&self, key: &ThreadKey, created_at_ms: i64) -> PathBuf {
        let (year, month, day) = time::utc_date(created_at_ms);
        self.threads().join(format!("{year:04}/{month:02}/{day:02}")).join(file_name(key))
    }

    /// Whether the path is one of our journals. The reference's home may be this folder too.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        path.starts_with(self.threads()) || path.starts_with(self.archive())
    }

    pub(crate) fn is_archived(&self, path: &Path) -> bool {
        path.starts_with(self.archive())
    }

    /// The path of a journal that is where its id says, and not in the archive too.
    pub(crate) fn path_from_id(&self, key: &ThreadKey) -> Option<PathBuf> {
        let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        let path = key.made_at_ms().map(|at_ms| self.active(key, at_ms))?;
        (is_there(&path) && !is_there(&self.archived(key))).then_some(path)
    }

    /// A journal in the archive, or where its id says.
    pub(crate) fn find_quickly(&self, key: &ThreadKey) -> Option<PathBuf> {
        let by_id = key.made_at_ms().map(|at_ms| self.active(key, at_ms));
        let quick = [Some(self.archived(key)), by_id].into_iter().flatten();
        quick.into_iter().find(|path| fs::symlink_metadata(path).is_ok())
    }

    /// Searches our own journals on the disk.
    pub(crate) fn find(&self, key: &ThreadKey) -> Option<PathBuf> {
        let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        self.find_quickly(key).or_else(|| {
            let days = self.days();
            days.into_iter().rev().map(|day| day.join(file_name(key))).find(is_there)
        })
    }

    /// All journals, oldest day first and the archive last; then the reference's rollouts, so that our copy takes
    /// precedence. Unreadable folders are skipped.
    pub(crate) fn walk(&self) -> Vec<StoredJournal> {
        let mut stored = Vec::new();
        for day in self.days() {
            collect(&day, false, &mut stored);
        }
        collect(&self.archive(), true, &mut stored);
        if let Some(reference) = &self.reference {
            reference.walk(&mut stored);
        }
        stored
    }

    fn days(&self) -> Vec<PathBuf> {
        let mut folders = vec![self.threads()];
        for _year_month_day in 0..3 {
            let mut inner = Vec::new();
            for folder in &folders {
                match subfolders(folder) {
                    Ok(found) => inner.extend(found),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => tracing::warn!(path = %folder.display(), %error, "cannot read a folder"),
                }
            }
            folders = inner;
        }
        folders
    }
}

fn file_name(key: &ThreadKey) -> String {
    format!("{}.jsonl", key.as_str())
}

/// Does not follow links.
fn subfolders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, is_archived: bool, stored: &mut Vec<StoredJournal>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let from = stored.len();
    for entry in entries.flatten() {
        let path = entry.path();
        let is_journal = path.extension().is_some_and(|extension| extension == "jsonl");
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let Ok(key) = ThreadKey::parse(stem) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if is_journal && metadata.is_file() {
            stored.push(StoredJournal::of(key, path, is_archived, &metadata));
        }
    }
    stored[from..].sort_by(|a, b| a.key.cmp(&b.key));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uuids_reach_a_path() {
        for id in [
            "",
            "../../../etc/passwd",
            "0198c2d4-7b1a-7c3e-9f00-0123456789a",
            "0198c2d4-7b1a-7c3e-9f00-0123456789ag",
            "0198c2d4/7b1a-7c3e-9f00-0123456789ab",
            "0198c2d4-7b1a-7c3e-9f00-0123456789\u{e9}",
        ] {
            assert!(matches!(ThreadKey::parse(id), Err(JournalError::InvalidThreadId(_))), "{id}");
        }
        let key = ThreadKey::parse("0198C2D4-7B1A-7C3E-9F00-0123456789AB").unwrap();
        assert_eq!(key.as_str(), "0198c2d4-7b1a-7c3e-9f00-0123456789ab");
        assert_eq!(key.made_at_ms(), Some(0x0198_c2d4_7b1a));
    }

    #[test]
    fn a_day_is_a_folder() {
        let layout = StoreLayout::new(PathBuf::from("/s"));
        let key = ThreadKey::parse("00000000-0000-4000-8000-000000000000").unwrap();
        assert_eq!(
            layout.active(&key, 1_794_773_391_123),
            Path::new("/s/threads/2026/11/15/00000000-0000-4000-8000-000000000000.jsonl")
        );
        assert_eq!(key.made_at_ms(), None);
    }
}
