//! All threads of one home.

use std::sync::Arc;
use std::time::Duration;

use runtime::config::Loader;
use runtime::protocol::{SessionSource, Thread, ThreadId, ThreadListResponse, ThreadReadParams};
use runtime::{
    Catalogue, ClientIdentity, OpenedThread, Opener, Runtime, RuntimeError, RuntimeOptions, StoreEvent,
    StoreOptions, SystemClock, Then,
};
use tokio::sync::{OnceCell, oneshot};

use crate::builder::ThreadManagerBuilder;
use crate::error::ManagerError;
use crate::options::{ListOptions, ThreadOptions, fork_params, list_params, resume_params, start_params};
use crate::switchboard::Switchboard;
use crate::thread::ManagedThread;

/// How long threads may take to put themselves away.
const GRACE: Duration = Duration::from_secs(5);
/// The name of programs that give none.
const NAME: &str = "oarlock-core-api";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Opens threads, and keeps those that are open. Clones are the same manager.
///
/// When the last clone and the last of its threads and streams are dropped, turns that still run are interrupted in the
/// background. [`ThreadManager::shut_down`] does the same and waits for it.
#[derive(Debug, Clone)]
pub struct ThreadManager {
    inner: Arc<ManagerInner>,
}

#[derive(Debug)]
struct ManagerInner {
    loader: Loader,
    client_name: Option<String>,
    board: Arc<Switchboard>,
    /// Made when first needed, because it wants to know which models there are.
    runtime: OnceCell<Runtime>,
}

impl ThreadManager {
    /// The way to a manager.
    pub fn builder() -> ThreadManagerBuilder {
        ThreadManagerBuilder::default()
    }

    pub(crate) fn new(loader: Loader, client_name: Option<String>) -> Self {
        let inner = ManagerInner { loader, client_name, board: Arc::default(), runtime: OnceCell::new() };
        Self { inner: Arc::new(inner) }
    }

    /// A new thread. It is recorded from its first turn on.
    pub async fn start_thread(&self, options: ThreadOptions) -> Result<ManagedThread, ManagerError> {
        let opened = self.runtime().await?.start_thread(start_params(options)?, self.inner.opener()).await?;
        self.handle(opened).await
    }

    /// A stored thread with its past. One that is open already is joined as it is, whatever the options say.
    pub async fn resume_thread(
        &self,
        id: &ThreadId,
        options: ThreadOptions,
    ) -> Result<ManagedThread, ManagerError> {
        let runtime = self.runtime().await?;
        let params = resume_params(id, options)?;
        if runtime.thread(id).is_err() {
            // A thread that broke may have left its line behind.
            self.inner.board.forget(id);
        }
        let (told, opened) = oneshot::channel();
        let joined = Then::new(move |opened: Result<OpenedThread, RuntimeError>| {
            let _ = told.send(opened);
            Box::pin(async {})
        });
        runtime.resume_thread(params, self.inner.opener(), joined).await;
        let opened = opened.await.map_err(|_| ManagerError::Closed(id.clone()))??;
        self.handle(opened).await
    }

    /// A new thread that begins with a copy of another's past. The other one stays as it is.
    pub async fn fork_thread(
        &self,
        id: &ThreadId,
        options: ThreadOptions,
    ) -> Result<ManagedThread, ManagerError> {
        let opened =
            self.runtime().await?.fork_thread(fork_params(id, options)?, self.inner.opener()).await?;
        self.handle(opened).await
    }

    /// One page of the stored threads, without their turns.
    pub async fn list_threads(&self, options: ListOptions) -> Result<ThreadListResponse, ManagerError> {
        Ok(self.runtime().await?.list_threads(list_params(options)?).await?)
    }

    /// A stored thread with its turns, without opening it.
    pub async fn read_thread(&self, id: &ThreadId) -> Result<Thread, ManagerError> {
        let params = ThreadReadParams { thread_id: id.clone(), include_turns: true, exclude_turns: false };
        Ok(self.runtime().await?.read_thread(params).await?)
    }

    /// Closes every thread and waits for it, a few seconds at most. Turns that run are recorded as interrupted.
    pub async fn shut_down(&self) {
        if let Some(runtime) = self.inner.runtime.get() {
            self.inner.board.release_all();
            runtime.shut_down(GRACE).await;
            self.inner.board.forget_all();
        }
    }

    async fn handle(&self, opened: OpenedThread) -> Result<ManagedThread, ManagerError> {
        let runtime = self.runtime().await?.clone();
        Ok(ManagedThread::new(runtime, self.inner.board.clone(), opened))
    }

    async fn runtime(&self) -> Result<&Runtime, ManagerError> {
        self.inner.runtime.get_or_try_init(|| async { self.inner.make_runtime() }).await
    }
}

impl ManagerInner {
    fn make_runtime(&self) -> Result<Runtime, ManagerError> {
        // A file that cannot be read is told by whatever wants a thread, in its own words.
        let config = self.loader.startup(None).config;
        let catalogue = match &config.model.catalog_json {
            Some(path) => {
                Catalogue::from_file(path).map_err(|error| ManagerError::Refused(error.to_string()))?
            }
            None => Catalogue::bundled(),
        };
        Ok(Runtime::new(RuntimeOptions {
            loader: self.loader.clone(),
            audience: self.board.clone(),
            clock: Arc::new(SystemClock),
            catalogue,
            source: SessionSource::Custom(self.name().to_owned()),
            version: VERSION.to_owned(),
            store: store_options(),
            traces: None,
        }))
    }

    fn name(&self) -> &str {
        self.client_name.as_deref().unwrap_or(NAME)
    }

    /// The embedding program, as providers and records name it.
    fn opener(&self) -> Opener {
        let name = self.name();
        let user_agent = format!("{name} (oarlock/{VERSION})");
        Opener { client: ClientIdentity { originator: name.to_owned(), user_agent }, host: None }
    }
}

/// Damage is worth a warning, whoever listens.
fn store_options() -> StoreOptions {
    let observer = |event: &StoreEvent| match event {
        StoreEvent::ThreadDamaged { .. }
        | StoreEvent::ThreadUnreadable { .. }
        | StoreEvent::IndexInMemory { .. } => tracing::warn!("{event}"),
        StoreEvent::IndexRebuilding { .. }
        | StoreEvent::IndexProgress { .. }
        | StoreEvent::IndexRebuilt { .. } => tracing::info!("{event}"),
    };
    StoreOptions { observer: Arc::new(observer), ..StoreOptions::default() }
}
