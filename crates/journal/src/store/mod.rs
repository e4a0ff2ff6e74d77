//! All threads of one state folder: creating, finding, reading and archiving their journals.

mod adopt;
mod delete;
mod edits;
mod records;
mod records_page;

use std::fs::{self, DirBuilder};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::ThreadId;

use crate::batch::RecordBatch;
use crate::damage::DamageReport;
use crate::disk::{JournalDisk, make_dirs};
use crate::error::JournalError;
use crate::event::Observer;
use crate::facts::Summary;
use crate::history::{HistoryBuilder, ThreadHistory};
use crate::index::{Index, ListQuery, ThreadPage};
use crate::layout::{StoreLayout, StoredJournal, ThreadKey};
use crate::reader::{self, ReadOptions, ReadSummary};
use crate::row::ThreadRow;
use crate::thread_journal::ThreadJournal;
use crate::two_readers::read_all_scanned;
use crate::writer::{JournalWriter, Recovery, WriterOptions};

pub use records_page::RecordsPage;

/// Enough for one or two thousand journals, and short enough for a waiting user.
const LIST_WAIT: Duration = Duration::from_millis(300);

#[derive(Clone)]
pub struct StoreOptions {
    pub writer: WriterOptions,
    /// Notified of damage and of index rebuilds.
    pub observer: Observer,
    /// How long a list waits for the index to read new journals. The rest is read in the background.
    pub list_wait: Duration,
    /// The home of the reference, whose threads are listed and read too.
    pub reference: Option<PathBuf>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let observer = |event: &crate::StoreEvent| tracing::info!("{event}");
        Self {
            writer: WriterOptions::default(),
            observer: Arc::new(observer),
            list_wait: LIST_WAIT,
            reference: None,
        }
    }
}

/// One state folder.
#[derive(Debug)]
pub struct Store {
    layout: StoreLayout,
    writer: WriterOptions,
    index: Arc<Index>,
}

/// A thread opened to be continued.
#[derive(Debug)]
pub struct Resumed {
    pub journal: ThreadJournal,
    pub history: ThreadHistory,
    pub recovery: Recovery,
}

/// A thread as it is on the disk.
#[derive(Debug)]
pub struct ReadThread {
    pub row: ThreadRow,
    pub history: ThreadHistory,
    pub damage: DamageReport,
}

impl Store {
    /// Creates the folder if it is missing. The index is compared with the journals on first use.
    pub fn open(root: &Path, options: StoreOptions) -> Result<Self, JournalError> {
        let storage = |error| JournalError::storage("create", root, error);
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(storage)?;
        // Links above the root are the user's own; below it, none is followed.
        let layout = StoreLayout::new(fs::canonicalize(root).map_err(storage)?);
        let layout = layout.with_reference(options.reference);
        for folder in [layout.threads(), layout.archive(), layout.locks()] {
            make_folder(&*options.writer.disk, &folder)?;
        }
        let index = Arc::new(Index::new(layout.clone(), options.observer, options.list_wait));
        Ok(Self { layout, writer: options.writer, index })
    }

    /// A store that creates no folder and works with a missing or read-only disk, for threads that store nothing here.
    /// Writing to it fails with the reason.
    pub fn detached(root: &Path, options: StoreOptions) -> Self {
        let layout = StoreLayout::new(fs::canonicalize(root).unwrap_or_else(|_| root.to_owned()));
        let index = Arc::new(Index::new(layout.clone(), options.observer, options.list_wait));
        Self { layout, writer: options.writer, index }
    }

    pub fn root(&self) -> &Path {
        self.layout.root()
    }

    /// Fails with the reason if nothing can be written here.
    pub fn check_writable(&self) -> Result<(), JournalError> {
        let probe = self.layout.locks().join(format!("{}.probe", std::process::id()));
        let mut options = fs::File::options();
        let probing = options.write(true).create(true).truncate(true).mode(0o600).open(&probe);
        let written = probing.and_then(|mut file| file.write_all(b"x"));
        let removed = fs::remove_file(&probe);
        written.and(removed).map_err(|error| JournalError::storage("write to", self.layout.root(), error))
    }

