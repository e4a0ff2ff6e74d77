//! The one pipeline that opens every thread: from a request to its configuration and settings, the host's session, the
//! record, and the actor. Blocking work runs on separate threads.

use std::path::PathBuf;
use std::sync::Arc;

use config::ResolvedConfig;
use delegation::{DelegatedTransport, HostChoices, HostRecord, HostSession};
use engine::ThreadSeed;
use journal::{JournalEntry, Record, ReferenceRollout, Store, ThreadHistory, ThreadJournal};
use mcp::RequiredServers;
use model::ModelTransport;
use protocol::{
    FunctionCallOutputBody, HistoryFidelity, ResponseItem, RolloutRecord, SessionMeta, ThreadId, ThreadStatus,
};
use support::blocking;
use tools::{Bench, BenchOptions, SearchToolBm25, ToolSearch, ToolSource};

use crate::agents::{ChildObserver, Children};
use crate::error::RuntimeError;
use crate::memory_runs::CitationObserver;
use crate::methods::{mcp_source, start_required_mcp_servers};
use crate::open::checks::first_words;
use crate::open::config_request::settings_of;
use crate::open::copy::{history_batch, write_copy};
use crate::open::import::split;
use crate::open::memories::{MemoryAsker, begin as begin_memories, folder_of, memory_mode, opt_out};
use crate::open::opened::{HostAnswer, OpenedThread};
use crate::open::request::{EnvironmentChoice, OpenRequest, RecordSource, RequestedId};
use crate::state::{Loaded, RuntimeState, ThreadIdentity};
use crate::step::reading::git_facts;
use crate::step::tool_settings::bench_options;
use driver::{NotifyCommand, Services, ThreadHooks, ThreadPlan, ThreadSettings, agreed_rules, open_thread};

/// Opens a thread. Nothing else does.
pub(crate) async fn open(
    state: &Arc<RuntimeState>,
    request: OpenRequest,
) -> Result<OpenedThread, RuntimeError> {
    let resolving = state.clone();
    let mut resolved = blocking(move || ResolvedThread::resolve(&resolving, request)).await??;
    resolved.ask_provider(state).await;
    let required = start_required_mcp_servers(&resolved.config, &resolved.settings.cwd, &state.mcp).await?;
    match attach_and_record(state, resolved).await {
        Ok(recorded) => Ok(recorded.start(state, required)),
        Err(error) => {
            required.close().await;
            Err(error)
        }
    }
}

/// In this order: a host whose lease has passed to another must not leave a record behind.
async fn attach_and_record(
    state: &Arc<RuntimeState>,
    resolved: ResolvedThread,
) -> Result<RecordedThread, RuntimeError> {
    let attached = resolved.attach_host(state)?;
    let recording = state.clone();
    blocking(move || attached.record(&recording)).await?
}

/// A request with its resolved configuration, settings and id.
struct ResolvedThread {
    request: OpenRequest,
    id: ThreadId,
    config: ResolvedConfig,
    settings: ThreadSettings,
}

/// A thread that the host was notified of.
struct AttachedThread {
    resolved: ResolvedThread,
    session: Option<Arc<HostSession>>,
}

/// A thread with everything its actor needs.
struct RecordedThread {
    request: OpenRequest,
    config: ResolvedConfig,
    settings: ThreadSettings,
    session: Option<Arc<HostSession>>,
    meta: SessionMeta,
    journal: Option<ThreadJournal>,
    rollout: Option<Box<ReferenceRollout>>,
    host_record: Option<Box<HostRecord>>,
    transport: Arc<dyn ModelTransport>,
    services: Services,
    answer: HostAnswer,
    bench: Bench,
    /// Where the record is or will be.
    path: Option<PathBuf>,
    preview: String,
}

impl OpenRequest {
    /// Resolves the thread's configuration and initial settings. Blocking.
    pub(crate) fn resolve(
        &self,
        state: &RuntimeState,
    ) -> Result<(ResolvedConfig, ThreadSettings), RuntimeError> {
        let config = self.config.load(&state.loader)?;
        let mut settings = match &self.child {
            Some(child) => child.settings.clone(),
            None => settings_of(&config, &state.catalogue),
        };
        let listed = self.choices.dynamic_tools();
        settings.dynamic_tools = listed.unwrap_or_else(|| self.dynamic_tools.clone().into());
        settings.host = Arc::new(self.choices.clone());
        if let Some(choice) = &self.environments {
            settings.environments = Some(choice.selections().into());
        }
        Ok((config, settings))
    }

