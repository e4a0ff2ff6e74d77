//! Placements: where runtimes run, as far as the store knows.

use serde_json::Value;

use crate::backend::{SqlRow, SqlValue, Transaction, query_one};
use crate::error::StoreError;
use crate::store::TaskStore;

#[derive(Debug, Clone, PartialEq)]
pub struct PlacementRow {
    pub id: String,
    pub backend: String,
    pub site: String,
    pub state: String,
    /// How its backend finds it again. Without secrets.
    pub reference: Value,
    /// Digest of the last snapshot.
    pub snapshot: Option<String>,
    pub created_at_ms: i64,
    pub used_at_ms: i64,
}

const COLUMNS: &str = "id, backend, site, state, reference, snapshot, created_at, used_at";

fn load(row: &SqlRow) -> Result<PlacementRow, StoreError> {
    Ok(PlacementRow {
        id: row.text(0)?,
        backend: row.text(1)?,
        site: row.text(2)?,
        state: row.text(3)?,
        reference: row.json(4)?,
        snapshot: row.maybe_text(5)?,
        created_at_ms: row.int(6)?,
        used_at_ms: row.int(7)?,
    })
}

pub(crate) async fn put(
    transaction: &mut dyn Transaction,
    placement: PlacementRow,
) -> Result<(), StoreError> {
    let sql = format!(
        "INSERT INTO placements ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
         ON CONFLICT (id) DO UPDATE SET backend = excluded.backend, site = excluded.site, \
         state = excluded.state, reference = excluded.reference, snapshot = excluded.snapshot, \
         used_at = excluded.used_at"
    );
    let values = vec![
        placement.id.into(),
        placement.backend.into(),
        placement.site.into(),
        placement.state.into(),
        SqlValue::json(&placement.reference)?,
        placement.snapshot.into(),
        placement.created_at_ms.into(),
        placement.used_at_ms.into(),
    ];
    transaction.execute(&sql, values).await.map(drop)
}

pub(crate) async fn delete(transaction: &mut dyn Transaction, id: &str) -> Result<bool, StoreError> {
    Ok(transaction.execute("DELETE FROM placements WHERE id = $1", vec![id.into()]).await? == 1)
}

impl TaskStore {
    /// Stores a placement, or replaces what is known of it. When it was made stays.
    pub async fn put_placement(&self, placement: PlacementRow) -> Result<(), StoreError> {
        self.work(move |transaction| {
            let placement = placement.clone();
            Box::pin(async move { put(transaction, placement).await })
        })
        .await
    }

    pub async fn placement(&self, id: &str) -> Result<Option<PlacementRow>, StoreError> {
        let id = id.to_owned();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM placements WHERE id = $1");
                query_one(transaction, &sql, vec![id.into()]).await?.map(|row| load(&row)).transpose()
            })
        })
        .await
    }

    /// Those that no task names and that were last used before this time.
    pub async fn unused_placements(&self, before_ms: i64) -> Result<Vec<PlacementRow>, StoreError> {
        self.work(move |transaction| {
            Box::pin(async move {
                let sql = format!(
                    "SELECT {COLUMNS} FROM placements WHERE used_at < $1 AND NOT EXISTS \
                     (SELECT 1 FROM tasks WHERE tasks.placement_id = placements.id) ORDER BY used_at, id"
                );
                let rows = transaction.query(&sql, vec![before_ms.into()]).await?;
                rows.iter().map(load).collect()
            })
        })
        .await
    }

    pub async fn list_placements(&self) -> Result<Vec<PlacementRow>, StoreError> {
        self.work(move |transaction| {
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM placements ORDER BY created_at, id");
                let rows = transaction.query(&sql, Vec::new()).await?;
                rows.iter().map(load).collect()
            })
        })
        .await
    }

    pub async fn delete_placement(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { delete(transaction, &id).await })
        })
        .await
    }
}
