//! Databases behind the store: each runs transactions, and nothing else.

mod postgres;
mod postgres_news;
mod postgres_password;
mod postgres_tls;
mod sqlite;
mod value;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use postgres::PostgresBackend;
pub use postgres::PostgresOptions;
pub use postgres_password::PasswordSources;
pub(crate) use sqlite::SqliteBackend;
pub use sqlite::SqliteOptions;
pub(crate) use value::{SqlRow, SqlValue};

use protocol::ThreadId;
use support::Clock;
use tokio::sync::mpsc;

use crate::error::StoreError;

/// News from other hosts on the same database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreNews {
    /// Input, a decision or a released lease of this task.
    Task(ThreadId),
    /// Something was missed, or concerns any task: look at all.
    Unknown,
}

pub(crate) type SqlFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Unix milliseconds, for databases without a clock that all owners share.
pub type StoreClock = Arc<dyn Clock>;

/// One transaction. SQL is what SQLite and Postgres both read, with `$1` for parameters.
pub(crate) trait Transaction: Send {
    fn execute<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, u64>;

    fn query<'a>(&'a mut self, sql: &'a str, values: Vec<SqlValue>) -> SqlFuture<'a, Vec<SqlRow>>;

    /// Unix milliseconds by the clock that decides about leases.
    fn now_ms(&mut self) -> SqlFuture<'_, i64>;

    /// Locks rows for the rest of the transaction where others may write at the same time; appended to a `SELECT`.
    fn row_lock(&self, lock: RowLock) -> &'static str;

    /// Tells other hosts, when this is committed, that something about a task has changed. An empty name stands for any
    /// task. They look for themselves sooner or later, so that this may be lost.
    fn notify<'a>(&'a mut self, task: &'a str) -> SqlFuture<'a, ()>;

    /// The upper half of new epochs: greater after a failover to another copy of the database.
    fn timeline(&mut self) -> SqlFuture<'_, i64>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowLock {
    /// As it was committed last.
    Nothing,
    /// Others may read under the same lock; nobody writes.
    Share,
    Update,
    /// As `Update`, passing over rows that somebody else has locked.
    UpdateSkipLocked,
}

/// The result of a piece of work, of whatever type.
pub(crate) type AnyResult = Result<Box<dyn std::any::Any + Send>, StoreError>;

/// A piece of work that is done in one transaction, all of it or nothing. May be run again when the connection broke
/// before it was committed.
pub(crate) type Work = Box<
    dyn for<'t> Fn(&'t mut dyn Transaction) -> Pin<Box<dyn Future<Output = AnyResult> + Send + 't>>
        + Send
        + Sync,
>;

/// When a commit is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitSync {
    /// Before whoever asked hears of it.
    Now,
    /// At the latest with the next commit that is `Now`. Until then a machine that loses its power may lose it; the death
    /// of a process loses nothing.
    Later,
}

pub(crate) trait DatabaseBackend: Send + Sync {
    /// Runs the work and commits it. An error of the work undoes it.
    fn run(&self, work: Work, sync: CommitSync) -> Pin<Box<dyn Future<Output = AnyResult> + Send + '_>>;

    /// Calls that something about a task has changed, where several hosts share the database.
    fn news(&self) -> Option<mpsc::Receiver<StoreNews>>;

    /// The same database over a connection that nothing else uses, and without patience.
    fn beside(&self) -> Option<Arc<dyn DatabaseBackend>>;

    /// Whether leases end by themselves. They need not where one process alone can open the database.
    fn leases_expire(&self) -> bool;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn DatabaseBackend + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseBackend")
    }
}

/// The first value of the only row.
pub(crate) async fn query_one(
    transaction: &mut dyn Transaction,
    sql: &str,
    values: Vec<SqlValue>,
) -> Result<Option<SqlRow>, StoreError> {
    Ok(transaction.query(sql, values).await?.into_iter().next())
}
