//! The store as its users hold it.

use std::any::Any;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use crate::backend::{
    AnyResult, CommitSync, DatabaseBackend, PostgresBackend, PostgresOptions, SqliteBackend, SqliteOptions,
    Transaction, Work,
};
use crate::error::StoreError;
use crate::migrations::migrate;

/// Held by one host while it changes the tables.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(713904521)";

/// The durable state of a host. Clones are the same store.
#[derive(Debug, Clone)]
pub struct TaskStore {
    backend: Arc<dyn DatabaseBackend>,
}

/// The oldest release of Postgres that has all that the statements use.
const OLDEST_POSTGRES: i64 = 13;

async fn check_version(transaction: &mut dyn Transaction) -> Result<(), StoreError> {
    let sql = "SELECT current_setting('server_version_num')";
    let rows = transaction.query(sql, Vec::new()).await?;
    let number = rows.first().map(|row| row.text(0)).transpose()?.unwrap_or_default();
    let release = number.parse::<i64>().unwrap_or_default() / 10_000;
    if release < OLDEST_POSTGRES {
        let problem = format!("it is Postgres {release}; {OLDEST_POSTGRES} or newer is needed");
        return Err(StoreError::Database(problem));
    }
    Ok(())
}

impl TaskStore {
    /// Opens a file, making it and its tables where they are missing. Refused while another process has it open.
    pub async fn open_sqlite(options: &SqliteOptions) -> Result<Self, StoreError> {
        let store = Self { backend: Arc::new(SqliteBackend::open(options)?) };
        store.work(|transaction| Box::pin(migrate(transaction, None))).await?;
        Ok(store)
    }

    /// Connects, and brings the tables up to date.
    pub async fn open_postgres(options: &PostgresOptions) -> Result<Self, StoreError> {
        let store = Self { backend: Arc::new(PostgresBackend::new(options)?) };
        store.work(|transaction| Box::pin(check_version(transaction))).await?;
        store.work(|transaction| Box::pin(migrate(transaction, Some(MIGRATION_LOCK)))).await?;
        Ok(store)
    }

    /// The socket on which the host that has this file open listens.
    pub fn socket_of(path: &Path) -> std::path::PathBuf {
        SqliteBackend::socket(path)
    }

    /// Every file that belongs to a store in this file, those included that are not there at the moment.
    pub fn files_of(path: &Path) -> Vec<std::path::PathBuf> {
        let beside = |end: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            name.into()
        };
        ["", "-wal", "-shm", "-journal", ".lock", ".sock"].into_iter().map(beside).collect()
    }

    /// Whether leases end by themselves when they are not renewed.
    pub fn leases_expire(&self) -> bool {
        self.backend.leases_expire()
    }

    /// Notifications of other hosts on the same database. None where there can be no others.
    pub fn news(&self) -> Option<tokio::sync::mpsc::Receiver<crate::StoreNews>> {
        self.backend.news()
    }

    /// The same store by a way of its own, for what must not wait behind anything else. Fails at once where the database
    /// cannot be reached.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self { backend: self.backend.beside().unwrap_or_else(|| Arc::clone(&self.backend)) }
    }

    /// Runs one piece of work in a transaction of its own. It is on the disk when this returns.
    pub(crate) fn work<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Any + Send,
        F: for<'t> Fn(
                &'t mut dyn Transaction,
            ) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>
            + Send
            + Sync
            + 'static,
    {
        self.work_synced(CommitSync::Now, work)
    }

    /// As `work`, but on the disk with the next commit that waits for it. For what the record tells as well, and for what
    /// costs no more than doing it again: nothing of it is lost with a process, only with the machine's power.
    pub(crate) fn work_soon<T, F>(&self, work: F) -> impl Future<Output = Result<T, StoreError>> + Send
    where
        T: Any + Send,
        F: for<'t> Fn(
                &'t mut dyn Transaction,
            ) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>
            + Send
            + Sync
            + 'static,
    {
        self.work_synced(CommitSync::Later, work)
    }

    async fn work_synced<T, F>(&self, sync: CommitSync, work: F) -> Result<T, StoreError>
    where
        T: Any + Send,
        F: for<'t> Fn(
                &'t mut dyn Transaction,
            ) -> Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>
            + Send
            + Sync
            + 'static,
    {
        let work: Work = Box::new(move |transaction| {
            let result = work(transaction);
            Box::pin(async move { result.await.map(|value| -> Box<dyn Any + Send> { Box::new(value) }) })
        });
        let result: AnyResult = self.backend.run(work, sync).await;
        let value = result?.downcast::<T>();
        value.map(|value| *value).map_err(|_| StoreError::Database("a result of another type".to_owned()))
    }
}
