//! Counts over the whole store, for those who watch it.

use crate::backend::query_one;
use crate::error::StoreError;
use crate::store::TaskStore;

/// How many there are of what.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCounts {
    /// Root tasks that are not archived, by the word of their state.
    pub tasks: Vec<(String, i64)>,
    /// Operations that wait for a decision.
    pub waiting: i64,
    /// When the oldest of them was proposed.
    pub oldest_waiting_ms: Option<i64>,
    /// By backend and state.
    pub placements: Vec<((String, String), i64)>,
}

impl TaskStore {
    pub async fn counts(&self) -> Result<StoreCounts, StoreError> {
        self.work(|transaction| {
            Box::pin(async move {
                let sql = "SELECT state, count(*) FROM tasks WHERE parent_id IS NULL AND archived = 0 \
                           GROUP BY state ORDER BY state";
                let rows = transaction.query(sql, Vec::new()).await?;
                let tasks = rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?)));
                let tasks = tasks.collect::<Result<Vec<_>, StoreError>>()?;
                let sql =
                    "SELECT count(*), min(created_at) FROM operations WHERE state IN ('proposed', 'unknown')";
                let row = query_one(transaction, sql, Vec::new()).await?;
                let (waiting, oldest_waiting_ms) = match row {
                    Some(row) => (row.int(0)?, row.maybe_int(1)?),
                    None => (0, None),
                };
                let sql = "SELECT backend, state, count(*) FROM placements GROUP BY backend, state \
                           ORDER BY backend, state";
                let rows = transaction.query(sql, Vec::new()).await?;
                let placements = rows.iter().map(|row| Ok(((row.text(0)?, row.text(1)?), row.int(2)?)));
                let placements = placements.collect::<Result<Vec<_>, StoreError>>()?;
                Ok(StoreCounts { tasks, waiting, oldest_waiting_ms, placements })
            })
        })
        .await
    }
}
