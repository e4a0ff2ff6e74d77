//! Changes to closed threads: their metadata, and whether they are archived.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{RolloutRecord, ThreadId, ThreadMetadataChange};

use super::{Store, make_folder};
use crate::batch::RecordBatch;
use crate::error::JournalError;
use crate::layout::ThreadKey;
use crate::lock::JournalLock;
use crate::row::ThreadRow;
use crate::thread_journal::ThreadJournal;
use crate::writer::JournalWriter;

impl Store {
    /// Changes a closed thread's metadata: first in its journal, then in the index.
    pub fn edit(
        &self,
        thread_id: &ThreadId,
        change: ThreadMetadataChange,
        at_ms: i64,
    ) -> Result<ThreadRow, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        self.adopt_before_edit(thread_id)?;
        let mut row = self.summary(thread_id)?;
        let writer = JournalWriter::open(&row.path, &self.layout.lock(&key), &self.writer)?.0;
        if writer.durable_length() != row.length {
            // Another process wrote before we had the lock, or an incomplete line was truncated.
            row = self.summary(thread_id)?;
        }
        let journal = ThreadJournal::new(writer, key, row, self.index.clone());
        journal.append_durable(RecordBatch::one(at_ms, &RolloutRecord::Metadata { change })?)?;
        let row = journal.row();
        journal.close()?;
        Ok(row)
    }

    /// Archives a closed thread. The location of the file marks it as archived.
    pub fn archive(&self, thread_id: &ThreadId) -> Result<ThreadRow, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        if self.summary(thread_id)?.is_archived {
            return Err(JournalError::NotFound(key.as_str().to_owned()));
        }
        self.adopt_before_edit(thread_id)?;
        let row = self.summary(thread_id)?;
        if row.is_archived {
            return Err(JournalError::NotFound(key.as_str().to_owned()));
        }
        let _lock = JournalLock::acquire(&self.layout.lock(&key), &row.path)?;
        let to = self.layout.archived(&key);
        self.move_journal(&key, row, to, true)
    }

    /// Unarchives a thread and marks it as just used.
    pub fn unarchive(&self, thread_id: &ThreadId, at_ms: i64) -> Result<ThreadRow, JournalError> {
        let key = ThreadKey::parse(thread_id.as_str())?;
        if !self.summary(thread_id)?.is_archived {
            return Err(JournalError::NotFound(key.as_str().to_owned()));
        }
        // An empty change, for its time.
        let row = match self.edit(thread_id, ThreadMetadataChange::default(), at_ms) {
            Err(JournalError::Unreadable { .. }) => self.summary(thread_id)?,
            result => result?,
        };
        let _lock = JournalLock::acquire(&self.layout.lock(&key), &row.path)?;
        let to = self.layout.active(&key, row.summary.created_at_ms);
        self.move_journal(&key, row, to, false)
    }

    fn move_journal(
        &self,
        key: &ThreadKey,
        mut row: ThreadRow,
        to: PathBuf,
        is_archived: bool,
    ) -> Result<ThreadRow, JournalError> {
        let disk = &*self.writer.disk;
        let folders = [to.parent().map(Path::to_owned), row.path.parent().map(Path::to_owned)];
        if row.path != to {
            if let [Some(folder), _] = &folders {
                make_folder(disk, folder)?;
            }
            disk.rename(&row.path, &to).map_err(|error| JournalError::storage("move", &row.path, error))?;
        }
        // Linked to the new place before it is removed from the old one: a crash may show it twice, never not at all.
        for folder in folders.iter().flatten() {
            disk.sync_dir(folder).map_err(|error| JournalError::storage("sync", folder, error))?;
        }
        row.path = to;
        row.is_archived = is_archived;
        self.index.note(key, &Arc::new(Mutex::new(row.clone())));
        Ok(row)
    }
}
