//! A store of each kind for one test, gone afterwards.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use oarlock_store::{PostgresOptions, SqliteOptions, StoreClock, TaskStore};

use crate::postgres::PostgresServer;

/// Time that stands still until a test moves it.
pub(crate) fn clock() -> (StoreClock, Arc<AtomicI64>) {
    let now = Arc::new(AtomicI64::new(1_000_000));
    let read = Arc::clone(&now);
    (Arc::new(move || read.fetch_add(1, Ordering::SeqCst)), now)
}

pub(crate) fn sqlite_options(folder: &Path) -> SqliteOptions {
    SqliteOptions { path: folder.join("host.db"), clock: clock().0, is_synced: true }
}

impl PostgresServer {
    pub(crate) fn options(&self) -> PostgresOptions {
        let (wait_limit, patience) = (Duration::from_secs(4), Duration::ZERO);
        PostgresOptions { url: self.url(), password: None, tls: None, wait_limit, patience }
    }

    pub(crate) async fn store(&self) -> TaskStore {
        TaskStore::open_postgres(&self.options()).await.expect("a store")
    }
}

/// None, after a sentence that says why, where it cannot be had.
pub(crate) fn postgres() -> Option<PostgresServer> {
    PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Runs the same test on a new store of each kind.
pub(crate) async fn on_each<F: Future<Output = ()>>(test: impl Fn(TaskStore) -> F) {
    let folder = tempfile::tempdir().expect("a folder");
    test(TaskStore::open_sqlite(&sqlite_options(folder.path())).await.expect("a store")).await;
    if let Some(server) = postgres() {
        test(server.store().await).await;
    }
}
