//! The audit trail: who decided, started and stopped what. An entry is committed with the change that it is about, and is
//! never changed afterwards.

use protocol::ThreadId;
use serde_json::Value;

use crate::backend::{SqlRow, SqlValue, Transaction};
use crate::error::StoreError;
use crate::inbox::{self, InboxEntry, InboxPut};
use crate::migrations::next_number;
use crate::placement_rows::{self, PlacementRow};
use crate::store::TaskStore;
use crate::tasks::{self, NewTask, TaskChange, TaskCreation, TaskRow};

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The authenticated name.
    pub who: String,
    /// Such as `operation/decide`.
    pub action: String,
    /// The id of the task, turn, operation or placement.
    pub subject: String,
    /// The root of the task that it belongs to.
    pub task: Option<ThreadId>,
    pub details: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    /// Counts entries without a gap.
    pub number: i64,
    pub at_ms: i64,
    pub entry: AuditEntry,
}

#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// A root.
    pub task: Option<ThreadId>,
    pub since_ms: Option<i64>,
    /// Older than the entry with this number.
    pub before: Option<i64>,
    pub limit: u32,
}

/// Entries, newest first, and the number before which the next page begins.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditPage {
    pub rows: Vec<AuditRow>,
    pub before: Option<i64>,
}

/// The last statement of its transaction: whoever else writes an entry waits for the commit.
pub(crate) async fn write(transaction: &mut dyn Transaction, entry: &AuditEntry) -> Result<(), StoreError> {
    let (now, number) = (transaction.now_ms().await?, next_number(transaction, "audit").await?);
    let sql = "INSERT INTO audit (at, number, who, action, subject, task_id, details) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let values = vec![
        now.into(),
        number.into(),
        entry.who.as_str().into(),
        entry.action.as_str().into(),
        entry.subject.as_str().into(),
        entry.task.as_ref().map(|task| task.as_str().to_owned()).into(),
        SqlValue::json(&entry.details)?,
    ];
    transaction.execute(sql, values).await.map(drop)
}

fn load(row: &SqlRow) -> Result<AuditRow, StoreError> {
    let entry = AuditEntry {
        who: row.text(2)?,
        action: row.text(3)?,
        subject: row.text(4)?,
        task: row.maybe_text(5)?.map(ThreadId::new),
        details: row.json(6)?,
    };
    Ok(AuditRow { number: row.int(0)?, at_ms: row.int(1)?, entry })
}

async fn list(transaction: &mut dyn Transaction, filter: &AuditFilter) -> Result<AuditPage, StoreError> {
    let mut values: Vec<SqlValue> =
        vec![filter.before.unwrap_or(i64::MAX).into(), filter.since_ms.unwrap_or(i64::MIN).into()];
    let mut of_task = "";
    if let Some(task) = &filter.task {
        values.push(task.as_str().into());
        of_task = " AND task_id = $3";
    }
    let limit = filter.limit.clamp(1, 1_000);
    let sql = format!(
        "SELECT number, at, who, action, subject, task_id, details FROM audit \
         WHERE number < $1 AND at >= $2{of_task} ORDER BY number DESC LIMIT {}",
        limit + 1
    );
    let found = transaction.query(&sql, values).await?;
    let mut rows = found.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let before = rows.last().filter(|_| has_more).map(|row| row.number);
    Ok(AuditPage { rows, before })
}

/// A change with its entry: both are committed, or neither is. A change that turns out to be none has no entry.
#[derive(Debug)]
pub struct AuditedChange {
    store: TaskStore,
    entry: AuditEntry,
}

impl AuditedChange {
    /// For something that is about to be done outside the store.
    pub async fn note(self) -> Result<(), StoreError> {
        let entry = self.entry;
        self.store
            .work(move |transaction| {
                let entry = entry.clone();
                Box::pin(async move { write(transaction, &entry).await })
            })
            .await
    }

