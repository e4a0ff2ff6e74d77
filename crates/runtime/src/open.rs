//! Bringing threads into memory: new ones, stored ones, and copies.

use std::path::Path;
use std::sync::Arc;

use config::Config;
use engine::ThreadSeed;
use journal::{History, JournalError, Resumed, ThreadJournal};
use protocol::{
    FunctionCallOutputBody, ResponseItem, RolloutRecord, ServerNotification, SessionMeta, Thread,
    ThreadForkParams, ThreadId, ThreadResumeParams, ThreadStartParams, ThreadStatus,
    ThreadStatusChangedNotification, Turn,
};
use tools::{Bench, SearchToolBm25};

use crate::error::RuntimeError;
use crate::git::git_info;
use crate::handle::{Snapshot, Then};
use crate::ids::check_thread_id;
use crate::load::{Stored, Wishes};
use crate::open_checks::{
    check_dynamic_tools, first_words, id_of_path, unsupported_fork, unsupported_resume, unsupported_start,
};
use crate::opened::Opened;
use crate::recover::recover;
use crate::runtime::{Loaded, Runtime, ThreadIdentity, lock};
use crate::services::{ThreadPlan, open_thread};
use crate::settings::ThreadSettings;
use crate::workbench::bench_options;

/// A thread about to be brought into memory.
struct Opening {
    meta: SessionMeta,
    settings: ThreadSettings,
    config: Config,
    seed: ThreadSeed,
    journal: Option<ThreadJournal>,
    ephemeral: bool,
    preview: String,
    recovered: Vec<RolloutRecord>,
}

impl Runtime {
    /// A new thread. It has a record from its first turn on.
    pub async fn start_thread(&self, params: ThreadStartParams) -> Result<Opened, RuntimeError> {
        unsupported_start(&params)?;
        let dynamic_tools = params.dynamic_tools.clone().unwrap_or_default();
        check_dynamic_tools(&dynamic_tools)?;
        let config = self.load(&Wishes::of_start(&params))?;
        let mut settings = self.settings(&config);
        settings.dynamic_tools = dynamic_tools.clone().into();
        let id = match &params.thread_id {
            Some(id) => self.fresh(check_thread_id(id)?).await?,
            None => self.inner.ids.thread(self.inner.clock.stamp()),
        };
        let mut meta = self.meta(&id, &settings);
        meta.thread_source = params.thread_source;
        meta.dynamic_tools = (!dynamic_tools.is_empty()).then_some(dynamic_tools);
        let raw_events = params.experimental_raw_events;
        let seed = ThreadSeed { id, history: Vec::new(), usage: None, context: None, raw_events };
        let ephemeral = params.ephemeral.unwrap_or(false);
        let opening = Opening {
            meta,
            settings,
            config,
            seed,
            journal: None,
            ephemeral,
            preview: String::new(),
            recovered: Vec::new(),
        };
        self.open(opening, Vec::new())
    }

    /// A thread with its past. A loaded one is joined as it is: `joined` is called between two of its events, so that
    /// whoever subscribes there misses none and gets none twice.
    pub async fn resume_thread(&self, params: ThreadResumeParams, joined: Then<Opened>) {
        match self.resume(params).await {
            Ok(Resume::Joined { loaded, with_turns }) => {
                let identity = loaded.identity.clone();
                let then = Then::new(move |snapshot: Result<Snapshot, RuntimeError>| {
                    let opened = snapshot.map(|snapshot| identity.opened(snapshot));
                    Box::pin(joined.give(opened))
                });
                loaded.handle.look_then(with_turns, then).await;
            }
            Ok(Resume::Loaded(opened)) => {
                // Told to all before the caller hears of it: the thread is in memory again.
                let (id, status) = (opened.thread.id.clone(), opened.thread.status.clone());
                let told = ThreadStatusChangedNotification { thread_id: id.clone(), status };
                self.inner.audience.tell(&id, ServerNotification::ThreadStatusChanged(told)).await;
                joined.give(Ok(*opened)).await;
            }
            Err(error) => joined.give(Err(error)).await,
        }
    }

    async fn resume(&self, params: ThreadResumeParams) -> Result<Resume, RuntimeError> {
        unsupported_resume(&params)?;
        if params.history.is_some() {
            return self.resume_with_history(&params).map(|opened| Resume::Loaded(Box::new(opened)));
        }
        let id = match &params.path {
            Some(path) => id_of_path(path)?,
            None => check_thread_id(&params.thread_id)?,
        };
        let _opening = self.opening(&id).await;
        if let Some(loaded) = self.loaded(&id) {
            return join(loaded, &params).await;
        }
        self.check_path(&id, params.path.as_deref()).await?;
        let wanted = id.clone();
        let resumed = match self.on_disk(move |store| store.resume(&wanted)).await? {
            Ok(resumed) => resumed,
            Err(JournalError::NotFound(_)) => return Err(RuntimeError::NoRecord(id)),
            Err(error @ (JournalError::Unreadable { .. } | JournalError::Headless { .. })) => {
                return Err(RuntimeError::UnreadableRecord {
                    path: params.path.unwrap_or_else(|| id.to_string()),
                    problem: error.to_string(),
                });
            }
            Err(error) => return Err(error.into()),
        };
        // An archived thread is out of reach until it is brought back.
        if resumed.journal.row().is_archived {
            return Err(RuntimeError::NoRecord(id));
        }
        self.load_resumed(id, &params, resumed).map(|opened| Resume::Loaded(Box::new(opened)))
    }

