//! The tables, and how an older store becomes a newer one.
//!
//! Within a minor version a step only adds, so that hosts of both releases can share the database.

use crate::backend::{SqlValue, Transaction, query_one};
use crate::error::StoreError;

/// Each step leads from one schema to the next. Released steps never change.
const STEPS: &[&[&str]] = &[FIRST, RUNTIMES, BY_CREATION, LAST_TURN, AUDIT_OF_TASKS];

const FIRST: &[&str] = &[
    "CREATE TABLE replicas (
        id TEXT PRIMARY KEY, incarnation BIGINT NOT NULL, address TEXT NOT NULL, sites TEXT NOT NULL,
        expires_at BIGINT NOT NULL)",
    "CREATE TABLE tasks (
        id TEXT PRIMARY KEY, root_id TEXT NOT NULL, parent_id TEXT, name TEXT, preview TEXT NOT NULL, labels TEXT NOT NULL,
        agent_digest TEXT, placement_id TEXT, site TEXT NOT NULL, state TEXT NOT NULL, settings TEXT NOT NULL,
        record_schema BIGINT NOT NULL, archived BIGINT NOT NULL, priority BIGINT NOT NULL,
        owner TEXT, owner_incarnation BIGINT, epoch BIGINT NOT NULL, next_ordinal BIGINT NOT NULL,
        record_bytes BIGINT NOT NULL, created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)",
    "CREATE INDEX tasks_by_update ON tasks (archived, updated_at, id)",
    "CREATE INDEX tasks_by_root ON tasks (root_id)",
    "CREATE INDEX tasks_by_owner ON tasks (owner)",
    "CREATE TABLE records (
        thread_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, ordinal BIGINT NOT NULL, payload TEXT NOT NULL,
        PRIMARY KEY (thread_id, ordinal))",
    "CREATE TABLE inbox (
        thread_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, input_id TEXT NOT NULL, position BIGINT NOT NULL,
        method TEXT NOT NULL, turn_id TEXT NOT NULL, params TEXT NOT NULL, state TEXT NOT NULL, answer TEXT,
        received_at BIGINT NOT NULL, PRIMARY KEY (thread_id, input_id))",
    "CREATE TABLE operations (
        id TEXT PRIMARY KEY, thread_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, root_id TEXT NOT NULL,
        state TEXT NOT NULL, proposal TEXT NOT NULL, arguments_digest TEXT NOT NULL, attempt BIGINT NOT NULL,
        created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL)",
    "CREATE INDEX operations_by_state ON operations (state, created_at, id)",
    "CREATE INDEX operations_by_thread ON operations (thread_id, state)",
    "CREATE TABLE decisions (
        operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE, attempt BIGINT NOT NULL,
        decision TEXT NOT NULL, decided_by TEXT NOT NULL, on_behalf_of TEXT, decided_at BIGINT NOT NULL,
        PRIMARY KEY (operation_id, attempt))",
    "CREATE TABLE attempts (
        operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE, attempt BIGINT NOT NULL,
        executor TEXT NOT NULL, epoch BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT, result TEXT,
        PRIMARY KEY (operation_id, attempt))",
    "CREATE TABLE model_streams (
        thread_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, segment_id TEXT NOT NULL,
        request_digest TEXT NOT NULL, events BYTEA NOT NULL, finished_at BIGINT NOT NULL,
        PRIMARY KEY (segment_id, request_digest))",
    "CREATE INDEX model_streams_by_thread ON model_streams (thread_id)",
    "CREATE TABLE usage (
        request_id TEXT PRIMARY KEY, thread_id TEXT NOT NULL, root_id TEXT NOT NULL, at BIGINT NOT NULL,
        agent_path TEXT NOT NULL, purpose TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
        input_tokens BIGINT NOT NULL, cached_tokens BIGINT NOT NULL, output_tokens BIGINT NOT NULL,
        cost_micros BIGINT NOT NULL, duration_ms BIGINT NOT NULL, outcome TEXT NOT NULL)",
    "CREATE INDEX usage_by_time ON usage (at)",
    "CREATE INDEX usage_by_root ON usage (root_id, at)",
    "CREATE TABLE placements (
        id TEXT PRIMARY KEY, backend TEXT NOT NULL, site TEXT NOT NULL, state TEXT NOT NULL, reference TEXT NOT NULL,
        snapshot TEXT, created_at BIGINT NOT NULL, used_at BIGINT NOT NULL)",
    "CREATE TABLE audit (
        at BIGINT NOT NULL, number BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL, subject TEXT NOT NULL,
        details TEXT NOT NULL, PRIMARY KEY (number))",
];

/// Process ids of runtimes, for whoever adopts their tasks.
const RUNTIMES: &[&str] = &["CREATE TABLE runtimes (
        task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE, epoch BIGINT NOT NULL, reference TEXT NOT NULL)"];

/// Lists of threads are sorted by creation unless they ask otherwise.
const BY_CREATION: &[&str] = &["CREATE INDEX tasks_by_creation ON tasks (archived, created_at, id)"];

/// How a thread's last turn ended, so that a list shows which failed without reading records.
const LAST_TURN: &[&str] = &["ALTER TABLE tasks ADD COLUMN last_turn TEXT"];

/// The audit trail is read by task and by time; operations whose decision is not in the store say whose it is.
const AUDIT_OF_TASKS: &[&str] = &[
    "ALTER TABLE audit ADD COLUMN task_id TEXT",
    "CREATE INDEX audit_by_task ON audit (task_id, number)",
    "CREATE INDEX audit_by_time ON audit (at)",
    "ALTER TABLE operations ADD COLUMN own_decision TEXT",
];

/// Brings the tables up to date. Several hosts may do this at once: the first does the work.
pub(crate) async fn migrate(
    transaction: &mut dyn Transaction,
    exclusive: Option<&str>,
) -> Result<(), StoreError> {
    if let Some(lock) = exclusive {
        transaction.query(lock, Vec::new()).await?;
    }
    let counters = "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL)";
    transaction.execute(counters, Vec::new()).await?;
    let found = counter(transaction, "schema").await?;
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StoreError::SchemaTooNew { found, known });
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        for statement in *step {
            transaction.execute(statement, Vec::new()).await?;
        }
    }
    set_counter(transaction, "schema", known).await
}

async fn counter(transaction: &mut dyn Transaction, name: &str) -> Result<i64, StoreError> {
    let row = query_one(transaction, "SELECT value FROM counters WHERE name = $1", vec![name.into()]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

async fn set_counter(transaction: &mut dyn Transaction, name: &str, value: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO counters (name, value) VALUES ($1, $2) \
               ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    transaction.execute(sql, vec![name.into(), SqlValue::Int(value)]).await.map(drop)
}

/// The next number of a counter, never given twice.
pub(crate) async fn next_number(transaction: &mut dyn Transaction, name: &str) -> Result<i64, StoreError> {
    let sql = "INSERT INTO counters (name, value) VALUES ($1, 1) \
               ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value";
    let row = query_one(transaction, sql, vec![name.into()]).await?;
    row.ok_or_else(|| StoreError::Damaged(format!("no counter {name}")))?.int(0)
}