    /// The path of the journal of a thread created at this time.
    pub fn path_for(&self, thread_id: &ThreadId, created_at_ms: i64) -> Result<PathBuf, JournalError> {
        Ok(self.layout.active(&ThreadKey::parse(thread_id.as_str())?, created_at_ms))
    }

    /// Creates the journal of a new thread. It starts with `first`, which contains the thread's identity.
    pub fn create(
        &self,
        thread_id: &ThreadId,
        mut first: RecordBatch,
    ) -> Result<ThreadJournal, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        if let Some(path) = self.layout.find(&key) {
            return Err(JournalError::AlreadyExists { path });
        }
        let mut summary = Summary::of_thread(Some(key.thread_id()));
        for fact in first.take_facts() {
            summary.apply(fact, first.at_ms());
        }
        let path = self.layout.active(&key, summary.created_at_ms);
        if let Some(folder) = path.parent() {
            make_folder(&*self.writer.disk, folder)?;
        }
        let writer = JournalWriter::create(&path, &self.layout.lock(&key), &self.writer, &first)?;
        let row = self.row(&key, path, writer.durable_length(), &summary, &DamageReport::default());
        Ok(ThreadJournal::new(writer, key, row, self.index.clone()))
    }

    /// Opens a thread to continue it: takes its lock, repairs its end, reads its history.
    pub fn resume(&self, thread_id: &ThreadId) -> Result<Resumed, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        let path = self.path_of(&key)?;
        let (writer, scan) = JournalWriter::open_scanned(&path, &self.layout.lock(&key), &self.writer)?;
        let mut recovery = Recovery::of(&scan);
        let file = reader::open_to_read(&path)?;
        let mut builder = HistoryBuilder::new(Some(key.thread_id()));
        builder.expect(scan.lines.len());
        let read = read_all_scanned(&path, &file, scan, &mut |entry| builder.add(entry))?;
        recovery.damage = read.damage;
        let mut history = builder.finish();
        if !history.summary.is_identified() {
            let before = self.known(&key).map(|row| row.summary);
            before.iter().for_each(|before| history.summary.fill_from(before));
        }
        if !history.summary.is_identified() {
            return Err(JournalError::Headless { path });
        }
        let length = writer.durable_length();
        let row = self.row(&key, path, length, &history.summary, &recovery.damage);
        let journal = ThreadJournal::new(writer, key, row, self.index.clone());
        Ok(Resumed { journal, history, recovery })
    }

    /// Reads a thread without opening it; if it is being written, up to what is durable.
    pub fn read(&self, thread_id: &ThreadId) -> Result<ReadThread, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        let path = match self.path_of(&key) {
            Err(not_found @ JournalError::NotFound(_)) => {
                let read = self.read_reference(thread_id)?;
                return read.map(|(read, _)| read).ok_or(not_found);
            }
            path => path?,
        };
        let live = self.index.live(&key);
        let options =
            ReadOptions { up_to: live.as_ref().map(|row| row.length), max_line: self.writer.max_line };
        let (mut history, read) = read_history(&path, &key, &options)?;
        let before = self.known(&key);
        if let Some(before) = &before {
            history.summary.fill_from(&before.summary);
        }
        if read.records == 0 {
            return Err(JournalError::Unreadable { path });
        }
        let row = match live {
            Some(row) => row,
            None => self.row(&key, path, read.length, &history.summary, &read.damage),
        };
        if before.is_some_and(|before| before.is_damaged != row.is_damaged) {
            self.index.note(&key, &Arc::new(Mutex::new(row.clone())));
        }
        Ok(ReadThread { row, history, damage: read.damage })
    }

    /// The row of a thread, without reading all of its journal.
    pub fn summary(&self, thread_id: &ThreadId) -> Result<ThreadRow, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        let path = match self.path_of(&key) {
            Err(not_found @ JournalError::NotFound(_)) => {
                return self.reference_row(&key).ok_or(not_found);
            }
            path => path?,
        };
        let metadata = fs::symlink_metadata(&path);
        let metadata = metadata.map_err(|error| JournalError::storage("look at", &path, error))?;
        if let Some(row) = self.index.live(&key) {
            return Ok(row);
        }
        match self.known(&key) {
            Some(row) if row.path == path && row.length == metadata.len() => Ok(row),
            _ => {
                let is_archived = self.layout.is_archived(&path);
                Ok(self.index.reread(&StoredJournal::of(key, path, is_archived, &metadata)))
            }
        }
    }

    /// Until the index is complete a page can be shorter than requested, with a cursor to continue from.
    pub fn list(&self, query: &ListQuery) -> Result<ThreadPage, JournalError> {
        self.index.list(query)
    }

    /// Compares the whole index with the journals.
    pub fn refresh_index(&self) -> Result<(), JournalError> {
        self.index.refresh()
    }

    /// Deletes the index. It is rebuilt from the journals on next use.
    pub fn delete_index(&self) -> Result<(), JournalError> {
        self.index.delete()
    }

    /// The indexed row, if there is one: threads exist without an index too.
    fn known(&self, key: &ThreadKey) -> Option<ThreadRow> {
        let row = self.index.row(key);
        row.inspect_err(|error| tracing::warn!(%error, "the thread index does not answer")).ok()?
    }

    /// Most ids give the path of their journal. For others, the index is queried, which may have to be opened first,
    /// and trusted only if the file exists.
    fn path_of(&self, key: &ThreadKey) -> Result<PathBuf, JournalError> {
        if let Some(path) = self.layout.path_from_id(key) {
            return Ok(path);
        }
        let known = self.known(key).map(|row| row.path);
        let is_there = |path: &PathBuf| self.layout.is_own(path) && fs::symlink_metadata(path).is_ok();
        known
            .filter(is_there)
            .or_else(|| self.layout.find(key))
            .ok_or_else(|| JournalError::NotFound(key.as_str().to_owned()))
    }

    fn row(
        &self,
        key: &ThreadKey,
        path: PathBuf,
        length: u64,
        summary: &Summary,
        damage: &DamageReport,
    ) -> ThreadRow {
        ThreadRow {
            thread_id: key.thread_id(),
            is_archived: self.layout.is_archived(&path),
            path,
            is_damaged: damage.is_beyond_tail(),
            length,
            summary: summary.clone(),
        }
    }
}

/// The history in any journal file.
pub fn read_history_file(
    path: &Path,
    options: &ReadOptions,
) -> Result<(ThreadHistory, ReadSummary), JournalError> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    match ThreadKey::parse(stem) {
        Ok(key) => read_history(path, &key, options),
        Err(_) => build(path, HistoryBuilder::new(None), options),
    }
}

fn read_history(
    path: &Path,
    key: &ThreadKey,
    options: &ReadOptions,
) -> Result<(ThreadHistory, ReadSummary), JournalError> {
    build(path, HistoryBuilder::new(Some(key.thread_id())), options)
}

fn build(
    path: &Path,
    mut builder: HistoryBuilder,
    options: &ReadOptions,
) -> Result<(ThreadHistory, ReadSummary), JournalError> {
    let read = reader::read_each(path, options, |entry| builder.add(entry))?;
    Ok((builder.finish(), read))
}

fn make_folder(disk: &dyn JournalDisk, path: &Path) -> Result<(), JournalError> {
    make_dirs(disk, path).map_err(|error| JournalError::storage("create", path, error))
}

impl std::fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreOptions").field("writer", &self.writer).finish_non_exhaustive()
    }
}
