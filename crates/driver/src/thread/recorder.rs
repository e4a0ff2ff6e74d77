//! A thread's record on the disk: created with the first turn, open while the thread is loaded.

use std::sync::Arc;

use journal::{JournalError, RecordBatch, ReferenceRollout, Store, ThreadHistory, ThreadJournal, ThreadRow};
use protocol::{RolloutRecord, SessionMeta};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use delegation::HostRecord;

/// The destination of a thread's records.
#[derive(Debug)]
pub(crate) enum Recorder {
    /// Nothing is stored.
    Ephemeral,
    /// The thread is still empty, so nothing is stored yet.
    Waiting {
        store: Arc<Store>,
        meta: Box<SessionMeta>,
    },
    /// A rollout of the reference, copied into our own record with the first write.
    Reference {
        store: Arc<Store>,
        rollout: Box<ReferenceRollout>,
    },
    Open(ThreadJournal),
    /// The host keeps the record.
    Host(Box<HostRecord>),
}

impl Recorder {
    /// Returns when the records are durable, or with the error.
    pub(crate) async fn write(&mut self, at_ms: i64, records: &[RolloutRecord]) -> Result<(), JournalError> {
        match self {
            Self::Ephemeral => Ok(()),
            Self::Host(record) => record.write(at_ms, records).await,
            Self::Waiting { store, meta } => {
                let identity = RolloutRecord::SessionMeta { meta: meta.clone() };
                let batch = batch(at_ms, std::iter::once(&identity).chain(records))?;
                let (store, thread_id) = (Arc::clone(store), meta.thread_id.clone());
                // Creates folders and files and waits for the disk, so it must not run on an async worker.
                let made = spawn_blocking(move || store.create(&thread_id, batch)).await;
                *self = Self::Open(made.unwrap_or_else(|stopped| Err(interrupted(&stopped)))?);
                Ok(())
            }
            Self::Reference { store, rollout } => {
                let batch = batch(at_ms, records)?;
                let (store, rollout) = (Arc::clone(store), rollout.clone());
                let copied = spawn_blocking(move || store.adopt(&rollout, batch)).await;
                *self = Self::Open(copied.unwrap_or_else(|stopped| Err(interrupted(&stopped)))?);
                Ok(())
            }
            Self::Open(journal) => {
                let (told, wait) = oneshot::channel();
                journal.append_then(batch(at_ms, records)?, move |result| {
                    let _ = told.send(result);
                });
                let closed = || JournalError::Closed { path: journal.path().to_owned() };
                wait.await.unwrap_or_else(|_| Err(closed())).map(|_| ())
            }
        }
    }

    /// The thread's row in the index; none before its first record.
    pub(crate) fn row(&self) -> Option<ThreadRow> {
        match self {
            Self::Open(journal) => Some(journal.row()),
            Self::Reference { rollout, .. } => Some(rollout.row().clone()),
            Self::Ephemeral | Self::Waiting { .. } | Self::Host(_) => None,
        }
    }

    /// The next ordinal, if the host keeps the record.
    pub(crate) fn next_ordinal(&self) -> Option<u64> {
        match self {
            Self::Host(record) => Some(record.next()),
            Self::Ephemeral | Self::Waiting { .. } | Self::Reference { .. } | Self::Open(_) => None,
        }
    }

    /// The history, if a host keeps the record. Otherwise it is on the disk.
    pub(crate) fn read(&self) -> Option<ThreadHistory> {
        match self {
            Self::Host(record) => Some(record.read()),
            Self::Ephemeral | Self::Waiting { .. } | Self::Reference { .. } | Self::Open(_) => None,
        }
    }

    /// Whether a turn could be resumed from it.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self, Self::Open(_) | Self::Reference { .. } | Self::Host(_))
    }

    /// Undoes the last write: its command was refused.
    pub(crate) fn take_back(&mut self) {
        if let Self::Host(record) = self {
            record.take_back();
        }
    }

    /// The host's record, if its connection ended before everything was acknowledged.
    pub(crate) fn cut_off(&self) -> Option<&HostRecord> {
        match self {
            Self::Host(record) if record.is_cut_off() => Some(record),
            _ => None,
        }
    }

    /// Finishes pending writes and closes the journal.
    pub(crate) async fn close(self) {
        if let Self::Open(journal) = self
            && let Ok(Err(error)) = spawn_blocking(move || journal.close()).await
        {
            tracing::warn!(%error, "a journal did not close cleanly");
        }
    }
}

fn batch<'a>(
    at_ms: i64,
    records: impl IntoIterator<Item = &'a RolloutRecord>,
) -> Result<RecordBatch, JournalError> {
    let mut batch = RecordBatch::at(at_ms);
    for record in records {
        batch.push(record)?;
    }
    Ok(batch)
}

fn interrupted(stopped: &tokio::task::JoinError) -> JournalError {
    tracing::error!(%stopped, "making a journal was cut short");
    JournalError::Closed { path: std::path::PathBuf::new() }
}
