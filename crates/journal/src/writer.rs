//! Appends to one journal. The caller gets numbers at once and is notified of durability later; all pending lines are
//! written together.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use parking_lot::Mutex;

use crate::batch::RecordBatch;
use crate::committer::{Commit, Committer};
use crate::damage::DamageReport;
use crate::disk::{JournalDisk, RealDisk};
use crate::error::JournalError;
use crate::journal_file::JournalFile;
use crate::lock::JournalLock;
use crate::queue::{AppendQueue, Appended, DurableListener};
use crate::reader::MAX_LINE;
use crate::scan::JournalScan;

#[derive(Debug, Clone)]
pub struct WriterOptions {
    pub committer: Committer,
    pub disk: Arc<dyn JournalDisk>,
    /// Larger records are refused.
    pub max_line: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { committer: Committer::default(), disk: Arc::new(RealDisk), max_line: MAX_LINE }
    }
}

/// The damage that opening found and repaired.
#[derive(Debug, Clone)]
pub struct Recovery {
    pub damage: DamageReport,
    /// Bytes of an incomplete last line that were truncated.
    pub cut: u64,
    pub next_seq: u64,
}

impl Recovery {
    pub(crate) fn of(scan: &JournalScan) -> Self {
        Self { damage: scan.damage.clone(), cut: scan.torn, next_seq: scan.next_seq }
    }
}

/// The only writer of one journal. Dropping it finishes pending appends and releases the lock.
#[derive(Debug)]
pub struct JournalWriter {
    shared: Arc<WriterState>,
    committer: Committer,
    max_line: usize,
}

#[derive(Debug)]
struct WriterState {
    path: PathBuf,
    queue: Mutex<AppendQueue>,
    file: Mutex<JournalFile>,
    /// Released after the file, whose end may still need truncating.
    lock: Mutex<Option<JournalLock>>,
}

impl JournalWriter {
    /// Creates a journal that starts with these records. `lock` is the lock file.
    pub fn create(
        path: &Path,
        lock: &Path,
        options: &WriterOptions,
        first: &RecordBatch,
    ) -> Result<Self, JournalError> {
        let mut lines = Vec::new();
        let next = first.encode(&mut lines, 1, options.max_line)?;
        Self::create_encoded(path, lock, options, &lines, next)
    }

    /// Creates a journal of these lines, completely or not at all. `next` is the number after the last of them.
    pub(crate) fn create_encoded(
        path: &Path,
        lock: &Path,
        options: &WriterOptions,
        lines: &[u8],
        next: u64,
    ) -> Result<Self, JournalError> {
        let lock = JournalLock::acquire(lock, path)?;
        if fs::symlink_metadata(path).is_ok() {
            return Err(JournalError::AlreadyExists { path: path.to_owned() });
        }
        let file = JournalFile::create(options.disk.clone(), path, options.max_line, lines, next - 1)?;
        Ok(Self::start(path, lock, options, file))
    }

    /// Opens an existing journal, repaired for appending.
    pub fn open(path: &Path, lock: &Path, options: &WriterOptions) -> Result<(Self, Recovery), JournalError> {
        let (writer, scan) = Self::open_scanned(path, lock, options)?;
        let recovery = Recovery::of(&scan);
        Ok((writer, recovery))
    }

    pub(crate) fn open_scanned(
        path: &Path,
        lock: &Path,
        options: &WriterOptions,
    ) -> Result<(Self, JournalScan), JournalError> {
        let lock = JournalLock::acquire(lock, path)?;
        let (file, scan) = JournalFile::open(options.disk.clone(), path, options.max_line)?;
        Ok((Self::start(path, lock, options, file), scan))
    }