    fn seed(&mut self, id: ThreadId) -> ThreadSeed {
        let ThreadHistory { model, token_usage, told_context, goal, agreed, .. } =
            std::mem::take(&mut self.history);
        // A goal belongs to the thread it was set for, not to copies of it.
        let goal = goal.filter(|goal| goal.thread_id == id).map(Box::new);
        // The initial history of a new child is its parent's.
        let is_parents = self.child.is_some() && !matches!(self.id, RequestedId::Existing(_));
        ThreadSeed {
            history: model,
            usage: token_usage,
            goal,
            context_is_borrowed: is_parents && told_context.is_some(),
            context: told_context,
            raw_events: self.raw_events,
            agreed,
            ..self.terms.seed(id)
        }
    }
}

impl ResolvedThread {
    /// Asks the provider for what only it knows: the model of a server that has its own, and the window of a local
    /// model that is not in the catalogue.
    async fn ask_provider(&mut self, state: &RuntimeState) {
        let ResolvedConfig { provider, model, .. } = &self.config;
        // A child keeps its parent's choices; a host's provider is not reachable from here.
        if self.request.child.is_some() || provider.base_url.is_none() {
            return;
        }
        if model.name.is_none()
            && let Some(first) = state.directory.first_model(provider).await
        {
            self.settings.model = first;
        }
        let chosen = &self.settings.model;
        if model.context_window.is_none() && state.catalogue.lookup(chosen).is_fallback {
            state.directory.learn_window(provider, chosen).await;
        }
    }

    fn resolve(state: &RuntimeState, request: OpenRequest) -> Result<Self, RuntimeError> {
        let (config, settings) = request.resolve(state)?;
        let id = match &request.id {
            RequestedId::New(None) => state.new_thread_id(),
            RequestedId::New(Some(id)) => unused(state, id)?,
            RequestedId::Reserved(id) | RequestedId::Existing(id) => id.clone(),
        };
        Ok(Self { request, id, config, settings })
    }

    fn attach_host(mut self, state: &RuntimeState) -> Result<AttachedThread, RuntimeError> {
        let session = state.delegation.open_session(&self.id, &self.request.terms)?;
        let choices = HostChoices::clone(&self.settings.host).carried_by(session.as_deref());
        self.settings.host = Arc::new(choices);
        let memories = folder_of(&self.config, &self.settings, &self.request.client.originator);
        self.settings.memories = memories.filter(|_| self.config.memories.is_used).map(Arc::new);
        self.settings.environments = match self.request.environments.take() {
            Some(EnvironmentChoice::Requested(chosen)) => Some(state.environments.choose(&self.id, chosen)?),
            Some(EnvironmentChoice::Stored(chosen)) => {
                Some(state.environments.choose_again(&self.id, chosen))
            }
            None => self.settings.environments,
        };
        Ok(AttachedThread { resolved: self, session })
    }
}

