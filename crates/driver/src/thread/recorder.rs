//! A thread's record on the disk: made with the first turn, kept open while the thread is loaded.

use std::sync::Arc;

use journal::{JournalError, RecordBatch, ReferenceRollout, Store, ThreadHistory, ThreadJournal, ThreadRow};
use protocol::{RolloutRecord, SessionMeta};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use delegation::HostRecord;

/// Where a thread's records go.
#[derive(Debug)]
pub(crate) enum Recorder {
    /// Nothing is kept.
    Ephemeral,
    /// Nothing was said yet, so there is nothing to keep.
    Waiting {
        store: Arc<Store>,
        meta: Box<SessionMeta>,
    },
    /// A rollout of the reference, copied into a record of our own with the first write.
    Reference {
        store: Arc<Store>,
        rollout: Box<ReferenceRollout>,
    },
    Open(ThreadJournal),
    /// The host keeps it.
    Host(Box<HostRecord>),
}

impl Recorder {
    /// Returns when the records are durable, or says why they are not.
    pub(crate) async fn write(&mut self, at_ms: i64, records: &[RolloutRecord]) -> Result<(), JournalError> {
        match self {
            Self::Ephemeral => Ok(()),
            Self::Host(record) => record.write(at_ms, records).await,
            Self::Waiting { store, meta } => {
                let identity = RolloutRecord::SessionMeta { meta: meta.clone() };
                let batch = batch(at_ms, std::iter::once(&identity).chain(records))?;
                let (store, thread_id) = (Arc::clone(store), meta.thread_id.clone());
                // Makes folders and files and waits for the disk, which is no work for a thread that serves others.
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

    /// The next ordinal to be written, where the host keeps the record.
    pub(crate) fn next_ordinal(&self) -> Option<u64> {
        match self {
            Self::Host(record) => Some(record.next()),
            Self::Ephemeral | Self::Waiting { .. } | Self::Reference { .. } | Self::Open(_) => None,
        }
    }

    /// The history, where a host keeps the record. Else it is on the disk.
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

    /// The record at a host whose connection ended before it had acknowledged everything.
    pub(crate) fn cut_off(&self) -> Option<&HostRecord> {
        match self {
            Self::Host(record) if record.is_cut_off() => Some(record),
            _ => None,
        }
    }

    /// Finishes what was appended and lets go of the thread.
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