    fn load_resumed(
        &self,
        id: ThreadId,
        params: &ThreadResumeParams,
        resumed: Resumed,
    ) -> Result<Opened, RuntimeError> {
        let Resumed { journal, mut history, recovery } = resumed;
        let recovered = recover(&mut history);
        if !recovery.damage.is_empty() {
            tracing::warn!(thread = %id, lost = recovery.damage.total(), "a damaged record was read as far as possible");
        }
        let config = self.load(&Wishes::of_resume(params, &Stored::of(&history)))?;
        let mut settings = self.settings(&config);
        let meta = history.meta.clone().unwrap_or_else(|| self.meta(&id, &settings));
        settings.dynamic_tools = meta.dynamic_tools.clone().unwrap_or_default().into();
        let History { model, turns, token_usage, told_context, .. } = history;
        let seed =
            ThreadSeed { id, history: model, usage: token_usage, context: told_context, raw_events: false };
        let turns = if params.exclude_turns { Vec::new() } else { turns };
        let opening = Opening {
            meta,
            settings,
            config,
            seed,
            journal: Some(journal),
            ephemeral: false,
            preview: String::new(),
            recovered,
        };
        self.open(opening, turns)
    }

    /// A new thread whose model remembers what the caller says it should.
    fn resume_with_history(&self, params: &ThreadResumeParams) -> Result<Opened, RuntimeError> {
        if let Ok(id) = check_thread_id(&params.thread_id)
            && self.loaded(&id).is_some()
        {
            return Err(RuntimeError::HistoryWhileLoaded(id));
        }
        let items = params.history.clone().unwrap_or_default();
        if items.is_empty() {
            return Err(RuntimeError::EmptyHistory);
        }
        let config = self.load(&Wishes::of_resume(params, &Stored::default()))?;
        let settings = self.settings(&config);
        let id = self.inner.ids.thread(self.inner.clock.stamp());
        let meta = self.meta(&id, &settings);
        let preview = first_words(&items);
        let now_ms = self.inner.clock.stamp().now_ms;
        let journal = self.store()?.create(&id, crate::fork::history_batch(now_ms, &meta, &items)?)?;
        let seed = ThreadSeed { id, history: items, usage: None, context: None, raw_events: false };
        let opening = Opening {
            meta,
            settings,
            config,
            seed,
            journal: Some(journal),
            ephemeral: false,
            preview,
            recovered: Vec::new(),
        };
        self.open(opening, Vec::new())
    }

    /// A new thread that begins with a copy of another's past.
    pub async fn fork_thread(&self, params: ThreadForkParams) -> Result<Opened, RuntimeError> {
        unsupported_fork(&params)?;
        let source = match &params.path {
            Some(path) => id_of_path(path)?,
            None => check_thread_id(&params.thread_id)?,
        };
        self.check_path(&source, params.path.as_deref()).await?;
        let copy = self.read_to_copy(&source).await?;
        let config = self.load(&Wishes::of_fork(&params, &Stored::of(&copy.history)))?;
        let mut settings = self.settings(&config);
        let dynamic_tools = copy.history.meta.as_ref().and_then(|meta| meta.dynamic_tools.clone());
        settings.dynamic_tools = dynamic_tools.clone().unwrap_or_default().into();
        let id = self.inner.ids.thread(self.inner.clock.stamp());
        let mut meta = self.meta(&id, &settings);
        meta.forked_from_id = Some(source);
        meta.thread_source.clone_from(&params.thread_source);
        meta.dynamic_tools = dynamic_tools;
        let preview = copy.history.summary.preview.clone().unwrap_or_default();
        let journal = if params.ephemeral { None } else { Some(self.write_copy(&meta, copy.records).await?) };
        let History { model, turns, token_usage, told_context, .. } = copy.history;
        let seed =
            ThreadSeed { id, history: model, usage: token_usage, context: told_context, raw_events: false };
        let turns = if params.exclude_turns { Vec::new() } else { turns };
        let opening = Opening {
            meta,
            settings,
            config,
            seed,
            journal,
            ephemeral: params.ephemeral,
            preview,
            recovered: Vec::new(),
        };
        self.open(opening, turns)
    }

