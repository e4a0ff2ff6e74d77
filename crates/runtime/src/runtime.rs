//! All threads of one process: what they share, and which are in memory.

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use config::{Loader, Requirements};
use environments::Environments;
use journal::{JournalError, Store, StoreOptions};
use model::ModelTransport;
use protocol::{SessionMeta, SessionSource, ThreadId, ThreadStatus, TurnId};

use crate::agents::Agents;
use crate::audience::Audience;
use crate::delegation::Delegation;
use crate::environment_methods::Clients;
use crate::error::RuntimeError;
use crate::handle::ThreadHandle;
use crate::ids::{IdMaker, check_thread_id};
use crate::listeners::OwnListeners;
use crate::models::Catalogue;
use crate::providers::{Identity, Providers};
use crate::services::{Clock, Services};
use crate::skills::Skills;
use crate::surroundings::Surroundings;
use crate::uploads::Uploads;
use crate::workbench::login_shell;

/// How many threads may be opened at the same moment.
const OPENING_LANES: usize = 64;

/// What a runtime is made of.
#[derive(Debug)]
pub struct RuntimeOptions {
    pub loader: Loader,
    pub audience: Arc<dyn Audience>,
    pub clock: Arc<dyn Clock>,
    pub catalogue: Catalogue,
    /// What threads of this process are started by.
    pub source: SessionSource,
    /// The version recorded with each thread.
    pub version: String,
    /// Told of damage and of the index being rebuilt.
    pub store: StoreOptions,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// The threads in memory and the way to all others. Clones are the same runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) loader: Loader,
    pub(crate) source: SessionSource,
    pub(crate) version: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audience: Arc<dyn Audience>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) uploads: Uploads,
    pub(crate) providers: Providers,
    pub(crate) ids: IdMaker,
    pub(crate) identity: Mutex<Identity>,
    pub(crate) environments: Arc<Environments>,
    pub(crate) delegation: Delegation,
    pub(crate) agents: Agents,
    instance_id: String,
    /// What commands are kept from.
    pub(crate) listeners: Mutex<OwnListeners>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) surroundings: Arc<Surroundings>,
    store_options: Mutex<Option<StoreOptions>>,
    store: OnceLock<Arc<Store>>,
    threads: Mutex<HashMap<ThreadId, Loaded>>,
    /// One thread is opened or unloaded by one caller at a time.
    opening: Box<[tokio::sync::Mutex<()>]>,
    hasher: RandomState,
}

/// A thread in memory.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) handle: ThreadHandle,
    pub(crate) identity: Arc<ThreadIdentity>,
    /// What the limits of its commands are measured by.
    pub(crate) clock: sandbox::Clock,
    /// Who carries its model requests, and those of its children.
    pub(crate) transport: Arc<dyn ModelTransport>,
}

/// What does not change about a thread in memory.
#[derive(Debug)]
pub(crate) struct ThreadIdentity {
    pub(crate) meta: SessionMeta,
    pub(crate) ephemeral: bool,
    /// Where the record is or will be.
    pub(crate) path: Option<PathBuf>,
    /// What a list shows of a thread that has no record of its own.
    pub(crate) preview: String,
    /// What the administrator allows its turns to change.
    pub(crate) requirements: Requirements,
}

