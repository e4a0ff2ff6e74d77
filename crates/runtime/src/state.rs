//! State that all threads of a process share, and the list of those in memory.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use catalogue::Catalogue;
use config::{Home, Loader, Requirements, ResolvedConfig, WireApi};
use delegation::{AgentRegistry, Delegation, HostSession, Uploads};
use engine::UserText;
use environments::Environments;
use journal::{JournalError, Store, StoreOptions};
use mcp::McpServices;
use model::ModelTransport;
use protocol::{
    ConfigWarningNotification, SessionMeta, SessionSource, ThreadId, ThreadStatus, TurnId, UserInput,
};
use sandbox::OffLimits;
use skills::Skills;
use support::{Clock, blocking};
use traces::Tracer;

use crate::error::RuntimeError;
use crate::listeners::OwnListeners;
use crate::memory_runs::MemoryRuns;
use crate::providers::conversations::Conversations;
use crate::providers::directory::ModelDirectory;
use crate::providers::identity::Providers;
use crate::providers::logins::Logins;
use crate::step::builder::StepBuilder;
use crate::step::input::read_input;
use crate::step::tool_settings::UNKNOWN_WINDOW;
use driver::{Audience, ClockExt, IdMaker, NotifyCommand, Services, ThreadHandle, ThreadHooks};

/// Limit of threads that are opened at the same time.
const OPENING_LANES: usize = 64;

/// The threads in memory, and the state they share.
pub(crate) struct RuntimeState {
    pub(crate) loader: Loader,
    pub(crate) source: SessionSource,
    pub(crate) version: String,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audience: Arc<dyn Audience>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) uploads: Uploads,
    pub(crate) providers: Providers,
    pub(crate) directory: Arc<ModelDirectory>,
    /// Unknown models that clients were warned of.
    pub(crate) unknown_models: Mutex<HashSet<String>>,
    /// Voice conversations.
    pub(crate) conversations: Conversations,
    /// ChatGPT accounts.
    pub(crate) logins: Arc<Logins>,
    pub(crate) ids: IdMaker,
    pub(crate) environments: Arc<Environments>,
    pub(crate) delegation: Delegation,
    pub(crate) agents: AgentRegistry,
    /// Ports and files of this process that commands must not reach.
    pub(crate) listeners: Mutex<OwnListeners>,
    pub(crate) skills: Arc<Skills>,
    /// Shared by all connections to MCP servers.
    pub(crate) mcp: McpServices,
    pub(crate) steps: Arc<StepBuilder>,
    pub(crate) memories: MemoryRuns,
    pub(crate) tracer: Tracer,
    pub(crate) records: Records,
    pub(crate) threads: LoadedThreads,
}

impl fmt::Debug for RuntimeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeState").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// The store of records on disk, opened on first use.
#[derive(Debug)]
pub(crate) struct Records {
    folder: PathBuf,
    options: Mutex<Option<StoreOptions>>,
    store: OnceLock<Arc<Store>>,
}

/// The threads in memory.
#[derive(Debug)]
pub(crate) struct LoadedThreads {
    by_id: Mutex<HashMap<ThreadId, Loaded>>,
    /// Locks, so that only one caller opens or unloads a thread at a time.
    opening: Box<[tokio::sync::Mutex<()>]>,
    hasher: RandomState,
}

/// A thread in memory.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) handle: ThreadHandle,
    pub(crate) identity: Arc<ThreadIdentity>,
    /// The clock for the time limits of its commands.
    pub(crate) clock: sandbox::CommandClock,
    /// The transport of its model requests, and of its children's.
    pub(crate) transport: Arc<dyn ModelTransport>,
    /// The thread's host.
    pub(crate) session: Option<Arc<HostSession>>,
    /// Its MCP servers, if any are configured.
    pub(crate) mcp: Option<Arc<mcp::McpSource>>,
    pub(crate) hooks: Arc<ThreadHooks>,
    pub(crate) notify: Arc<NotifyCommand>,
}

/// Fixed facts about a thread in memory.
#[derive(Debug)]
pub(crate) struct ThreadIdentity {
    pub(crate) meta: SessionMeta,
    pub(crate) ephemeral: bool,
    /// Where the record is or will be.
    pub(crate) path: Option<PathBuf>,
    /// The preview in lists, for a thread without a record.
    pub(crate) preview: String,
    /// The administrator's limits on changes by its turns.
    pub(crate) requirements: Requirements,
}

impl RuntimeState {
    /// The warning about a model that is not in the catalogue, once per process. Not on the Responses wire, where
    /// providers know their models better and clients expect no such warning.
    pub(crate) fn unknown_model_warning(
        &self,
        config: &ResolvedConfig,
        model: &str,
    ) -> Option<ConfigWarningNotification> {
        let is_guessed = config.provider.wire != WireApi::Responses
            && config.model.context_window.is_none()
            && self.catalogue.lookup(model).is_fallback
            && self.directory.window_of(&config.provider.id, model).is_none();
        if !is_guessed || !self.unknown_models.lock().insert(model.to_owned()) {
            return None;
        }
        Some(ConfigWarningNotification {
            summary: format!(
                "nothing is known of the model `{model}`; a context window of {UNKNOWN_WINDOW} tokens is assumed"
            ),
            details: Some("set model_context_window in config.toml if it has another".to_owned()),
            path: None,
            range: None,
        })
    }
}

