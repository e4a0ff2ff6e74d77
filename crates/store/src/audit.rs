//! The audit trail: who decided, started and stopped what. Rows are added and never changed.

use serde_json::Value;

use crate::backend::SqlValue;
use crate::error::StoreError;
use crate::migrations::next_number;
use crate::store::TaskStore;

#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The authenticated name.
    pub who: String,
    /// Such as `operation/decide`.
    pub action: String,
    /// The id of the task, operation or placement.
    pub subject: String,
    pub details: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditRow {
    pub number: i64,
    pub at_ms: i64,
    pub entry: AuditEntry,
}

impl TaskStore {
    pub async fn add_audit(&self, entry: AuditEntry) -> Result<(), StoreError> {
        self.work(move |transaction| {
            let entry = entry.clone();
            Box::pin(async move {
                let (now, number) = (transaction.now_ms().await?, next_number(transaction, "audit").await?);
                let sql = "INSERT INTO audit (at, number, who, action, subject, details) VALUES ($1, $2, $3, $4, $5, $6)";
                let values = vec![
                    now.into(),
                    number.into(),
                    entry.who.into(),
                    entry.action.into(),
                    entry.subject.into(),
                    SqlValue::json(&entry.details)?,
                ];
                transaction.execute(sql, values).await.map(drop)
            })
        })
        .await
    }

    /// Entries after this number, oldest first.
    pub async fn audit(&self, after: i64, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        self.work(move |transaction| {
            Box::pin(async move {
                let sql = format!(
                    "SELECT number, at, who, action, subject, details FROM audit WHERE number > $1 \
                     ORDER BY number LIMIT {}",
                    limit.clamp(1, 10_000)
                );
                let rows = transaction.query(&sql, vec![after.into()]).await?;
                rows.iter()
                    .map(|row| {
                        let entry = AuditEntry {
                            who: row.text(2)?,
                            action: row.text(3)?,
                            subject: row.text(4)?,
                            details: row.json(5)?,
                        };
                        Ok(AuditRow { number: row.int(0)?, at_ms: row.int(1)?, entry })
                    })
                    .collect()
            })
        })
        .await
    }
}