impl Runtime {
    /// Touches no file: what is not asked for costs nothing.
    pub fn new(options: RuntimeOptions) -> Self {
        let catalogue = Arc::new(options.catalogue);
        let environments = Environments::new(Arc::new(Clients(options.audience.clone())), login_shell);
        let skills = Arc::new(Skills::new(options.loader.clone(), options.audience.clone()));
        let home = options.loader.home();
        let surroundings = Surroundings::new(catalogue.clone(), home, environments.clone(), skills.clone());
        let lanes = (0..OPENING_LANES).map(|_| tokio::sync::Mutex::default()).collect();
        let inner = Inner {
            surroundings: Arc::new(surroundings),
            skills,
            environments,
            delegation: Delegation::default(),
            agents: Agents::default(),
            instance_id: IdMaker::random(options.clock.stamp()),
            listeners: Mutex::default(),
            catalogue,
            loader: options.loader,
            source: options.source,
            version: options.version,
            clock: options.clock,
            audience: options.audience,
            uploads: Uploads::default(),
            providers: Providers::default(),
            ids: IdMaker::default(),
            identity: Mutex::default(),
            store_options: Mutex::new(Some(options.store)),
            store: OnceLock::new(),
            threads: Mutex::default(),
            opening: lanes,
            hasher: RandomState::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn loader(&self) -> &Loader {
        &self.inner.loader
    }

    /// New for every process, for fencing and logs.
    pub fn instance_id(&self) -> &str {
        &self.inner.instance_id
    }

    /// Says who asks, for providers. Threads opened from now on use it.
    pub fn set_identity(&self, identity: Identity) {
        *lock(&self.inner.identity) = identity;
    }

    /// A thread in memory.
    pub fn thread(&self, id: &ThreadId) -> Result<ThreadHandle, RuntimeError> {
        let id = check_thread_id(id)?;
        self.loaded(&id).map(|loaded| loaded.handle).ok_or(RuntimeError::UnknownThread(id))
    }

    /// Ascending.
    pub fn loaded_ids(&self) -> Vec<ThreadId> {
        let threads = lock(&self.inner.threads);
        let in_memory = threads.iter().filter(|(_, loaded)| !loaded.handle.is_gone());
        let mut ids: Vec<ThreadId> = in_memory.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        ids
    }

    pub fn new_turn_id(&self) -> TurnId {
        self.inner.ids.turn(self.inner.clock.stamp())
    }

    /// Returns once no thread has a turn that runs.
    pub async fn idle(&self) {
        loop {
            let busy = lock(&self.inner.threads)
                .values()
                .map(|loaded| loaded.handle.clone())
                .find(|handle| matches!(handle.status(), ThreadStatus::Active { .. }));
            match busy {
                Some(handle) => handle.idle().await,
                None => return,
            }
        }
    }

    /// Closes every thread, for `limit` at most. Turns that run are recorded as interrupted.
    pub async fn shut_down(&self, limit: Duration) {
        let handles: Vec<ThreadHandle> =
            lock(&self.inner.threads).drain().map(|(_, loaded)| loaded.handle).collect();
        handles
            .iter()
            .filter_map(|handle| self.inner.delegation.seat(handle.id()))
            .for_each(|seat| seat.close());
        let closing = futures_util::future::join_all(handles.iter().map(ThreadHandle::close));
        if tokio::time::timeout(limit, closing).await.is_err() {
            tracing::warn!("some threads did not stop in time");
        }
    }

    pub(crate) fn loaded(&self, id: &ThreadId) -> Option<Loaded> {
        let loaded = lock(&self.inner.threads).get(id).cloned()?;
        // An actor broken by a panic leaves its place to whoever opens the thread anew.
        (!loaded.handle.is_gone()).then_some(loaded)
    }

    /// What the limits of commands are measured by, of every thread in memory.
    pub(crate) fn clocks(&self) -> Vec<sandbox::Clock> {
        lock(&self.inner.threads).values().map(|loaded| loaded.clock.clone()).collect()
    }

    pub(crate) fn keep(&self, loaded: Loaded) {
        lock(&self.inner.threads).insert(loaded.handle.id().clone(), loaded);
    }

    pub(crate) fn forget(&self, id: &ThreadId) {
        lock(&self.inner.threads).remove(id);
        self.inner.skills.unfollow(id);
    }

    /// Waits until changes of a thread's skills are noticed, but not for long. Called before a client hears of the
    /// thread, so that it hears of every change it makes from then on.
    pub async fn skills_watched(&self, id: &ThreadId) {
        self.inner.skills.watched(id).await;
    }

    /// Held while a thread is brought into memory or put away.
    pub(crate) async fn opening(&self, id: &ThreadId) -> tokio::sync::MutexGuard<'_, ()> {
        let lane = self.inner.hasher.hash_one(id.as_str()) % OPENING_LANES as u64;
        self.inner.opening[usize::try_from(lane).unwrap_or(0)].lock().await
    }

    /// The records on disk. Opened when first needed, and tried again while that fails.
    pub(crate) fn store(&self) -> Result<Arc<Store>, RuntimeError> {
        if let Some(store) = self.inner.store.get() {
            return Ok(store.clone());
        }
        let mut options = lock(&self.inner.store_options);
        if let Some(store) = self.inner.store.get() {
            return Ok(store.clone());
        }
        let state = self.inner.loader.home().state();
        let store = Arc::new(Store::open(state, options.clone().unwrap_or_default())?);
        *options = None;
        Ok(self.inner.store.get_or_init(|| store).clone())
    }

    /// Work that waits for the disk, on a thread that serves nobody else.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<Result<T, JournalError>, RuntimeError> {
        let store = self.store()?;
        blocking(move || work(&store)).await
    }

    /// A thread that keeps its record here needs a folder that can be written to; no other does.
    pub(crate) fn services(&self, keeps_record: bool) -> Result<Services, RuntimeError> {
        let store = match self.store() {
            Err(error) if !keeps_record => {
                tracing::info!(%error, "no threads can be stored");
                Arc::new(Store::detached(self.inner.loader.home().state(), StoreOptions::default()))
            }
            store => store?,
        };
        Ok(Services {
            store,
            audience: self.inner.audience.clone(),
            tools: self.inner.surroundings.clone(),
            clock: self.inner.clock.clone(),
            steps: self.inner.surroundings.clone(),
        })
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RuntimeError> {
    let work: std::pin::Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(tokio::task::spawn_blocking(work));
    work.await.map_err(|stopped| {
        tracing::error!(%stopped, "work on the disk was cut short");
        RuntimeError::Defect
    })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