impl AttachedThread {
    /// Creates the record and does all other work on the disk.
    fn record(self, state: &RuntimeState) -> Result<RecordedThread, RuntimeError> {
        let Self { resolved: ResolvedThread { mut request, id, config, settings }, session } = self;
        if let Some(import) = request.import.take()
            && let Some(imported) = import.read(&state.uploads, None, &id)?
        {
            (request.history, request.record) = split(imported);
            request.turns.clone_from(&request.history.turns);
        }
        let meta = meta_of(state, &request, &config, &id, &settings);
        opt_out(&config, &settings, &meta.originator, &id);
        let inherited = request.child.as_ref().map(|child| child.transport.clone());
        let transport: Arc<dyn ModelTransport> = match (&session, inherited) {
            (Some(session), _) if session.carries_requests() => {
                Arc::new(DelegatedTransport::new(session.clone()))
            }
            (_, Some(inherited)) => inherited,
            (_, None) => state.providers.transport(&config, &request.client)?,
        };
        let services = state.services(!request.ephemeral && !request.terms.host_keeps_record())?;
        let preview = preview_of(&request);
        let record = first_records(state, &mut request, &services.store, &meta, session.as_ref())?;
        let FirstRecords { journal, rollout, host_record, mut answer } = record;
        answer.pending_operations = request.pending_operations.take();
        answer.rollout_ordinal = host_record.as_ref().map(|record| record.committed());
        let path = match (&journal, request.ephemeral || host_record.is_some()) {
            (_, true) => None,
            (Some(journal), false) => Some(journal.path().to_owned()),
            (None, false) => Some(services.store.path_for(&id, meta.created_at_ms)?),
        };
        let bench = Bench::new(bench_of(state, &config, &settings, &id, path.is_some()));
        for prefix in &request.agreed_rules {
            // A failure is logged there, and the thread is opened all the same.
            let _ = bench.save_rule(prefix);
        }
        if request.terms.host_keeps_record() {
            // Rules that a client approved for the task apply in each of its runtimes, and only for the task. A rule
            // whose operation has not started is saved when it starts.
            let waiting = agreed_rules(&request.history);
            let held = request.history.amendments.iter().filter(|prefix| !waiting.contains(prefix));
            held.for_each(|prefix| bench.allow(prefix));
        }
        Ok(RecordedThread {
            request,
            config,
            settings,
            session,
            meta,
            journal,
            rollout,
            host_record,
            transport,
            services,
            answer,
            bench,
            path,
            preview,
        })
    }
}

/// The initial record, and what the response tells the host about it.
struct FirstRecords {
    journal: Option<ThreadJournal>,
    rollout: Option<Box<ReferenceRollout>>,
    host_record: Option<Box<HostRecord>>,
    answer: HostAnswer,
}

/// Creates the record if the request has one. Otherwise it begins with the first turn.
fn first_records(
    state: &RuntimeState,
    request: &mut OpenRequest,
    store: &Store,
    meta: &SessionMeta,
    session: Option<&Arc<HostSession>>,
) -> Result<FirstRecords, RuntimeError> {
    let host = session.filter(|_| request.terms.host_keeps_record()).cloned();
    let (items, ephemeral) = (&request.history.model, request.ephemeral);
    let mut answer = HostAnswer::default();
    let (mut journal, mut rollout, mut host_record) = (None, None, None);
    match (std::mem::replace(&mut request.record, RecordSource::Nothing), host) {
        (RecordSource::Nothing, None) => {}
        (RecordSource::Nothing, Some(host)) => host_record = Some(HostRecord::fresh(host, meta.clone())),
        (RecordSource::Journal(own), _) => journal = Some(*own),
        (RecordSource::Reference(theirs), _) => rollout = Some(theirs),
        (RecordSource::Copy { records, answer: of_import }, host) => {
            answer = *of_import;
            match host {
                Some(host) => {
                    let entry = |(at_ms, record)| JournalEntry { seq: 0, at_ms, record };
                    let entries = records.into_iter().map(entry).collect();
                    host_record = Some(HostRecord::rebuilt(host, meta.clone(), entries));
                }
                None if !ephemeral => journal = Some(write_copy(store, meta, &records)?),
                None => {}
            }
        }
        (RecordSource::Items, Some(host)) => {
            let entries = entries_of(state.now_ms(), items);
            host_record = Some(HostRecord::rebuilt(host, meta.clone(), entries));
        }
        (RecordSource::Items, None) if !ephemeral => {
            let batch = history_batch(state.now_ms(), meta, items)?;
            journal = Some(store.create(&meta.thread_id, batch)?);
        }
        (RecordSource::Items, None) => {}
        (RecordSource::Imported { entries, fidelity, rebuilt, digest }, host) => {
            answer = HostAnswer::of_import(fidelity, rebuilt, digest);
            match host {
                Some(host) if fidelity == HistoryFidelity::Exact => {
                    host_record = Some(HostRecord::known(host, meta.thread_id.clone(), entries));
                }
                Some(host) => host_record = Some(HostRecord::rebuilt(host, meta.clone(), entries)),
                None if !ephemeral => {
                    journal = Some(write_copy(store, meta, &without_identity(entries))?);
                }
                None => {}
            }
        }
    }
    Ok(FirstRecords { journal, rollout, host_record: host_record.map(Box::new), answer })
}