impl Records {
    /// Includes the reference's threads in the same home.
    pub(crate) fn new(home: &Home, options: StoreOptions) -> Self {
        let options = StoreOptions { reference: Some(home.reading().to_owned()), ..options };
        Self { folder: home.state().to_owned(), options: Mutex::new(Some(options)), store: OnceLock::new() }
    }

    /// Opens the store on first use, and tries again after a failure.
    pub(crate) fn store(&self) -> Result<Arc<Store>, JournalError> {
        if let Some(store) = self.store.get() {
            return Ok(store.clone());
        }
        let mut options = self.options.lock();
        if let Some(store) = self.store.get() {
            return Ok(store.clone());
        }
        let store = Arc::new(Store::open(&self.folder, options.clone().unwrap_or_default())?);
        *options = None;
        Ok(self.store.get_or_init(|| store).clone())
    }

    /// A store for threads without a record here, which also works with a read-only folder.
    fn detached(&self) -> Store {
        Store::detached(&self.folder, StoreOptions::default())
    }
}

impl Default for LoadedThreads {
    fn default() -> Self {
        let opening = (0..OPENING_LANES).map(|_| tokio::sync::Mutex::default()).collect();
        Self { by_id: Mutex::default(), opening, hasher: RandomState::new() }
    }
}

impl LoadedThreads {
    pub(crate) fn get(&self, id: &ThreadId) -> Option<Loaded> {
        let loaded = self.by_id.lock().get(id).cloned()?;
        // After a panic of its actor, the thread can be opened again.
        (!loaded.handle.is_gone()).then_some(loaded)
    }

    /// In ascending order.
    pub(crate) fn ids(&self) -> Vec<ThreadId> {
        let threads = self.by_id.lock();
        let in_memory = threads.iter().filter(|(_, loaded)| !loaded.handle.is_gone());
        let mut ids: Vec<ThreadId> = in_memory.map(|(id, _)| id.clone()).collect();
        ids.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        ids
    }

    /// The threads with a running turn.
    pub(crate) fn busy(&self) -> Vec<ThreadHandle> {
        let threads = self.by_id.lock();
        let handles = threads.values().map(|loaded| &loaded.handle);
        let is_busy = |handle: &&ThreadHandle| {
            !handle.is_gone() && matches!(handle.status(), ThreadStatus::Active { .. })
        };
        handles.filter(is_busy).cloned().collect()
    }

    /// The clocks for the time limits of commands, of all threads in memory.
    pub(crate) fn clocks(&self) -> Vec<sandbox::CommandClock> {
        self.by_id.lock().values().map(|loaded| loaded.clock.clone()).collect()
    }

    pub(crate) fn insert(&self, loaded: Loaded) {
        self.by_id.lock().insert(loaded.handle.id().clone(), loaded);
    }

    pub(crate) fn remove(&self, id: &ThreadId) {
        self.by_id.lock().remove(id);
    }

    pub(crate) fn remove_all(&self) -> Vec<Loaded> {
        self.by_id.lock().drain().map(|(_, loaded)| loaded).collect()
    }

    /// Held while a thread is opened or unloaded.
    pub(crate) async fn opening(&self, id: &ThreadId) -> tokio::sync::MutexGuard<'_, ()> {
        let lane = self.hasher.hash_one(id.as_str()) % OPENING_LANES as u64;
        self.opening[usize::try_from(lane).unwrap_or(0)].lock().await
    }
}

impl RuntimeState {
    pub(crate) fn loaded(&self, id: &ThreadId) -> Option<Loaded> {
        self.threads.get(id)
    }

    pub(crate) fn forget(&self, id: &ThreadId) {
        self.threads.remove(id);
        self.conversations.forget(id);
        self.skills.unfollow(id);
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    pub(crate) fn new_thread_id(&self) -> ThreadId {
        self.ids.thread(self.clock.stamp())
    }

    pub(crate) fn new_turn_id(&self) -> TurnId {
        self.ids.turn(self.clock.stamp())
    }

    /// Runs blocking work with the store on a separate thread.
    pub(crate) async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Store) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<Result<T, JournalError>, RuntimeError> {
        let state = self.clone();
        Ok(blocking(move || state.records.store().map(|store| work(&store))).await??)
    }

    /// The services of one thread. Only a thread that keeps its record here needs a writable folder.
    pub(crate) fn services(&self, keeps_record: bool) -> Result<Services, RuntimeError> {
        let store = match self.records.store() {
            Err(error) if !keeps_record => {
                tracing::info!(%error, "the store cannot be opened, so only threads without a record can run");
                Arc::new(self.records.detached())
            }
            store => store?,
        };
        Ok(Services {
            store,
            audience: self.audience.clone(),
            tools: self.steps.clone(),
            clock: self.clock.clone(),
            steps: self.steps.clone(),
            tracer: self.tracer.clone(),
        })
    }

    /// Ports and files that commands must not reach: the configured ones, and those this process listens on.
    pub(crate) fn off_limits(&self, config: &ResolvedConfig) -> OffLimits {
        let mut off_limits = config.off_limits();
        self.listeners.lock().add_to(&mut off_limits);
        off_limits
    }

    pub(crate) async fn read_input(
        &self,
        thread: &ThreadHandle,
        cwd: Option<&Path>,
        input: Vec<UserInput>,
    ) -> Result<UserText, RuntimeError> {
        read_input(&self.skills, self.audience.as_ref(), thread, cwd, input).await
    }
}
