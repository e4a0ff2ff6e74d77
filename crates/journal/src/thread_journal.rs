//! The journal of one open thread, and its row in the index.

use std::path::Path;
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;
use protocol::ThreadId;

use crate::batch::RecordBatch;
use crate::error::JournalError;
use crate::facts::Fact;
use crate::index::{Index, SharedRow};
use crate::layout::ThreadKey;
use crate::queue::Appended;
use crate::row::ThreadRow;
use crate::writer::JournalWriter;

/// Appends to one thread. No other process can while this lives.
#[derive(Debug)]
pub struct ThreadJournal {
    writer: JournalWriter,
    listing: Arc<ListedThread>,
}

#[derive(Debug)]
struct ListedThread {
    key: ThreadKey,
    row: SharedRow,
    index: Arc<Index>,
}

impl ThreadJournal {
    pub(crate) fn new(writer: JournalWriter, key: ThreadKey, row: ThreadRow, index: Arc<Index>) -> Self {
        let row = Arc::new(Mutex::new(row));
        index.opened(&key, &row);
        Self { writer, listing: Arc::new(ListedThread { key, row, index }) }
    }

    pub fn thread_id(&self) -> ThreadId {
        self.listing.key.thread_id()
    }

    pub fn path(&self) -> &Path {
        self.writer.path()
    }

    /// The number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.writer.next_seq()
    }

    /// The row of the thread; everything in it is durable.
    pub fn row(&self) -> ThreadRow {
        self.listing.row.lock().clone()
    }

    /// Appends without waiting. If the disk refuses, the next call returns the error.
    pub fn append(&self, mut batch: RecordBatch) -> Result<Appended, JournalError> {
        let note = self.note(&mut batch);
        self.writer.append_noting(&batch, note)
    }

    /// Appends and calls `done` when the batch is durable, or failed. Called from a journal thread in the order of
    /// appending; must not block. After an error, none of the batch is in the journal.
    pub fn append_then(
        &self,
        mut batch: RecordBatch,
        done: impl FnOnce(Result<Appended, JournalError>) + Send + 'static,
    ) {
        let note = self.note(&mut batch);
        self.writer.append_then(&batch, move |result| {
            // Before the caller is notified: a list right after must show it.
            if let Ok(appended) = &result {
                note(*appended);
            }
            done(result);
        });
    }

    /// Appends and waits. Blocking.
    pub fn append_durable(&self, batch: RecordBatch) -> Result<Appended, JournalError> {
        let (told, wait) = mpsc::sync_channel(1);
        self.append_then(batch, move |result| {
            let _ = told.send(result);
        });
        let closed = || JournalError::Closed { path: self.path().to_owned() };
        wait.recv().unwrap_or_else(|_| Err(closed()))
    }

    /// Waits until everything appended so far is durable.
    pub fn flush(&self) -> Result<(), JournalError> {
        self.writer.flush()
    }

    /// Finishes pending appends and closes the thread before it returns.
    pub fn close(self) -> Result<(), JournalError> {
        let result = self.writer.close();
        self.listing.close();
        result
    }

    /// Returns a callback that updates the row when the batch is durable.
    fn note(&self, batch: &mut RecordBatch) -> impl FnOnce(Appended) + Send + 'static {
        let listing = self.listing.clone();
        let (facts, at_ms): (Vec<Fact>, i64) = (batch.take_facts(), batch.at_ms());
        move |appended| {
            let mut row = listing.row.lock();
            row.length = row.length.max(appended.length);
            for fact in facts {
                row.summary.apply(fact, at_ms);
            }
            drop(row);
            listing.index.note(&listing.key, &listing.row);
        }
    }
}

impl ListedThread {
    fn close(&self) {
        self.index.closed(&self.key, &self.row);
    }
}

impl Drop for ListedThread {
    fn drop(&mut self) {
        self.close();
    }
}