impl RecordedThread {
    /// Starts the actor and stores its handle.
    fn start(self, state: &Arc<RuntimeState>, required: RequiredServers) -> OpenedThread {
        let Self { mut request, config, mut settings, session, meta, journal, rollout, .. } = self;
        let Self { host_record, transport, mut services, mut answer, bench, path, preview, .. } = self;
        let mut seed = request.seed(meta.thread_id.clone());
        if let Some(agent) = state.agents.enter(&meta) {
            seed.agent_path = agent.family.path.clone();
            settings.agent_depth = agent.family.depth;
            services.audience = Arc::new(ChildObserver::new(services.audience, agent, Arc::downgrade(state)));
        }
        if let Some(folder) = &settings.memories {
            let (audience, clock) = (services.audience, state.clock.clone());
            services.audience = Arc::new(CitationObserver::new(audience, folder.clone(), clock));
        }
        let mcp = mcp_source(state, &config, &settings.cwd, &meta.thread_id, &services.audience, required);
        let sources = mcp.iter().map(|mcp| mcp.clone() as Arc<dyn ToolSource>).collect();
        let children = Arc::new(Children::of(state, &meta.thread_id));
        let bench = Arc::new(bench.with_agents(children).with_sources(sources));
        rediscover(&bench, &settings, &seed.history);
        state.skills.thread_opened(&meta.thread_id, &config);
        answer.delegation = session.as_ref().map(|session| session.effective());
        answer.rollout_ownership = request.terms.ownership();
        if request.terms.has_host() && request.child.is_none() {
            answer.offer(state.steps.effective_tools(&settings));
        }
        let row = journal.as_ref().map(ThreadJournal::row);
        let row = row.or_else(|| rollout.as_ref().map(|rollout| rollout.row().clone()));
        let identity = Arc::new(ThreadIdentity {
            meta: meta.clone(),
            ephemeral: request.ephemeral,
            path,
            preview,
            requirements: config.requirements.clone(),
        });
        let is_root = request.child.is_none();
        let is_resumed = matches!(request.id, RequestedId::Existing(_));
        let hooks = Arc::new(ThreadHooks::new(&config, is_resumed, identity.path.clone()));
        let client = Some(request.client.originator.clone()).filter(|name| !name.is_empty());
        let notify = Arc::new(NotifyCommand::new(config.notify.clone(), client));
        let clock = bench.clock().clone();
        let plan = ThreadPlan {
            seed,
            meta,
            journal,
            rollout,
            ephemeral: request.ephemeral,
            host_record,
            session: session.clone(),
            settings: settings.clone(),
            transport: transport.clone(),
            recovered: request.recovered,
            bench,
            hooks: hooks.clone(),
            notify: notify.clone(),
        };
        let store = services.store.clone();
        let handle = open_thread(services, plan);
        if identity.path.is_some() && is_root {
            let (config, meta) = (&config, &identity.meta);
            let asker =
                MemoryAsker { config, settings: &settings, meta, store: &store, transport: &transport };
            begin_memories(state, &asker);
        }
        let thread = identity.describe(row.as_ref(), ThreadStatus::Idle, request.turns);
        state.threads.insert(Loaded { handle, identity, clock, transport, session, mcp, hooks, notify });
        let unknown = state.unknown_model_warning(&config, &settings.model);
        OpenedThread {
            thread,
            settings,
            answer,
            warnings: config.review_warnings().map(Into::into).collect(),
            unknown_model: unknown,
            deprecations: config.deprecations.into_iter().map(Into::into).collect(),
        }
    }
}

/// Refuses the id of an existing thread.
pub(crate) async fn check_unused(state: &Arc<RuntimeState>, id: &ThreadId) -> Result<(), RuntimeError> {
    let (state, id) = (state.clone(), id.clone());
    blocking(move || unused(&state, &id)).await?.map(|_| ())
}

