//! The store as its users hold it.

use std::any::Any;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use crate::backend::{
    AnyResult, DatabaseBackend, PostgresBackend, PostgresOptions, SqliteBackend, SqliteOptions, Transaction,
    Work,
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

    /// Runs one piece of work in a transaction of its own.
    pub(crate) async fn work<T, F>(&self, work: F) -> Result<T, StoreError>
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
        let result: AnyResult = self.backend.run(work).await;
        let value = result?.downcast::<T>();
        value.map(|value| *value).map_err(|_| StoreError::Database("a result of another type".to_owned()))
    }
}
