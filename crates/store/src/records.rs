//! The records of threads: appended under a lease, all or nothing, each at its ordinal.

use protocol::{OperationRecord, ThreadId};

use crate::audit;
use crate::backend::{RowLock, Transaction};
use crate::error::StoreError;
use crate::leases::{self, TaskLease};
use crate::operations;
use crate::store::TaskStore;
use crate::tasks;

/// A record to append, as it came over the wire.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// The JSON of the item, byte for byte.
    pub payload: String,
    /// Set when the record is a step of an operation, whose row then changes with it.
    pub operation: Option<OperationRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    pub ordinal: u64,
    pub payload: String,
}

/// An append that is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendReceipt {
    pub next_ordinal: u64,
    /// The remaining time of the lease when the append arrived; unset where leases do not expire.
    pub valid_for_ms: Option<i64>,
}

/// One append, whole.
#[derive(Debug, Clone)]
struct Append {
    lease: TaskLease,
    thread: ThreadId,
    expected: u64,
    records: Vec<NewRecord>,
}

async fn append(
    transaction: &mut dyn Transaction,
    append: &Append,
    expires: bool,
) -> Result<AppendReceipt, StoreError> {
    let Append { lease, thread, expected, records } = append;
    // Appends to children go on side by side; those to one thread come one after the other.
    let lock = if *thread == lease.task { RowLock::Update } else { RowLock::Share };
    let valid_for_ms = leases::check(transaction, lease, lock, expires).await?;
    let task = tasks::find_locked(transaction, thread, RowLock::Update).await?;
    let task =
        task.filter(|task| task.root == lease.task).ok_or_else(|| StoreError::UnknownTask(thread.clone()))?;
    let count = records.len() as u64;
    if task.next_ordinal != *expected {
        // The answer to the first try was lost, or the runtime sent it again: the same records are there already.
        let is_repeated = task.next_ordinal >= expected + count
            && is_stored(transaction, thread, *expected, records).await?;
        if is_repeated {
            return Ok(AppendReceipt { next_ordinal: expected + count, valid_for_ms });
        }
        let (thread, expected, next) = (thread.clone(), *expected, task.next_ordinal);
        return Err(StoreError::OrdinalConflict { thread, expected, next });
    }
    let now = transaction.now_ms().await?;
    let (mut bytes, mut entries) = (0, Vec::new());
    for (record, ordinal) in records.iter().zip(*expected..) {
        let sql = "INSERT INTO records (thread_id, ordinal, payload) VALUES ($1, $2, $3)";
        let values = vec![thread.as_str().into(), ordinal.into(), record.payload.as_str().into()];
        transaction.execute(sql, values).await?;
        if let Some(operation) = &record.operation {
            entries.extend(operations::project(transaction, &task, operation, now).await?);
        }
        bytes += record.payload.len() as u64;
    }
    let sql =
        "UPDATE tasks SET next_ordinal = $2, record_bytes = record_bytes + $3, updated_at = $4 WHERE id = $1";
    let next_ordinal = expected + count;
    let values = vec![thread.as_str().into(), next_ordinal.into(), bytes.into(), now.into()];
    transaction.execute(sql, values).await?;
    for entry in &entries {
        audit::write(transaction, entry).await?;
    }
    Ok(AppendReceipt { next_ordinal, valid_for_ms })
}

async fn is_stored(
    transaction: &mut dyn Transaction,
    thread: &ThreadId,
    from: u64,
    records: &[NewRecord],
) -> Result<bool, StoreError> {
    let limit = u32::try_from(records.len()).unwrap_or(u32::MAX);
    let stored = read(transaction, thread, from, limit).await?;
    let is_same = |(stored, new): (&StoredRecord, &NewRecord)| stored.payload == new.payload;
    Ok(stored.len() == records.len() && stored.iter().zip(records).all(is_same))
}

async fn read(
    transaction: &mut dyn Transaction,
    thread: &ThreadId,
    from: u64,
    limit: u32,
) -> Result<Vec<StoredRecord>, StoreError> {
    let sql = format!(
        "SELECT ordinal, payload FROM records WHERE thread_id = $1 AND ordinal >= $2 ORDER BY ordinal LIMIT {limit}"
    );
    let rows = transaction.query(&sql, vec![thread.as_str().into(), from.into()]).await?;
    rows.iter().map(|row| Ok(StoredRecord { ordinal: row.unsigned(0)?, payload: row.text(1)? })).collect()
}

impl TaskStore {
    /// Commits all of the records or none: for the lease's epoch, and if the first is the next one. Repeating an append
    /// that was committed gives the same answer.
    pub async fn append(
        &self,
        lease: &TaskLease,
        thread: &ThreadId,
        expected: u64,
        records: Vec<NewRecord>,
    ) -> Result<AppendReceipt, StoreError> {
        let expires = self.leases_expire();
        let order = Append { lease: lease.clone(), thread: thread.clone(), expected, records };
        self.work(move |transaction| {
            let order = order.clone();
            Box::pin(async move { append(transaction, &order, expires).await })
        })
        .await
    }

    /// Records from this ordinal on, in order, at most so many.
    pub async fn records(
        &self,
        thread: &ThreadId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<StoredRecord>, StoreError> {
        let thread = thread.clone();
        self.work(move |transaction| {
            let thread = thread.clone();
            Box::pin(async move { read(transaction, &thread, from, limit).await })
        })
        .await
    }
}
