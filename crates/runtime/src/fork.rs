//! Copying the past of one thread into the record of another.

use engine::turn_aborted;
use journal::{Batch, History, HistoryBuilder, JournalError, ReadOptions, Record, ThreadJournal};
use protocol::{ResponseItem, RolloutRecord, SessionMeta, ThreadId, TurnStatus};

use crate::error::RuntimeError;
use crate::runtime::{Runtime, blocking};

/// How much is handed to the disk at once.
const CHUNK: usize = 256;

/// What a copy is made of.
pub(crate) struct Copied {
    pub(crate) history: History,
    pub(crate) records: Vec<(i64, Record)>,
}

impl Runtime {
    /// Reads a thread up to what is durable. A turn that has not ended is cut off in the copy.
    pub(crate) async fn read_to_copy(&self, source: &ThreadId) -> Result<Copied, RuntimeError> {
        let (wanted, now_ms) = (source.clone(), self.inner.clock.stamp().now_ms);
        let read = self.on_disk(move |store| {
            let row = store.summary(&wanted)?;
            // An archived thread is out of reach until it is brought back.
            if row.is_archived {
                return Err(JournalError::NotFound(wanted.to_string()));
            }
            let options = ReadOptions { up_to: Some(row.length), ..ReadOptions::default() };
            let mut builder = HistoryBuilder::new(Some(wanted));
            let mut records = Vec::new();
            journal::read_each(&row.path, &options, |entry| {
                if is_copied(&entry.record) {
                    records.push((entry.at_ms, entry.record.clone()));
                }
                builder.add(entry);
            })?;
            let mut history = builder.finish();
            if let Some(turn_id) = history.unfinished_turn.take() {
                let marker = turn_aborted();
                history.model.push(marker.clone());
                let ended = RolloutRecord::TurnEnded {
                    turn_id: turn_id.clone(),
                    status: TurnStatus::Interrupted,
                    error: None,
                    at_ms: now_ms,
                };
                let noted = RolloutRecord::ResponseItem { turn_id: Some(turn_id), item: marker };
                records.extend([(now_ms, noted.into()), (now_ms, ended.into())]);
            }
            Ok(Copied { history, records })
        });
        match read.await? {
            Ok(copied) => Ok(copied),
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoRecord(source.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the record of the copy, durable when this returns.
    pub(crate) async fn write_copy(
        &self,
        meta: &SessionMeta,
        records: Vec<(i64, Record)>,
    ) -> Result<ThreadJournal, RuntimeError> {
        let (store, meta) = (self.store()?, meta.clone());
        let write = move || -> Result<ThreadJournal, JournalError> {
            let identity = RolloutRecord::SessionMeta { meta: Box::new(meta.clone()) };
            let journal = store.create(&meta.thread_id, Batch::one(meta.created_at_ms, &identity)?)?;
            for chunk in records.chunks(CHUNK) {
                let at_ms = chunk.last().map_or(meta.created_at_ms, |(at_ms, _)| *at_ms);
                let mut batch = Batch::at(at_ms);
                for (_, record) in chunk {
                    batch.push_record(record)?;
                }
                journal.append_durable(batch)?;
            }
            Ok(journal)
        };
        Ok(blocking(write).await??)
    }
}

/// Who the source was, and what it was called, is not part of its past. What it had not finished stays with it.
fn is_copied(record: &Record) -> bool {
    !matches!(
        record,
        Record::Known(
            RolloutRecord::SessionMeta { .. }
                | RolloutRecord::Metadata { .. }
                | RolloutRecord::Operation { .. }
        )
    )
}

/// The first records of a thread that begins with given items.
pub(crate) fn history_batch(
    at_ms: i64,
    meta: &SessionMeta,
    items: &[ResponseItem],
) -> Result<Batch, JournalError> {
    let mut batch = Batch::one(at_ms, &RolloutRecord::SessionMeta { meta: Box::new(meta.clone()) })?;
    for item in items {
        batch.push(&RolloutRecord::ResponseItem { turn_id: None, item: item.clone() })?;
    }
    Ok(batch)
}
