//! Copies records: of one thread into the record of another, and of an import into a record of our own.

use delegation::ImportedHistory;
use engine::turn_aborted;
use journal::{HistoryBuilder, JournalError, Record, RecordBatch, Store, ThreadHistory, ThreadJournal};
use protocol::{ResponseItem, RolloutRecord, SessionMeta, ThreadId, TurnStatus};

use crate::open::opened::HostAnswer;

/// Records per write.
const CHUNK: usize = 256;

/// The record of a thread to be forked.
pub(crate) struct CopiedRecord {
    pub(crate) history: ThreadHistory,
    pub(crate) records: Vec<(i64, Record)>,
    /// Facts about a history that the host sent.
    pub(crate) answer: HostAnswer,
    /// The provider of threads that choose none.
    pub(crate) configured_provider: String,
}

/// Reads a thread's durable records. A running turn is interrupted in the copy.
pub(crate) fn read_to_copy(
    store: &Store,
    source: &ThreadId,
    now_ms: i64,
) -> Result<(ThreadHistory, Vec<(i64, Record)>), JournalError> {
    let row = store.summary(source)?;
    // An archived thread must be unarchived first.
    if row.is_archived {
        return Err(JournalError::NotFound(source.to_string()));
    }
    let mut builder = HistoryBuilder::new(Some(source.clone()));
    let mut records = Vec::new();
    store.read_entries(source, |entry| {
        if is_copied(&entry.record) {
            records.push((entry.at_ms, entry.record.clone()));
        }
        builder.add(entry);
    })?;
    let mut history = builder.finish();
    records.extend(cut_off(&mut history, now_ms));
    Ok((history, records))
}

/// The copy of a record that the host sent.
pub(crate) fn copy_of_import(
    imported: ImportedHistory,
    now_ms: i64,
    configured_provider: String,
) -> CopiedRecord {
    let ImportedHistory { mut history, entries, fidelity, rebuilt, digest } = imported;
    let copied = entries.into_iter().filter(|entry| is_copied(&entry.record));
    let mut records: Vec<(i64, Record)> = copied.map(|entry| (entry.at_ms, entry.record)).collect();
    records.extend(cut_off(&mut history, now_ms));
    let answer = HostAnswer::of_import(fidelity, rebuilt, digest);
    CopiedRecord { history, records, answer, configured_provider }
}

/// Ends the unfinished turn. Returns the records of that.
fn cut_off(history: &mut ThreadHistory, now_ms: i64) -> Vec<(i64, Record)> {
    let Some(turn_id) = history.unfinished_turn.take() else { return Vec::new() };
    let marker = turn_aborted();
    history.model.push(marker.clone());
    let (status, error, at_ms) = (TurnStatus::Interrupted, None, now_ms);
    let ended = RolloutRecord::TurnEnded { turn_id: turn_id.clone(), status, error, at_ms };
    let noted = RolloutRecord::ResponseItem { turn_id: Some(turn_id), item: marker };
    vec![(now_ms, noted.into()), (now_ms, ended.into())]
}

/// Leaves out the source's identity, its name and its unfinished work.
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

/// Writes the record of a thread from another's records. Durable when it returns.
pub(crate) fn write_copy(
    store: &Store,
    meta: &SessionMeta,
    records: &[(i64, Record)],
) -> Result<ThreadJournal, JournalError> {
    let identity = RolloutRecord::SessionMeta { meta: Box::new(meta.clone()) };
    let journal = store.create(&meta.thread_id, RecordBatch::one(meta.created_at_ms, &identity)?)?;
    for chunk in records.chunks(CHUNK) {
        let at_ms = chunk.last().map_or(meta.created_at_ms, |(at_ms, _)| *at_ms);
        let mut batch = RecordBatch::at(at_ms);
        for (_, record) in chunk {
            batch.push_record(record)?;
        }
        journal.append_durable(batch)?;
    }
    Ok(journal)
}

/// The first records of a thread that starts with given items.
pub(crate) fn history_batch(
    at_ms: i64,
    meta: &SessionMeta,
    items: &[ResponseItem],
) -> Result<RecordBatch, JournalError> {
    let mut batch = RecordBatch::one(at_ms, &RolloutRecord::SessionMeta { meta: Box::new(meta.clone()) })?;
    for item in items {
        batch.push(&RolloutRecord::ResponseItem { turn_id: None, item: item.clone() })?;
    }
    Ok(batch)
}
