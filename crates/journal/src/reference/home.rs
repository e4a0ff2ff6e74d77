//! The reference's rollouts, and the names of its threads.

use std::collections::HashMap;
use std::fs;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::lines::{BoundedLines, NextLine};
use crate::layout::{JournalFormat, StoredJournal, ThreadKey};
use crate::reader::open_to_read;
use crate::time;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Limit of listed rollouts: the newest count.
const MAX_FILES: usize = 200_000;
/// Only the end of the file of names is read: the last name of a thread counts.
const MAX_NAMES: u64 = 16 * 1024 * 1024;
/// A longer line of that file is ignored.
const MAX_NAME_LINE: usize = 64 * 1024;

/// The home of the reference. Never written to.
#[derive(Debug, Clone)]
pub(crate) struct ReferenceHome {
    root: PathBuf,
}

/// The modification times of the folders in which new rollouts appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HomeSignature(Vec<(i64, i64)>);

#[derive(Deserialize)]
struct NamedThread {
    id: String,
    thread_name: String,
}

impl ReferenceHome {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }

    fn archive(&self) -> PathBuf {
        self.root.join("archived_sessions")
    }

    fn names_file(&self) -> PathBuf {
        self.root.join("session_index.jsonl")
    }

    /// Whether it exists.
    pub(crate) fn exists(&self) -> bool {
        is_folder(&self.sessions()) || is_folder(&self.archive())
    }

    /// Changes when a rollout was added, archived or named; needs only a few folder reads. Growing rollouts do not
    /// change it.
    pub(crate) fn signature(&self) -> HomeSignature {
        let mut places = vec![self.sessions(), self.archive(), self.names_file()];
        let mut newest = self.sessions();
        for _year_month_day in 0..3 {
            let Some(inner) = folders(&newest).pop() else { break };
            places.push(inner.clone());
            newest = inner;
        }
        let changed = |place: &PathBuf| fs::symlink_metadata(place).ok();
        let time = |found: fs::Metadata| (found.mtime(), found.mtime_nsec());
        HomeSignature(places.iter().map(|place| changed(place).map(time).unwrap_or_default()).collect())
    }

    /// Every rollout, active ones first. Skips files that are not regular or not named after a thread.
    pub(crate) fn walk(&self, stored: &mut Vec<StoredJournal>) {
        if !self.exists() {
            return;
        }
        let names = self.names();
        let limit = stored.len() + MAX_FILES;
        for day in self.days().iter().rev() {
            collect(day, false, &names, limit, stored);
        }
        collect(&self.archive(), true, &names, limit, stored);
    }

    /// The rollout of a thread.
    pub(crate) fn find(&self, key: &ThreadKey) -> Option<StoredJournal> {
        if !self.exists() {
            return None;
        }
        let (path, is_archived) = self.path_of(key)?;
        let metadata = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let name = self.names().remove(key.as_str());
        let format = JournalFormat::Reference { name };
        Some(StoredJournal { format, ..StoredJournal::of(key.clone(), path, is_archived, &metadata) })
    }

    /// Searches the days around the id's creation time, because folders use local time, then everywhere.
    fn path_of(&self, key: &ThreadKey) -> Option<(PathBuf, bool)> {
        let near = key.made_at_ms().into_iter().flat_map(|at_ms| [0, -DAY_MS, DAY_MS].map(|off| at_ms + off));
        let near = near.map(|at_ms| {
            let (year, month, day) = time::utc_date(at_ms);
            self.sessions().join(format!("{year:04}/{month:02}/{day:02}"))
        });
        let near: Vec<PathBuf> = near.collect();
        let found = near.iter().find_map(|day| file_of(day, key)).map(|path| (path, false));
        found
            .or_else(|| file_of(&self.archive(), key).map(|path| (path, true)))
            .or_else(|| self.days().iter().rev().find_map(|day| file_of(day, key)).map(|path| (path, false)))
    }

    fn days(&self) -> Vec<PathBuf> {
        let mut found = vec![self.sessions()];
        for _year_month_day in 0..3 {
            found = found.iter().flat_map(|folder| folders(folder)).collect();
        }
        found
    }

    /// The last name of every named thread.
    fn names(&self) -> HashMap<String, String> {
        let mut names = HashMap::new();
        let Ok(mut file) = open_to_read(&self.names_file()) else { return names };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if length > MAX_NAMES && file.seek(SeekFrom::Start(length - MAX_NAMES)).is_err() {
            return names;
        }
        let mut lines = BoundedLines::new(&file, MAX_NAMES, MAX_NAME_LINE);
        loop {
            match lines.next() {
                Ok(NextLine::Line(line)) => {
                    let Ok(named) = serde_json::from_slice::<NamedThread>(line) else { continue };
                    if !named.thread_name.trim().is_empty() {
                        names.insert(named.id, named.thread_name);
                    }
                }
                Ok(NextLine::TooLong) => {}
                Ok(NextLine::End) | Err(_) => return names,
            }
        }
    }
}

/// The thread of a rollout with this name: `rollout-2026-11-17T19-37-06-<uuid>.jsonl`.
pub(super) fn key_of(name: &str) -> Option<ThreadKey> {
    let stem = name.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    let (rest, id) = stem.split_at_checked(stem.len().checked_sub(36)?)?;
    rest.ends_with('-').then(|| ThreadKey::parse(id).ok())?
}

/// Links do not count.
fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut found: Vec<PathBuf> = inner.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn file_of(folder: &Path, key: &ThreadKey) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let is_it = |name: &std::ffi::OsStr| name.to_str().and_then(key_of).is_some_and(|found| found == *key);
    let mut fitting = entries.filter(|entry| is_it(&entry.file_name()));
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    fitting.find(is_file).map(|entry| entry.path())
}

fn collect(
    folder: &Path,
    is_archived: bool,
    names: &HashMap<String, String>,
    limit: usize,
    stored: &mut Vec<StoredJournal>,
) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if stored.len() >= limit {
            return tracing::warn!(folder = %folder.display(), "too many rollouts; the rest is not listed");
        }
        let Some(key) = entry.file_name().to_str().and_then(key_of) else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            let format = JournalFormat::Reference { name: names.get(key.as_str()).cloned() };
            stored.push(StoredJournal {
                format,
                ..StoredJournal::of(key, entry.path(), is_archived, &metadata)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollout_is_named_after_its_thread() {
        let id = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2";
        let found = key_of(&format!("rollout-2026-11-17T19-37-06-{id}.jsonl")).expect("a thread");
        assert_eq!(found.as_str(), id);
        for name in [
            format!("{id}.jsonl"),
            format!("rollout-{id}"),
            format!("rollout-x{id}.jsonl"),
            "rollout-2026.jsonl".to_owned(),
            format!("rollout-2026-11-17T19-37-06-{id}é.jsonl"),
            "rollout-é.jsonl".to_owned(),
        ] {
            assert!(key_of(&name).is_none(), "{name}");
        }
    }
}
