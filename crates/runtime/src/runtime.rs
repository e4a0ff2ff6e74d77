//! The crate's entry point: all threads of one process.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use support::Clock;

use catalogue::Catalogue;
use config::Loader;
use delegation::{AgentRegistry, Delegation, Uploads};
use environments::Environments;
use journal::StoreOptions;
use mcp::McpServices;
use protocol::{SessionSource, ThreadId, TurnId};
use skills::Skills;
use traces::{TraceSettings, Tracer};

use crate::error::RuntimeError;
use crate::listeners::OwnListeners;
use crate::memory_runs::MemoryRuns;
use crate::methods::environment::Clients;
use crate::methods::notify_skills_changed;
use crate::providers::conversations::Conversations;
use crate::providers::directory::ModelDirectory;
use crate::providers::identity::Providers;
use crate::providers::logins::Logins;
use crate::state::{LoadedThreads, Records, RuntimeState};
use crate::step::builder::StepBuilder;
use crate::step::tool_settings::login_shell;
use driver::{Audience, ClockExt, IdMaker, ThreadHandle, check_thread_id};

/// The options of a runtime.
#[derive(Debug)]
pub struct RuntimeOptions {
    pub loader: Loader,
    pub audience: Arc<dyn Audience>,
    pub clock: Arc<dyn Clock>,
    pub catalogue: Catalogue,
    /// The kind of client that starts this process's threads.
    pub source: SessionSource,
    /// The version recorded with each thread.
    pub version: String,
    /// Its observer is notified of damaged records and of index rebuilds.
    pub store: StoreOptions,
    /// The destination of spans, if any.
    pub traces: Option<TraceSettings>,
}

/// All threads of the process, in memory or stored. Clones share the same runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub(crate) state: Arc<RuntimeState>,
    instance_id: Arc<str>,
}

impl Runtime {
    /// Touches no file: the disk is read on first use.
    pub fn new(options: RuntimeOptions) -> Self {
        let RuntimeOptions { loader, audience, clock, catalogue, source, version, store, traces } = options;
        let catalogue = Arc::new(catalogue);
        let environments = Environments::new(Arc::new(Clients(audience.clone())), login_shell);
        let skills = Arc::new(Skills::new(loader.clone(), notify_skills_changed(&audience)));
        let (home, places) = (loader.home(), environments.clone());
        let directory = Arc::new(ModelDirectory::new(loader.clone(), clock.clone()));
        let steps = StepBuilder::new(catalogue.clone(), home, places, skills.clone(), clock.clone())
            .with_directory(directory.clone());
        let mcp = McpServices::new(loader.home(), clock.clone());
        let http = mcp.http().clone();
        let tracer = Tracer::open(traces, http.clone(), clock.clone());
        let logins = Arc::new(Logins::new(loader.clone(), clock.clone(), audience.clone(), http));
        let instance_id = IdMaker::random(clock.stamp()).into();
        let state = RuntimeState {
            steps: Arc::new(steps),
            skills,
            mcp,
            environments,
            delegation: Delegation::default(),
            agents: AgentRegistry::default(),
            listeners: Mutex::default(),
            catalogue,
            providers: Providers::new(loader.clone(), &source, logins.clone()),
            directory,
            unknown_models: Mutex::default(),
            logins,
            conversations: Conversations::default(),
            records: Records::new(loader.home(), store),
            loader,
            source,
            version,
            clock,
            audience,
            uploads: Uploads::default(),
            ids: IdMaker::default(),
            memories: MemoryRuns::default(),
            tracer,
            threads: LoadedThreads::default(),
        };
        Self { state: Arc::new(state), instance_id }
    }

    /// The models that the providers list.
    pub fn model_directory(&self) -> &ModelDirectory {
        &self.state.directory
    }

    /// For other code of this process that traces.
    pub fn tracer(&self) -> &Tracer {
        &self.state.tracer
    }

    pub fn loader(&self) -> &Loader {
        &self.state.loader
    }

    /// Unique to the process, for fencing and logs.
    pub fn instance_id(&self) -> &str {
        &self.instance_id
    }

    /// Adds ports and files that commands started from now on cannot reach. Called before the first client is served.
    pub fn add_listeners(&self, listeners: OwnListeners) {
        self.state.listeners.lock().extend(listeners);
    }

    /// A thread in memory.
    pub fn thread(&self, id: &ThreadId) -> Result<ThreadHandle, RuntimeError> {
        let id = check_thread_id(id)?;
        self.state.loaded(&id).map(|loaded| loaded.handle).ok_or(RuntimeError::UnknownThread(id))
    }

    /// In ascending order.
    pub fn loaded_ids(&self) -> Vec<ThreadId> {
        self.state.threads.ids()
    }

    pub fn new_turn_id(&self) -> TurnId {
        self.state.new_turn_id()
    }

    /// Returns when no thread runs a turn. Suspends turns in which everything waits for a client and, after `limit`,
    /// all others.
    pub async fn drain(&self, limit: Duration) {
        let until = tokio::time::Instant::now() + limit;
        loop {
            let busy = self.state.threads.busy();
            if busy.is_empty() {
                return;
            }
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            futures_util::future::join_all(busy.iter().map(|handle| handle.drain(left))).await;
        }
    }

    /// Closes every thread, for `limit` at most. Running turns are recorded as interrupted.
    pub async fn shut_down(&self, limit: Duration) {
        self.state.logins.cancel_all();
        self.state.conversations.close_all();
        self.state.memories.close().await;
        let threads = self.state.threads.remove_all();
        threads.iter().filter_map(|loaded| loaded.session.as_ref()).for_each(|session| session.close());
        let closing = futures_util::future::join_all(threads.iter().map(|loaded| loaded.handle.close()));
        if tokio::time::timeout(limit, closing).await.is_err() {
            tracing::warn!("some threads did not stop in time");
        }
    }

    /// Waits briefly until changes of a thread's skills are watched. Called before a client is notified of the thread,
    /// so that it gets every later change.
    pub async fn skills_watched(&self, id: &ThreadId) {
        self.state.skills.wait_until_watched(id).await;
    }
}
