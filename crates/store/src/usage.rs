//! Usage: one row per model request, and sums over them.

use protocol::ThreadId;

use crate::backend::{SqlValue, Transaction};
use crate::error::StoreError;
use crate::store::TaskStore;

/// One request to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub request_id: String,
    pub thread: ThreadId,
    pub root: ThreadId,
    pub at_ms: i64,
    pub agent_path: Vec<String>,
    pub purpose: String,
    pub provider: String,
    pub model: String,
    pub input_tokens: i64,
    pub cached_tokens: i64,
    pub output_tokens: i64,
    /// Millionths of the currency of the price table.
    pub cost_micros: i64,
    pub duration_ms: i64,
    pub outcome: String,
}

/// By what requests are summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageGroup {
    /// One sum of all.
    #[default]
    All,
    Task,
    Model,
    Provider,
    /// Days of UTC, named by the milliseconds at which they begin.
    Day,
    /// Minutes, named alike.
    Minute,
}

#[derive(Debug, Clone, Default)]
pub struct UsageFilter {
    /// A root, with all its children.
    pub root: Option<ThreadId>,
    pub since_ms: Option<i64>,
    pub group: UsageGroup,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageTotal {
    /// The task, model, provider or day; empty for the sum of all.
    pub key: String,
    pub requests: i64,
    pub input_tokens: i64,
    pub cached_tokens: i64,
    pub output_tokens: i64,
    pub cost_micros: i64,
}

async fn totals(
    transaction: &mut dyn Transaction,
    filter: &UsageFilter,
) -> Result<Vec<UsageTotal>, StoreError> {
    let key = match filter.group {
        UsageGroup::All => "''",
        UsageGroup::Task => "root_id",
        UsageGroup::Model => "model",
        UsageGroup::Provider => "provider",
        UsageGroup::Day => "CAST(at - at % 86400000 AS TEXT)",
        UsageGroup::Minute => "CAST(at - at % 60000 AS TEXT)",
    };
    let mut values = vec![SqlValue::Int(filter.since_ms.unwrap_or(i64::MIN))];
    let mut condition = "at >= $1".to_owned();
    if let Some(root) = &filter.root {
        values.push(root.as_str().into());
        condition.push_str(" AND root_id = $2");
    }
    // Sums of whole numbers are of another type in Postgres.
    let sum = |column: &str| format!("CAST(coalesce(sum({column}), 0) AS BIGINT)");
    let sql = format!(
        "SELECT {key} AS kind, count(*), {}, {}, {}, {} FROM usage WHERE {condition} GROUP BY kind ORDER BY kind",
        sum("input_tokens"),
        sum("cached_tokens"),
        sum("output_tokens"),
        sum("cost_micros")
    );
    let rows = transaction.query(&sql, values).await?;
    rows.iter()
        .map(|row| {
            Ok(UsageTotal {
                key: row.text(0)?,
                requests: row.int(1)?,
                input_tokens: row.int(2)?,
                cached_tokens: row.int(3)?,
                output_tokens: row.int(4)?,
                cost_micros: row.int(5)?,
            })
        })
        .collect()
}

impl TaskStore {
    /// Counted once per request id.
    pub async fn add_usage(&self, usage: UsageRow) -> Result<(), StoreError> {
        self.work_soon(move |transaction| {
            let usage = usage.clone();
            Box::pin(async move {
                let sql = "INSERT INTO usage (request_id, thread_id, root_id, at, agent_path, purpose, provider, model, \
                           input_tokens, cached_tokens, output_tokens, cost_micros, duration_ms, outcome) \
                           VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
                           ON CONFLICT (request_id) DO NOTHING";
                let values = vec![
                    usage.request_id.into(),
                    usage.thread.as_str().into(),
                    usage.root.as_str().into(),
                    usage.at_ms.into(),
                    SqlValue::json(&usage.agent_path)?,
                    usage.purpose.into(),
                    usage.provider.into(),
                    usage.model.into(),
                    usage.input_tokens.into(),
                    usage.cached_tokens.into(),
                    usage.output_tokens.into(),
                    usage.cost_micros.into(),
                    usage.duration_ms.into(),
                    usage.outcome.into(),
                ];
                transaction.execute(sql, values).await.map(drop)
            })
        })
        .await
    }

    pub async fn usage_totals(&self, filter: UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        self.work(move |transaction| {
            let filter = filter.clone();
            Box::pin(async move { totals(transaction, &filter).await })
        })
        .await
    }
}
