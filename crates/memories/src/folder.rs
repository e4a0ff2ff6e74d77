//! The stored memories: in the state folder, which no command can read or write, for their owner only. Notes from one
//! provider's threads go only to that provider, so each has its own folder.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use config::{ConfigError, Home, write_secret_file};
use data_encoding::HEXLOWER;
use protocol::ThreadId;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::answer::MOST_MEMORY_BYTES;
use crate::prompts::guidance;

const FOLDER: &str = "memories";
const PAGE: &str = "MEMORY.md";
const CONSOLIDATED: &str = "consolidated.json";
/// Limit of a file.
const MOST_FILE_BYTES: u64 = 1 << 20;
/// Limit of threads with notes.
const MOST_THREADS: usize = 4_096;

/// The notes of one thread, and the state of its extraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThreadMemory {
    pub thread_id: ThreadId,
    pub cwd: String,
    /// The time of the thread's last change when it was processed.
    pub source_updated_at_ms: i64,
    pub attempted_at_ms: i64,
    pub failures: u32,
    pub generated_at_ms: i64,
    pub raw_memory: Option<String>,
    pub summary: Option<String>,
    /// How often answers cited them, and when last.
    pub usage_count: u32,
    pub last_usage_ms: Option<i64>,
    /// The thread chose to leave no notes.
    pub is_opted_out: bool,
}

impl Default for ThreadMemory {
    fn default() -> Self {
        Self::new(ThreadId::new(""))
    }
}

impl ThreadMemory {
    pub fn new(thread_id: ThreadId) -> Self {
        Self {
            thread_id,
            cwd: String::new(),
            source_updated_at_ms: 0,
            attempted_at_ms: 0,
            failures: 0,
            generated_at_ms: 0,
            raw_memory: None,
            summary: None,
            usage_count: 0,
            last_usage_ms: None,
            is_opted_out: false,
        }
    }

    pub(crate) fn last_used_ms(&self) -> i64 {
        self.last_usage_ms.unwrap_or(self.generated_at_ms)
    }
}

/// The memories of the threads of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFolder {
    home: Home,
    folder: PathBuf,
}

impl MemoryFolder {
    /// Touches no file.
    pub fn of(home: &Home, provider: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let name = match (1..=64).contains(&provider.len()) && provider.chars().all(is_plain) {
            true => provider.to_owned(),
            // Plain names have no dot, so no two providers share a folder.
            false => format!("p.{}", HEXLOWER.encode(digest(&SHA256, provider.as_bytes()).as_ref())),
        };
        Self { home: home.clone(), folder: home.state().join(FOLDER).join(name) }
    }

    /// The summary of the memories for a thread, if there are any.
    pub fn guidance(&self) -> Option<String> {
        self.page().map(|page| guidance(&page))
    }

    pub(crate) fn page(&self) -> Option<String> {
        let mut page = read(&self.folder.join(PAGE)).ok()?;
        page.truncate(page.floor_char_boundary(MOST_MEMORY_BYTES));
        (!page.trim().is_empty()).then_some(page)
    }

    /// Without a page, later threads get no memories.
    pub(crate) fn write_page(&self, page: &str) -> Result<(), ConfigError> {
        match page.trim().is_empty() {
            true => self.remove(&self.folder.join(PAGE)),
            false => write_secret_file(&self.home, &self.folder.join(PAGE), page.as_bytes()),
        }
    }

    /// The threads in the page, with the times of their last changes.
    pub(crate) fn consolidated(&self) -> BTreeMap<ThreadId, i64> {
        read(&self.folder.join(CONSOLIDATED))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    pub(crate) fn write_consolidated(&self, threads: &BTreeMap<ThreadId, i64>) -> Result<(), ConfigError> {
        self.write_json(&self.folder.join(CONSOLIDATED), threads)
    }

    /// The notes of all threads. An unreadable file counts as missing.
    pub(crate) fn threads(&self) -> BTreeMap<ThreadId, ThreadMemory> {
        let Ok(entries) = fs::read_dir(self.folder.join("threads")) else { return BTreeMap::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        let ids = names.filter_map(|name| Some(ThreadId::new(name.to_str()?.strip_suffix(".json")?)));
        let memories = ids.filter_map(|id| Some((id.clone(), self.thread(&id)?)));
        memories.take(MOST_THREADS).collect()
    }

    pub(crate) fn thread(&self, id: &ThreadId) -> Option<ThreadMemory> {
        let memory: ThreadMemory = serde_json::from_str(&read(&self.thread_file(id)?).ok()?).ok()?;
        (memory.thread_id == *id).then_some(memory)
    }

    pub(crate) fn write_thread(&self, memory: &ThreadMemory) -> Result<(), ConfigError> {
        match self.thread_file(&memory.thread_id) {
            Some(file) => self.write_json(&file, memory),
            None => Ok(()),
        }
    }

    pub(crate) fn remove_thread(&self, id: &ThreadId) -> Result<(), ConfigError> {
        self.thread_file(id).map_or(Ok(()), |file| self.remove(&file))
    }

    /// Records that the thread leaves no notes, and removes earlier ones.
    pub fn opt_out(&self, id: &ThreadId) -> Result<(), ConfigError> {
        if self.thread(id).is_some_and(|memory| memory.is_opted_out) {
            return Ok(());
        }
        self.write_thread(&ThreadMemory { is_opted_out: true, ..ThreadMemory::new(id.clone()) })
    }

    /// Counts the notes that an answer cited. Ignores ids of threads without notes.
    pub fn note_usage(&self, cited: &[String], now_ms: i64) -> Result<(), ConfigError> {
        for id in cited {
            if let Some(mut memory) = self.thread(&ThreadId::new(id.as_str())) {
                memory.usage_count = memory.usage_count.saturating_add(1);
                memory.last_usage_ms = Some(now_ms);
                self.write_thread(&memory)?;
            }
        }
        Ok(())
    }

    /// Locked by one process at a time while it makes memories. `None` if another holds it.
    pub(crate) fn lock(&self) -> Result<Option<File>, ConfigError> {
        let path = self.folder.join("lock");
        write_missing_folder(&self.home, &path)?;
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(|error| ConfigError::write(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(ConfigError::write(&path, error)),
        }
    }

    /// `None` for an invalid thread id: a model can cite anything.
    fn thread_file(&self, id: &ThreadId) -> Option<PathBuf> {
        let is_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        let is_plain = id.as_str().len() == 36 && id.as_str().chars().all(is_id);
        is_plain.then(|| self.folder.join("threads").join(format!("{id}.json")))
    }

    fn write_json(&self, file: &Path, value: &impl Serialize) -> Result<(), ConfigError> {
        let text =
            serde_json::to_vec(value).map_err(|error| ConfigError::write(file, io::Error::other(error)))?;
        write_secret_file(&self.home, file, &text)
    }

    fn remove(&self, file: &Path) -> Result<(), ConfigError> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ConfigError::write(file, error)),
            _ => Ok(()),
        }
    }
}