/// The id, if no other thread has it.
fn unused(state: &RuntimeState, id: &ThreadId) -> Result<ThreadId, RuntimeError> {
    // If nothing can be stored, no stored thread has this id.
    let is_stored = state.records.store().is_ok_and(|store| store.summary(id).is_ok());
    if state.loaded(id).is_some() || is_stored {
        return Err(RuntimeError::ThreadExists(id.clone()));
    }
    Ok(id.clone())
}

fn meta_of(
    state: &RuntimeState,
    request: &OpenRequest,
    config: &ResolvedConfig,
    id: &ThreadId,
    settings: &ThreadSettings,
) -> SessionMeta {
    if let (RequestedId::Existing(_), Some(meta)) = (&request.id, &request.history.meta) {
        return meta.clone();
    }
    let child = request.child.as_deref();
    SessionMeta {
        thread_id: id.clone(),
        session_id: child.map_or_else(|| id.to_string(), |child| child.session_id.clone()),
        created_at_ms: state.now_ms(),
        cwd: settings.cwd.clone(),
        originator: request.client.originator.clone(),
        cli_version: state.version.clone(),
        source: child.map_or_else(|| state.source.clone(), |child| child.source.clone()),
        model_provider: settings.model_provider.clone(),
        model: Some(settings.model.clone()),
        base_instructions: settings.base_instructions.as_deref().map(str::to_owned),
        developer_instructions: settings.developer_instructions.as_deref().map(str::to_owned),
        forked_from_id: request.forked_from.clone(),
        thread_source: request.thread_source.clone(),
        agent_nickname: child.and_then(|child| child.nickname.clone()),
        agent_role: child.and_then(|child| child.role.clone()),
        git_info: git_facts(settings),
        dynamic_tools: Some(request.dynamic_tools.clone()).filter(|tools| !tools.is_empty()),
        memory_mode: memory_mode(config),
    }
}

fn bench_of(
    state: &RuntimeState,
    config: &ResolvedConfig,
    settings: &ThreadSettings,
    id: &ThreadId,
    keeps_outputs: bool,
) -> BenchOptions {
    let (mut usual, registry) =
        (bench_options(config, id.as_str(), state.clock.clone()), state.steps.registry());
    state.listeners.lock().add_to(&mut usual.off_limits);
    BenchOptions {
        // A thread without a record here stores nothing else here either.
        outputs: usual.outputs.filter(|_| keeps_outputs),
        ask_always: settings.host.manual_tool_execution,
        ask_for: settings.host.asked_about(registry),
        no_patches: settings.host.refuses_patches(registry),
        ..usual
    }
}

/// The list preview of a thread without a record.
fn preview_of(request: &OpenRequest) -> String {
    match (&request.record, &request.child) {
        (RecordSource::Items, None) => first_words(&request.history.model),
        (RecordSource::Copy { .. }, _) => request.history.summary.preview.clone().unwrap_or_default(),
        _ => String::new(),
    }
}

/// The records of an import for our own record, which has its own identity.
fn without_identity(entries: Vec<JournalEntry>) -> Vec<(i64, Record)> {
    let records = entries.into_iter().map(|entry| (entry.at_ms, entry.record));
    let is_identity = |record: &Record| matches!(record, Record::Known(RolloutRecord::SessionMeta { .. }));
    records.filter(|(_, record)| !is_identity(record)).collect()
}

fn entries_of(at_ms: i64, items: &[ResponseItem]) -> Vec<JournalEntry> {
    let records = items.iter().map(|item| RolloutRecord::ResponseItem { turn_id: None, item: item.clone() });
    records.map(|record| JournalEntry { seq: 0, at_ms, record: record.into() }).collect()
}

/// Offers the tools again that the model found by searching.
pub(crate) fn rediscover(bench: &Bench, settings: &ThreadSettings, history: &[ResponseItem]) {
    let has_deferred = settings.dynamic_tools.iter().any(|tool| tool.defer_loading);
    for item in history {
        match item {
            ResponseItem::FunctionCallOutput { output: FunctionCallOutputBody::Text(text), .. }
                if has_deferred =>
            {
                SearchToolBm25::found_in(text).iter().for_each(|name| bench.discover(name));
            }
            ResponseItem::ToolSearchOutput { tools, .. } => {
                ToolSearch::found_in(tools).iter().for_each(|name| bench.discover(name));
            }
            _ => {}
        }
    }
}