    fn start(path: &Path, lock: JournalLock, options: &WriterOptions, file: JournalFile) -> Self {
        let shared = WriterState {
            path: path.to_owned(),
            queue: Mutex::new(AppendQueue::new(file.durable())),
            file: Mutex::new(file),
            lock: Mutex::new(Some(lock)),
        };
        let committer = options.committer.clone();
        Self { shared: Arc::new(shared), committer, max_line: options.max_line }
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Length of the file up to its last durable record; the rest may still be truncated.
    pub fn durable_length(&self) -> u64 {
        self.shared.queue.lock().durable().len
    }

    /// The number of the next record.
    pub fn next_seq(&self) -> u64 {
        self.shared.queue.lock().next_seq()
    }

    /// Appends without waiting. If the disk refuses, the next call returns the error.
    pub fn append(&self, batch: &RecordBatch) -> Result<Appended, JournalError> {
        self.enqueue(batch, None).map_err(|(error, _)| error)
    }

    /// Like [`JournalWriter::append`], with a passive listener that is notified of durability.
    pub(crate) fn append_noting(
        &self,
        batch: &RecordBatch,
        note: impl FnOnce(Appended) + Send + 'static,
    ) -> Result<Appended, JournalError> {
        self.enqueue(batch, Some(DurableListener::Notes(Box::new(note)))).map_err(|(error, _)| error)
    }

    /// Appends and calls `done` when the batch is durable, or failed. Called from a journal thread in the order of
    /// appending; must not block. After an error, none of the batch is in the journal, unless the disk keeps refusing
    /// until the writer is dropped.
    pub fn append_then(
        &self,
        batch: &RecordBatch,
        done: impl FnOnce(Result<Appended, JournalError>) + Send + 'static,
    ) {
        if let Err((error, Some(listener))) =
            self.enqueue(batch, Some(DurableListener::Waits(Box::new(done))))
        {
            listener.notify(Err(error));
        }
    }

    /// Appends and waits. Blocking.
    pub fn append_durable(&self, batch: &RecordBatch) -> Result<Appended, JournalError> {
        let (told, wait) = mpsc::sync_channel(1);
        self.append_then(batch, move |result| {
            let _ = told.send(result);
        });
        wait.recv().unwrap_or_else(|_| Err(self.shared.closed()))
    }

    /// Waits until everything appended so far is durable.
    pub fn flush(&self) -> Result<(), JournalError> {
        self.append_durable(&RecordBatch::at(0)).map(|_| ())
    }

    /// Finishes pending appends and releases the lock before it returns.
    pub fn close(self) -> Result<(), JournalError> {
        let result = self.flush();
        self.shared.queue.lock().close(self.shared.closed());
        self.shared.file.lock().close();
        let released = self.shared.lock.lock().take();
        drop(released);
        result
    }

    /// Returns the listener if the batch is refused.
    fn enqueue(
        &self,
        batch: &RecordBatch,
        listener: Option<DurableListener>,
    ) -> Result<Appended, (JournalError, Option<DurableListener>)> {
        let mut queue = self.shared.queue.lock();
        let appended = match queue.add(batch, self.max_line) {
            Ok(appended) => appended,
            Err(error) => return Err((error, listener)),
        };
        let at_once = listener.and_then(|listener| queue.listen(appended, listener));
        let sets_out = queue.set_out();
        drop(queue);
        if sets_out {
            self.committer.submit(self.shared.clone());
        }
        if let Some(listener) = at_once {
            listener.notify(Ok(appended));
        }
        Ok(appended)
    }
}

impl Commit for WriterState {
    fn commit(&self) -> bool {
        let mut file = self.file.lock();
        let mut load = self.queue.lock().take();
        let result = if load.lines.is_empty() { Ok(()) } else { file.append(&load.lines, load.end.seq) };
        self.queue.lock().settle(&mut load, &result);
        drop(file);
        load.notify(&result);
        // Only now may this journal be queued again, so that listeners are notified in order.
        self.queue.lock().rest()
    }
}

impl WriterState {
    fn closed(&self) -> JournalError {
        JournalError::Closed { path: self.path.clone() }
    }
}
