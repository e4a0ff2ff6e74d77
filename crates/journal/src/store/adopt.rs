//! Threads of the reference: read in place, and copied into our own journal before the first write.

use std::path::Path;

use protocol::{RolloutRecord, SessionMeta, ThreadId, ThreadMetadataChange, TriState};

use super::{ReadThread, Store, make_folder};
use crate::batch::RecordBatch;
use crate::damage::DamageReport;
use crate::error::JournalError;
use crate::facts::Summary;
use crate::history::HistoryBuilder;
use crate::layout::{StoredJournal, ThreadKey};
use crate::record::{JournalEntry, Record};
use crate::reference::{self, ReferenceRollout, rollout_thread_id};
use crate::row::ThreadRow;
use crate::thread_journal::ThreadJournal;
use crate::writer::JournalWriter;

impl Store {
    /// The thread of a rollout in the reference's home, with what is needed to continue it. None if there is none, or
    /// if it has our own journal already.
    pub fn read_reference(
        &self,
        thread_id: &ThreadId,
    ) -> Result<Option<(ReadThread, ReferenceRollout)>, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        if self.path_of(&key).is_ok() {
            return Ok(None);
        }
        let Some(stored) = self.rollout_of(&key) else { return Ok(None) };
        let mut builder = HistoryBuilder::new(Some(key.thread_id()));
        let skipped = reference::read_each(&stored.path, Some(thread_id), stored.length, |entry| {
            builder.add(entry);
            Ok(())
        })?;
        if skipped > 0 {
            tracing::info!(path = %stored.path.display(), skipped, "lines of a rollout could not be understood");
        }
        let mut history = builder.finish();
        if !history.summary.is_identified() {
            return Err(JournalError::Headless { path: stored.path });
        }
        let row = self.row_of_rollout(&stored);
        history.summary.name.clone_from(&row.summary.name);
        let rollout = ReferenceRollout { path: stored.path, length: stored.length, row: row.clone() };
        Ok(Some((ReadThread { row, history, damage: DamageReport::default() }, rollout)))
    }

    /// Reads the durable records of a thread, ours or the reference's.
    pub fn read_entries(
        &self,
        thread_id: &ThreadId,
        mut each: impl FnMut(JournalEntry),
    ) -> Result<(), JournalError> {
        let row = self.summary(thread_id)?;
        if self.layout.is_own(&row.path) {
            let options = crate::ReadOptions { up_to: Some(row.length), ..crate::ReadOptions::default() };
            return crate::read_each(&row.path, &options, each).map(|_| ());
        }
        let read = reference::read_each(&row.path, Some(thread_id), row.length, |entry| {
            each(entry);
            Ok(())
        });
        read.map(|_| ())
    }

    /// Whether the file at this path is the record of that thread: our journal, or its original rollout.
    pub fn is_record(&self, thread_id: &ThreadId, path: &Path) -> Result<bool, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        let Ok(asked) = path.canonicalize() else { return Ok(false) };
        let is_it = |known: &Path| known.canonicalize().is_ok_and(|known| known == asked);
        let own = self.path_of(&key).ok().is_some_and(|known| is_it(&known));
        Ok(own || self.rollout_of(&key).is_some_and(|stored| is_it(&stored.path)))
    }

    /// Copies a rollout into our own journal, which ends with `then`. A crash leaves the whole copy or none.
    pub fn adopt(
        &self,
        rollout: &ReferenceRollout,
        then: RecordBatch,
    ) -> Result<ThreadJournal, JournalError> {
        let mut name = ThreadMetadataChange::default();
        if let Some(given) = &rollout.row.summary.name {
            name.name = TriState::Set(given.clone());
        }
        self.copy_rollout(&rollout.path, &rollout.row.thread_id, rollout.length, name, Some(then))
    }

    /// Creates our own journal from a rollout anywhere on the disk. The thread keeps its id.
    pub fn import_rollout(&self, path: &Path) -> Result<ThreadRow, JournalError> {
        let thread_id = rollout_thread_id(path)?;
        let journal = self.copy_rollout(path, &thread_id, u64::MAX, ThreadMetadataChange::default(), None)?;
        let row = journal.row();
        journal.close()?;
        Ok(row)
    }

    /// Called before a change to a closed thread.
    pub(super) fn adopt_before_edit(&self, thread_id: &ThreadId) -> Result<(), JournalError> {
        let Some((read, rollout)) = self.read_reference(thread_id)? else { return Ok(()) };
        let at_ms = read.row.summary.updated_at_ms;
        self.adopt(&rollout, RecordBatch::at(at_ms))?.close()?;
        if !read.row.is_archived {
            return Ok(());
        }
        // It was archived before it was copied.
        self.archive(thread_id).map(|_| ())
    }

    pub(super) fn reference_row(&self, key: &ThreadKey) -> Option<ThreadRow> {
        Some(self.row_of_rollout(&self.rollout_of(key)?))
    }

    fn row_of_rollout(&self, stored: &StoredJournal) -> ThreadRow {
        match self.known(&stored.key) {
            Some(row) if row.path == stored.path && row.length == stored.length => row,
            _ => self.index.reread(stored),
        }
    }

    fn rollout_of(&self, key: &ThreadKey) -> Option<StoredJournal> {
        self.layout.reference()?.find(key)
    }

    fn copy_rollout(
        &self,
        path: &Path,
        thread_id: &ThreadId,
        up_to: u64,
        change: ThreadMetadataChange,
        then: Option<RecordBatch>,
    ) -> Result<ThreadJournal, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        if let Some(path) = self.layout.find(&key) {
            return Err(JournalError::AlreadyExists { path });
        }
        let mut copy = JournalCopy::new(key.thread_id(), self.writer.max_line);
        reference::read_each(path, Some(thread_id), up_to, |entry| copy.entry(&entry))?;
        let Some(meta) = copy.meta.take() else {
            return Err(JournalError::Headless { path: path.to_owned() });
        };
        if change != ThreadMetadataChange::default() {
            copy.batch(RecordBatch::one(copy.at_ms, &RolloutRecord::Metadata { change })?)?;
        }
        if let Some(then) = then {
            copy.batch(then)?;
        }
        let to = self.layout.active(&key, key.made_at_ms().unwrap_or(meta.created_at_ms));
        if let Some(folder) = to.parent() {
            make_folder(&*self.writer.disk, folder)?;
        }
        let lock = self.layout.lock(&key);
        let writer = JournalWriter::create_encoded(&to, &lock, &self.writer, &copy.lines, copy.next)?;
        let row = self.row(&key, to, writer.durable_length(), &copy.summary, &DamageReport::default());
        Ok(ThreadJournal::new(writer, key, row, self.index.clone()))
    }
}

/// The lines of a journal that is created as a whole, and the thread's summary.
struct JournalCopy {
    lines: Vec<u8>,
    next: u64,
    at_ms: i64,
    max_line: usize,
    summary: Summary,
    meta: Option<Box<SessionMeta>>,
}

impl JournalCopy {
    fn new(thread_id: ThreadId, max_line: usize) -> Self {
        let summary = Summary::of_thread(Some(thread_id));
        Self { lines: Vec::new(), next: 1, at_ms: 0, max_line, summary, meta: None }
    }

    fn entry(&mut self, entry: &JournalEntry) -> Result<(), JournalError> {
        let Record::Known(record) = &entry.record else { return Ok(()) };
        if let RolloutRecord::SessionMeta { meta } = record {
            self.meta.get_or_insert_with(|| meta.clone());
        }
        self.batch(RecordBatch::one(entry.at_ms, record)?)
    }

    fn batch(&mut self, mut batch: RecordBatch) -> Result<(), JournalError> {
        self.at_ms = batch.at_ms();
        for fact in batch.take_facts() {
            self.summary.apply(fact, batch.at_ms());
        }
        self.next = batch.encode(&mut self.lines, self.next, self.max_line)?;
        Ok(())
    }
}