    /// Starts the actor and keeps its handle.
    fn open(&self, opening: Opening, turns: Vec<Turn>) -> Result<Opened, RuntimeError> {
        let Opening { meta, settings, config, seed, journal, ephemeral, preview, recovered } = opening;
        let transport = self.transport(&config)?;
        let services = self.services()?;
        let path = match (&journal, ephemeral) {
            (_, true) => None,
            (Some(journal), false) => Some(journal.path().to_owned()),
            (None, false) => Some(services.store.path_for(&meta.thread_id, meta.created_at_ms)?),
        };
        let row = journal.as_ref().map(ThreadJournal::row);
        let bench = Arc::new(Bench::new(bench_options(&config, meta.thread_id.as_str())));
        rediscover(&bench, &settings, &seed.history);
        let requirements = config.requirements;
        let identity =
            Arc::new(ThreadIdentity { meta: meta.clone(), ephemeral, path, preview, requirements });
        let opened = settings.clone();
        let plan = ThreadPlan { seed, meta, journal, ephemeral, settings, transport, recovered, bench };
        let handle = open_thread(services, plan);
        let thread: Thread = identity.describe(row.as_ref(), ThreadStatus::Idle, turns);
        self.keep(Loaded { handle, identity });
        Ok(Opened { thread, settings: opened })
    }

    /// A path means the record at that place, and no other thread's that has its name.
    async fn check_path(&self, id: &ThreadId, path: Option<&str>) -> Result<(), RuntimeError> {
        let Some(path) = path else { return Ok(()) };
        let wanted = id.clone();
        let record = self.on_disk(move |store| store.summary(&wanted)).await?.map(|row| row.path);
        let is_it = record.is_ok_and(|record| {
            Path::new(path).canonicalize().ok().is_some_and(|path| Some(path) == record.canonicalize().ok())
        });
        if is_it {
            return Ok(());
        }
        Err(RuntimeError::UnreadableRecord {
            path: path.to_owned(),
            problem: "it is not the record of a thread in this home".to_owned(),
        })
    }

    async fn fresh(&self, id: ThreadId) -> Result<ThreadId, RuntimeError> {
        let wanted = id.clone();
        let stored = self.on_disk(move |store| store.summary(&wanted)).await?;
        if self.loaded(&id).is_some() || stored.is_ok() {
            return Err(RuntimeError::ThreadExists(id));
        }
        Ok(id)
    }

    fn meta(&self, id: &ThreadId, settings: &ThreadSettings) -> SessionMeta {
        SessionMeta {
            thread_id: id.clone(),
            session_id: id.to_string(),
            created_at_ms: self.inner.clock.stamp().now_ms,
            cwd: settings.cwd.clone(),
            originator: lock(&self.inner.identity).originator.clone(),
            cli_version: self.inner.version.clone(),
            source: self.inner.source.clone(),
            model_provider: settings.model_provider.clone(),
            model: Some(settings.model.clone()),
            base_instructions: settings.base_instructions.as_deref().map(str::to_owned),
            developer_instructions: settings.developer_instructions.as_deref().map(str::to_owned),
            forked_from_id: None,
            thread_source: None,
            agent_nickname: None,
            agent_role: None,
            git_info: git_info(Path::new(&settings.cwd)),
            dynamic_tools: None,
        }
    }
}

/// What the model looked for and found stays offered to it.
fn rediscover(bench: &Bench, settings: &ThreadSettings, history: &[ResponseItem]) {
    if !settings.dynamic_tools.iter().any(|tool| tool.defer_loading) {
        return;
    }
    for item in history {
        if let ResponseItem::FunctionCallOutput { output: FunctionCallOutputBody::Text(text), .. } = item {
            SearchToolBm25::found_in(text).iter().for_each(|name| bench.discover(name));
        }
    }
}

enum Resume {
    Joined { loaded: Loaded, with_turns: bool },
    Loaded(Box<Opened>),
}

/// A thread that is in memory already. What the caller asks for beyond joining it has no effect.
async fn join(loaded: Loaded, params: &ThreadResumeParams) -> Result<Resume, RuntimeError> {
    if let (Some(requested), Some(active)) = (&params.path, &loaded.identity.path)
        && Path::new(requested) != active
    {
        return Err(RuntimeError::OtherPath {
            id: loaded.handle.id().clone(),
            requested: requested.clone(),
            active: active.display().to_string(),
        });
    }
    if loaded.handle.look(false).await?.row.is_none() {
        return Err(RuntimeError::NoRecord(loaded.handle.id().clone()));
    }
    Ok(Resume::Joined { with_turns: !params.exclude_turns, loaded })
}

impl ThreadIdentity {
    pub(crate) fn opened(&self, snapshot: Snapshot) -> Opened {
        let thread = self.describe(snapshot.row.as_ref(), snapshot.status, snapshot.turns);
        Opened { thread, settings: snapshot.settings }
    }
}
