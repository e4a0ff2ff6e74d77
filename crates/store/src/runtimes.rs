//! The runtime of a task, so that whoever adopts the task can end it first.

use protocol::ThreadId;
use serde_json::Value;

use crate::backend::{RowLock, SqlValue, query_one};
use crate::error::StoreError;
use crate::leases::{self, TaskLease};
use crate::store::TaskStore;

impl TaskStore {
    /// Keeps how the process of a runtime is found again. Committed before the runtime gets the thread.
    pub async fn note_runtime(&self, lease: &TaskLease, reference: Value) -> Result<(), StoreError> {
        let (lease, expires) = (lease.clone(), self.leases_expire());
        self.work(move |transaction| {
            let (lease, reference) = (lease.clone(), reference.clone());
            Box::pin(async move {
                leases::check(transaction, &lease, RowLock::Share, expires).await?;
                let sql = "INSERT INTO runtimes (task_id, epoch, reference) VALUES ($1, $2, $3) \
                           ON CONFLICT (task_id) DO UPDATE SET epoch = excluded.epoch, reference = excluded.reference";
                let values =
                    vec![lease.task.as_str().into(), lease.epoch.into(), SqlValue::json(&reference)?];
                transaction.execute(sql, values).await.map(drop)
            })
        })
        .await
    }

    /// The last runtime that was started for a task and is not known to have ended.
    pub async fn runtime_of(&self, task: &ThreadId) -> Result<Option<Value>, StoreError> {
        let task = task.clone();
        self.work(move |transaction| {
            let task = task.clone();
            Box::pin(async move {
                let sql = "SELECT reference FROM runtimes WHERE task_id = $1";
                let row = query_one(transaction, sql, vec![task.as_str().into()]).await?;
                row.map(|row| row.json(0)).transpose()
            })
        })
        .await
    }

    /// It has ended.
    pub async fn forget_runtime(&self, lease: &TaskLease) -> Result<(), StoreError> {
        let (lease, expires) = (lease.clone(), self.leases_expire());
        self.work(move |transaction| {
            let lease = lease.clone();
            Box::pin(async move {
                leases::check(transaction, &lease, RowLock::Share, expires).await?;
                let sql = "DELETE FROM runtimes WHERE task_id = $1";
                transaction.execute(sql, vec![lease.task.as_str().into()]).await.map(drop)
            })
        })
        .await
    }
}