/// Makes the folder of a file where it is missing.
fn write_missing_folder(home: &Home, file: &Path) -> Result<(), ConfigError> {
    match fs::exists(file) {
        Ok(true) => Ok(()),
        _ => write_secret_file(home, file, b""),
    }
}

/// Reads a regular file, no link, up to the limit.
fn read(path: &Path) -> io::Result<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("no plain file"));
    }
    let mut text = String::new();
    file.take(MOST_FILE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ID: &str = "0199c0de-0000-7000-8000-000000000000";

    fn place() -> (tempfile::TempDir, MemoryFolder) {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = MemoryFolder::of(&Home::at(dir.path().join("home")), "openai");
        (dir, folder)
    }

    #[test]
    fn files_are_their_owners_alone() {
        let (_dir, folder) = place();
        assert_eq!(folder.guidance(), None);
        folder.write_page("uses make").expect("written");
        folder.write_thread(&ThreadMemory::new(ThreadId::new(ID))).expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&folder.folder.join(PAGE)), 0o600);
        assert_eq!(mode(&folder.folder.join("threads").join(format!("{ID}.json"))), 0o600);
        assert_eq!(mode(&folder.folder), 0o700);
        assert!(folder.guidance().expect("some").contains("1 uses make\n"));
        folder.write_page(" \n").expect("removed");
        assert_eq!(folder.guidance(), None);
    }

    #[test]
    fn a_cited_id_is_no_path() {
        let (_dir, folder) = place();
        let cited = ["../../../x", "", ID, &"a".repeat(36)].map(str::to_owned);
        folder.note_usage(&cited, 5).expect("nothing to write");
        assert!(!folder.folder.exists(), "nobody has notes");
        folder.write_thread(&ThreadMemory::new(ThreadId::new(ID))).expect("written");
        folder.note_usage(&cited, 7).expect("written");
        let memory = folder.thread(&ThreadId::new(ID)).expect("there");
        assert_eq!((memory.usage_count, memory.last_usage_ms), (1, Some(7)));
        assert_eq!(folder.threads().len(), 1);
    }

    #[test]
    fn a_thread_that_opts_out_loses_its_notes() {
        let (_dir, folder) = place();
        let notes = ThreadMemory { raw_memory: Some("x".to_owned()), ..ThreadMemory::new(ThreadId::new(ID)) };
        folder.write_thread(&notes).expect("written");
        folder.opt_out(&notes.thread_id).expect("written");
        let memory = folder.thread(&notes.thread_id).expect("there");
        assert!(memory.is_opted_out && memory.raw_memory.is_none());
    }

    #[test]
    fn one_process_at_a_time_makes_memories() {
        let (_dir, folder) = place();
        let held = folder.lock().expect("a lock");
        assert!(held.is_some());
        assert!(folder.lock().expect("no error").is_none());
        drop(held);
        assert!(folder.lock().expect("no error").is_some());
    }

    #[test]
    fn every_provider_has_a_folder_of_its_own() {
        let home = Home::at("/h");
        let folders = ["openai", "a/../b", "", "Openai", "."].map(|id| MemoryFolder::of(&home, id).folder);
        for (at, folder) in folders.iter().enumerate() {
            assert_eq!(folder.parent(), folders[0].parent(), "{folder:?}");
            assert!(!folders[..at].contains(folder), "{folder:?}");
        }
    }

    #[test]
    fn links_are_not_followed() {
        let (dir, folder) = place();
        folder.write_page("x").expect("written");
        let secret = dir.path().join("secret");
        fs::write(&secret, "secret").expect("written");
        fs::remove_file(folder.folder.join(PAGE)).expect("removed");
        std::os::unix::fs::symlink(&secret, folder.folder.join(PAGE)).expect("linked");
        assert_eq!(folder.guidance(), None);
    }
}