    /// As [`TaskStore::create_task`].
    pub async fn create_task(self, new: NewTask) -> Result<TaskCreation, StoreError> {
        let entry = self.entry;
        self.store
            .work(move |transaction| {
                let (new, entry) = (new.clone(), entry.clone());
                Box::pin(async move {
                    let created = tasks::create(transaction, &new).await?;
                    if matches!(created, TaskCreation::Created(_)) {
                        write(transaction, &entry).await?;
                    }
                    Ok(created)
                })
            })
            .await
    }

    /// As [`TaskStore::update_task`].
    pub async fn update_task(self, id: &ThreadId, change: TaskChange) -> Result<TaskRow, StoreError> {
        let (id, entry) = (id.clone(), self.entry);
        self.store
            .work(move |transaction| {
                let (id, change, entry) = (id.clone(), change.clone(), entry.clone());
                Box::pin(async move {
                    let row = tasks::update(transaction, &id, &change).await?;
                    write(transaction, &entry).await?;
                    Ok(row)
                })
            })
            .await
    }

    /// As [`TaskStore::delete_task`].
    pub async fn delete_task(self, id: &ThreadId) -> Result<bool, StoreError> {
        let (id, entry) = (id.clone(), self.entry);
        self.store
            .work(move |transaction| {
                let (id, entry) = (id.clone(), entry.clone());
                Box::pin(async move {
                    let was_there = tasks::delete(transaction, &id).await?;
                    if was_there {
                        write(transaction, &entry).await?;
                    }
                    Ok(was_there)
                })
            })
            .await
    }

    /// As [`TaskStore::put_input`].
    pub async fn put_input(self, input: InboxEntry) -> Result<InboxPut, StoreError> {
        let entry = self.entry;
        self.store
            .work(move |transaction| {
                let (input, entry) = (input.clone(), entry.clone());
                Box::pin(async move {
                    let put = inbox::put(transaction, &input).await?;
                    if matches!(put, InboxPut::Received(_)) {
                        write(transaction, &entry).await?;
                    }
                    Ok(put)
                })
            })
            .await
    }

    /// As [`TaskStore::put_placement`].
    pub async fn put_placement(self, placement: PlacementRow) -> Result<(), StoreError> {
        let entry = self.entry;
        self.store
            .work(move |transaction| {
                let (placement, entry) = (placement.clone(), entry.clone());
                Box::pin(async move {
                    placement_rows::put(transaction, placement).await?;
                    write(transaction, &entry).await
                })
            })
            .await
    }

    /// As [`TaskStore::delete_placement`].
    pub async fn delete_placement(self, id: &str) -> Result<bool, StoreError> {
        let (id, entry) = (id.to_owned(), self.entry);
        self.store
            .work(move |transaction| {
                let (id, entry) = (id.clone(), entry.clone());
                Box::pin(async move {
                    let was_there = placement_rows::delete(transaction, &id).await?;
                    if was_there {
                        write(transaction, &entry).await?;
                    }
                    Ok(was_there)
                })
            })
            .await
    }
}

impl TaskStore {
    /// The next change with an entry in the audit trail.
    pub fn audited(&self, entry: AuditEntry) -> AuditedChange {
        AuditedChange { store: self.clone(), entry }
    }

    pub async fn audit(&self, filter: AuditFilter) -> Result<AuditPage, StoreError> {
        self.work(move |transaction| {
            let filter = filter.clone();
            Box::pin(async move { list(transaction, &filter).await })
        })
        .await
    }

    /// Removes entries from before this time, the oldest first: what stays has no gaps. Gives their number.
    pub async fn forget_audit(&self, before_ms: i64) -> Result<u64, StoreError> {
        self.work(move |transaction| {
            Box::pin(async move {
                let sql = "DELETE FROM audit WHERE number < \
                           coalesce((SELECT min(number) FROM audit WHERE at >= $1), $2)";
                transaction.execute(sql, vec![before_ms.into(), i64::MAX.into()]).await
            })
        })
        .await
    }
}
