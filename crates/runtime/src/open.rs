//! Bringing threads into memory: new ones, stored ones, and copies.

use std::path::Path;
use std::sync::Arc;

use config::Config;
use engine::ThreadSeed;
use environments::stored_choice;
use journal::{History, JournalError, Resumed, ThreadJournal};
use model::ModelTransport;
use protocol::{
    EnvironmentSelection, FunctionCallOutputBody, ResponseItem, RolloutRecord, ServerNotification,
    SessionMeta, Thread, ThreadForkParams, ThreadId, ThreadResumeParams, ThreadStartParams, ThreadStatus,
    ThreadStatusChangedNotification, Turn, TurnId, TurnStatus,
};
use tools::{Bench, BenchOptions, SearchToolBm25};

use crate::agents::{Adopted, Children, Overheard, recorded_status, tell_late, told_now};
use crate::bridge::Bridge;
use crate::delegation::{DelegatedTransport, DelegationError, Host, Terms};
use crate::error::RuntimeError;
use crate::handle::{Snapshot, Then};
use crate::host_choices::HostChoices;
use crate::host_record::HostRecord;
use crate::hydrate::Brought;
use crate::ids::check_thread_id;
use crate::load::{Stored, Wishes};
use crate::open_checks::{check_dynamic_tools, first_words, id_of_path, unsupported_fork, unsupported_start};
use crate::open_host::bring;
use crate::opened::{HostAnswer, Opened};
use crate::reading::git_facts;
use crate::recover::recover;
use crate::runtime::{Loaded, Runtime, ThreadIdentity, lock};
use crate::services::{ThreadPlan, open_thread};
use crate::settings::ThreadSettings;
use crate::take_up::{pending, resolve};
use crate::tool_set::{asked_tool_set, refuse_beside};
use crate::workbench::bench_options;

/// A thread about to be brought into memory.
pub(crate) struct Opening {
    pub(crate) meta: SessionMeta,
    pub(crate) settings: ThreadSettings,
    pub(crate) config: Config,
    pub(crate) journal: Option<ThreadJournal>,
    pub(crate) ephemeral: bool,
    pub(crate) host_record: Option<Box<HostRecord>>,
    pub(crate) preview: String,
    pub(crate) recovered: Vec<RolloutRecord>,
    pub(crate) told: HostAnswer,
    /// That of the parent, for a child. Unset: as configured.
    pub(crate) transport: Option<Arc<dyn ModelTransport>>,
}

impl Opening {
    /// Of a thread without a past.
    pub(crate) fn new(meta: SessionMeta, settings: ThreadSettings, config: Config) -> Self {
        Self {
            meta,
            settings,
            config,
            journal: None,
            ephemeral: false,
            host_record: None,
            preview: String::new(),
            recovered: Vec::new(),
            told: HostAnswer::default(),
            transport: None,
        }
    }
}

/// Where the past of a thread comes from.
enum Past {
    /// Its record on this machine.
    Stored(Box<Resumed>),
    /// The host.
    Brought(Box<Brought>),
}

impl Runtime {
    /// A new thread. It has a record from its first turn on.
    pub async fn start_thread(
        &self,
        mut params: ThreadStartParams,
        host: Option<Arc<dyn Host>>,
    ) -> Result<Opened, RuntimeError> {
        unsupported_start(&params)?;
        let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
        if terms.is_full() && params.sdk_delegation.is_some() {
            let problem = "cannot be used together with delegation.mode `full`".to_owned();
            return Err(RuntimeError::Field { field: "sdkDelegation", problem });
        }
        let dynamic_tools = params.dynamic_tools.clone().unwrap_or_default();
        check_dynamic_tools(&dynamic_tools)?;
        let tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?;
        if tool_set.is_some() && params.builtin_tools.is_some() {
            return Err(refuse_beside("builtinTools").into());
        }
        if tool_set.is_some() && !dynamic_tools.is_empty() {
            return Err(refuse_beside("dynamicTools").into());
        }
        let chosen = params.environments.clone();
        self.inner.environments.check(chosen.as_deref().unwrap_or_default())?;
        let choices = HostChoices::of_start(&params)?.with_tool_set(tool_set);
        let bridge = params.sdk_delegation.as_ref().map(Bridge::of).transpose()?;
        self.keep_commands_from(bridge.as_ref());
        let wishes = Wishes::of_start(&params, bridge.as_ref()).with_provider(terms.provider());
        let config = self.load_for_thread(&wishes).await?;
        let mut settings = self.settings(&config);
        settings.dynamic_tools = choices.dynamic_tools().unwrap_or_else(|| dynamic_tools.clone().into());
        let id = match &params.thread_id {
            Some(id) => self.fresh(check_thread_id(id)?).await?,
            None => self.inner.ids.thread(self.inner.clock.stamp()),
        };
        settings.host = Arc::new(choices.seated(self.seat(&id, &terms)?));
        let brought = self.brought(bring!(params), None, &id)?;
        let mut meta = self.meta(&id, &settings);
        let chosen = chosen.map(|chosen| self.inner.environments.choose(&id, chosen));
        settings.environments = chosen.transpose()?;
        meta.thread_source = params.thread_source;
        meta.dynamic_tools = (!dynamic_tools.is_empty()).then_some(dynamic_tools);
        let raw_events = params.experimental_raw_events;
        let mut seed = ThreadSeed { raw_events, ..terms.seed(id) };
        let ephemeral = params.ephemeral.unwrap_or(false);
        let mut opening = Opening { ephemeral, ..Opening::new(meta, settings, config) };
        let mut turns = Vec::new();
        if let Some(brought) = brought {
            let Brought { history, .. } = &brought;
            (seed.history, seed.usage) = (history.model.clone(), history.token_usage.clone());
            seed.context.clone_from(&history.told_context);
            turns.clone_from(&history.turns);
            self.keep_brought(&mut opening, brought, &terms).await?;
        } else if terms.host_keeps_record() {
            opening.keep_at_host(HostRecord::fresh);
        }
        Ok(self.tell(self.open(opening, seed, turns)?, &terms))
    }

    /// A thread with its past. A loaded one is joined as it is: `joined` is called between two of its events, so that
    /// whoever subscribes there misses none and gets none twice.
    pub async fn resume_thread(
        &self,
        params: ThreadResumeParams,
        host: Option<Arc<dyn Host>>,
        joined: Then<Opened>,
    ) {
        let ownership = params.rollout_ownership;
        let (takes_up, resolved) =
            (params.resume_turn, params.resolved_operations.clone().unwrap_or_default());
        match self.resume(params, host).await {
            Ok(Resume::Joined { loaded, with_turns, tells_tools, shows_pending }) => {
                let shows_pending = shows_pending || takes_up;
                let (identity, id) = (loaded.identity.clone(), loaded.handle.id().clone());
                let surroundings = self.inner.surroundings.clone();
                let then = Then::new(move |snapshot: Result<Snapshot, RuntimeError>| {
                    let opened = snapshot.map(|mut snapshot| {
                        let pending = shows_pending.then(|| std::mem::take(&mut snapshot.pending));
                        let unfinished = snapshot.unfinished.take().filter(|_| takes_up);
                        snapshot.turns = match with_turns {
                            true => taken_up(snapshot.turns, unfinished.as_ref()),
                            false => Vec::new(),
                        };
                        let tools = tells_tools.then(|| surroundings.effective_tools(&snapshot.settings));
                        let mut opened = identity.opened(snapshot).kept_by(ownership);
                        opened.told.pending_operations = pending;
                        match tools {
                            Some(tools) => opened.offering(tools),
                            None => opened,
                        }
                    });
                    Box::pin(joined.give(opened))
                });
                loaded.handle.look_then(with_turns || shows_pending, then).await;
                self.take_up(&id, takes_up, resolved).await;
            }
            Ok(Resume::Loaded(opened)) => {
                // Told to all before the caller hears of it: the thread is in memory again.
                let (id, status) = (opened.thread.id.clone(), opened.thread.status.clone());
                let told = ThreadStatusChangedNotification { thread_id: id.clone(), status };
                self.inner.audience.tell(&id, ServerNotification::ThreadStatusChanged(told)).await;
                joined.give(Ok(*opened)).await;
                self.take_up(&id, takes_up, resolved).await;
            }
            Err(error) => joined.give(Err(error)).await,
        }
    }

    async fn resume(
        &self,
        params: ThreadResumeParams,
        host: Option<Arc<dyn Host>>,
    ) -> Result<Resume, RuntimeError> {
        let mut params = params;
        let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
        params.tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?.map(|set| *set);
        if params.history.is_some() {
            return self
                .resume_with_history(&params, &terms)
                .await
                .map(|opened| Resume::Loaded(Box::new(opened)));
        }
        let id = match (&params.path, check_thread_id(&params.thread_id)) {
            // Of a thread in memory the path only confirms which one is meant.
            (Some(_), Ok(id)) if self.loaded(&id).is_some() => id,
            (Some(path), _) => id_of_path(path)?,
            (None, id) => id?,
        };
        let _opening = self.opening(&id).await;
        if let Some(loaded) = self.loaded(&id) {
            let handle = loaded.handle.clone();
            self.expect(&id, &terms)?;
            let joined = join(loaded, &params, &terms).await?;
            let brought = match terms.host_keeps_record() {
                true => self.brought(bring!(params), Some(&id), &id)?,
                false => None,
            };
            if self.attach(&id, &terms)? {
                handle.rejoin(brought.map(|brought| brought.entries)).await?;
            }
            return Ok(joined);
        }
        if let Some(brought) = self.brought(bring!(params), Some(&id), &id)? {
            let past = Past::Brought(Box::new(brought));
            return self
                .load_past(id, &params, past, &terms)
                .await
                .map(|opened| Resume::Loaded(Box::new(opened)));
        }
        if terms.host_keeps_record() {
            let problem = "is missing: with rolloutOwnership `client` the host brings the record".to_owned();
            return Err(DelegationError::Unsupported { field: "initialItems", problem }.into());
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
        let past = Past::Stored(Box::new(resumed));
        self.load_past(id, &params, past, &terms).await.map(|opened| Resume::Loaded(Box::new(opened)))
    }

    async fn load_past(
        &self,
        id: ThreadId,
        params: &ThreadResumeParams,
        past: Past,
        terms: &Terms,
    ) -> Result<Opened, RuntimeError> {
        let mut past = past;
        let mut history = match &mut past {
            Past::Stored(resumed) => std::mem::take(&mut resumed.history),
            Past::Brought(brought) => std::mem::take(&mut brought.history),
        };
        // What does not fit is refused before there is a thread; what does is recorded when the turn is taken up.
        let now_ms = self.inner.clock.stamp().now_ms;
        if let Some(resolved) = params.resolved_operations.as_deref().filter(|resolved| !resolved.is_empty())
        {
            resolve(&mut history.clone(), resolved, now_ms)?;
        }
        let mut children = Adopted::known(&history);
        let brought = match &past {
            Past::Stored(_) => None,
            Past::Brought(brought) => Some(brought.entries.as_slice()),
        };
        let late = self.late_news(&id, brought, &mut children).await;
        let mut recovered = tell_late(&mut history);
        if !params.resume_turn {
            recovered.extend(recover(&mut history, now_ms));
        }
        recovered.extend(told_now(&mut history, late));
        let shows_pending = params.resume_turn || terms.shows_operations();
        let pending_operations = shows_pending.then(|| pending(&history));
        let (stored, choices) = (Stored::of(&history), HostChoices::of(&history));
        let wishes = Wishes::of_resume(params, &stored).with_provider(terms.provider());
        check_carrier(&choices, terms, &wishes)?;
        let choices = choices.with_tool_set(params.tool_set.clone().map(Box::new));
        let config = self.load_for_thread(&wishes).await?;
        let mut settings = self.settings(&config);
        let theirs = choices.dynamic_tools();
        settings.host = Arc::new(choices.seated(self.seat(&id, terms)?));
        settings.environments = self.chosen_before(&id, &history);
        let meta = history.meta.clone().unwrap_or_else(|| self.meta(&id, &settings));
        settings.dynamic_tools =
            theirs.unwrap_or_else(|| meta.dynamic_tools.clone().unwrap_or_default().into());
        let mut opening = Opening { recovered, ..Opening::new(meta, settings, config) };
        opening.told.pending_operations = pending_operations;
        match past {
            Past::Stored(resumed) => {
                let Resumed { journal, recovery, .. } = *resumed;
                if !recovery.damage.is_empty() {
                    let lost = recovery.damage.total();
                    tracing::warn!(thread = %id, lost, "a damaged record was read as far as possible");
                }
                opening.journal = Some(journal);
            }
            Past::Brought(brought) => self.keep_brought(&mut opening, *brought, terms).await?,
        }
        let History { model, turns, token_usage, told_context, unfinished_turn, .. } = history;
        let (history, usage, context) = (model, token_usage, told_context);
        let seed = ThreadSeed { history, usage, context, ..terms.seed(id) };
        let (stood, goes_on) = (recorded_status(&turns), params.resume_turn && unfinished_turn.is_some());
        let owed = self.owed(&seed.id, &turns);
        let turns = match params.exclude_turns {
            true => Vec::new(),
            false => taken_up(turns, unfinished_turn.filter(|_| params.resume_turn).as_ref()),
        };
        let opened = self.open(opening, seed, turns)?;
        if let Some(owed) = owed {
            self.pay(&opened.thread.id, owed);
        }
        self.recall(&opened.thread.id, stood, goes_on);
        self.adopt(&opened.thread.id, opened.settings.tools.agents.max_threads, children);
        Ok(self.tell(opened, terms))
    }

    /// A new thread whose model remembers what the caller says it should.
    async fn resume_with_history(
        &self,
        params: &ThreadResumeParams,
        terms: &Terms,
    ) -> Result<Opened, RuntimeError> {
        if let Ok(id) = check_thread_id(&params.thread_id)
            && self.loaded(&id).is_some()
        {
            return Err(RuntimeError::HistoryWhileLoaded(id));
        }
        let items = params.history.clone().unwrap_or_default();
        if items.is_empty() {
            return Err(RuntimeError::EmptyHistory);
        }
        let stored = Stored::default();
        let wishes = Wishes::of_resume(params, &stored).with_provider(terms.provider());
        let config = self.load_for_thread(&wishes).await?;
        let mut settings = self.settings(&config);
        let id = self.inner.ids.thread(self.inner.clock.stamp());
        let choices = HostChoices::default().with_tool_set(params.tool_set.clone().map(Box::new));
        settings.dynamic_tools = choices.dynamic_tools().unwrap_or_default();
        settings.host = Arc::new(choices.seated(self.seat(&id, terms)?));
        let meta = self.meta(&id, &settings);
        let preview = first_words(&items);
        let now_ms = self.inner.clock.stamp().now_ms;
        let journal = self.store()?.create(&id, crate::fork::history_batch(now_ms, &meta, &items)?)?;
        let seed = ThreadSeed { history: items, ..terms.seed(id) };
        let opening = Opening { journal: Some(journal), preview, ..Opening::new(meta, settings, config) };
        Ok(self.tell(self.open(opening, seed, Vec::new())?, terms))
    }

    /// A new thread that begins with a copy of another's past.
    pub async fn fork_thread(
        &self,
        params: ThreadForkParams,
        host: Option<Arc<dyn Host>>,
    ) -> Result<Opened, RuntimeError> {
        unsupported_fork(&params)?;
        let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
        let tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?;
        let source = match &params.path {
            Some(path) => id_of_path(path)?,
            None => check_thread_id(&params.thread_id)?,
        };
        self.check_path(&source, params.path.as_deref()).await?;
        let copy = self.read_to_copy(&source).await?;
        let (stored, choices) = (Stored::of(&copy.history), HostChoices::of(&copy.history));
        let wishes =
            Wishes::of_fork(&params, &stored, &self.current_provider()).with_provider(terms.provider());
        check_carrier(&choices, &terms, &wishes)?;
        let choices = choices.with_tool_set(tool_set);
        let config = self.load_for_thread(&wishes).await?;
        let mut settings = self.settings(&config);
        let dynamic_tools = copy.history.meta.as_ref().and_then(|meta| meta.dynamic_tools.clone());
        settings.dynamic_tools =
            choices.dynamic_tools().unwrap_or_else(|| dynamic_tools.clone().unwrap_or_default().into());
        let id = self.inner.ids.thread(self.inner.clock.stamp());
        settings.host = Arc::new(choices.seated(self.seat(&id, &terms)?));
        settings.environments = self.chosen_before(&id, &copy.history);
        let mut meta = self.meta(&id, &settings);
        meta.forked_from_id = Some(source);
        meta.thread_source.clone_from(&params.thread_source);
        meta.dynamic_tools = dynamic_tools;
        let preview = copy.history.summary.preview.clone().unwrap_or_default();
        let journal = if params.ephemeral { None } else { Some(self.write_copy(&meta, copy.records).await?) };
        let History { model, turns, token_usage, told_context, .. } = copy.history;
        let (history, usage, context) = (model, token_usage, told_context);
        let seed = ThreadSeed { history, usage, context, ..terms.seed(id) };
        let turns = if params.exclude_turns { Vec::new() } else { turns };
        let ephemeral = params.ephemeral;
        let opening = Opening { journal, ephemeral, preview, ..Opening::new(meta, settings, config) };
        Ok(self.tell(self.open(opening, seed, turns)?, &terms))
    }

    /// A caller that agreed on anything is told what its thread has.
    fn tell(&self, opened: Opened, terms: &Terms) -> Opened {
        let opened = opened.kept_by(terms.ownership());
        if !terms.has_host() {
            return opened;
        }
        let tools = self.inner.surroundings.effective_tools(&opened.settings);
        opened.offering(tools)
    }

    /// Starts the actor and keeps its handle.
    pub(crate) fn open(
        &self,
        opening: Opening,
        mut seed: ThreadSeed,
        turns: Vec<Turn>,
    ) -> Result<Opened, RuntimeError> {
        let Opening { meta, mut settings, config, journal, ephemeral, preview, recovered, .. } = opening;
        let (host_record, inherited, mut told) = (opening.host_record, opening.transport, opening.told);
        let transport = match settings.host.seat.as_ref().filter(|seat| seat.carries_requests()) {
            Some(seat) => Arc::new(DelegatedTransport::new(seat.clone())),
            None => inherited.map_or_else(|| self.transport(&config), Ok)?,
        };
        let keeps_record = journal.is_some() || !(ephemeral || host_record.is_some());
        let mut services = self.services(keeps_record)?;
        if let Some(agent) = self.inner.agents.enter(&meta) {
            seed.agent_path = agent.family.path.clone();
            settings.agent_depth = agent.family.depth;
            services.audience =
                Arc::new(Overheard::new(services.audience, agent, Arc::downgrade(&self.inner)));
        }
        told.rollout_ordinal = host_record.as_ref().map(|record| record.next());
        let path = match (&journal, ephemeral || host_record.is_some()) {
            (_, true) => None,
            (Some(journal), false) => Some(journal.path().to_owned()),
            (None, false) => Some(services.store.path_for(&meta.thread_id, meta.created_at_ms)?),
        };
        let row = journal.as_ref().map(ThreadJournal::row);
        let usual = bench_options(&config, meta.thread_id.as_str());
        let options = BenchOptions {
            // A thread without a record here leaves nothing else here.
            outputs: usual.outputs.filter(|_| path.is_some()),
            off_limits: self.off_limits(&config),
            ask_always: settings.host.manual_tool_execution,
            ask_for: settings.host.asked_about(self.inner.surroundings.registry()),
            no_patches: settings.host.refuses_patches(self.inner.surroundings.registry()),
            ..usual
        };
        let children = Children::of(self, &meta.thread_id);
        let bench = Arc::new(Bench::new(options).with_agents(Arc::new(children)));
        rediscover(&bench, &settings, &seed.history);
        self.inner.skills.opened(&meta.thread_id, &config);
        let warnings = config.review_warnings().map(Into::into).collect();
        let deprecations = config.deprecations.into_iter().map(Into::into).collect();
        let requirements = config.requirements;
        let identity =
            Arc::new(ThreadIdentity { meta: meta.clone(), ephemeral, path, preview, requirements });
        let (opened, clock) = (settings.clone(), bench.clock().clone());
        let plan =
            ThreadPlan { seed, meta, journal, ephemeral, host_record, settings, transport, recovered, bench };
        let transport = plan.transport.clone();
        let handle = open_thread(services, plan);
        let thread: Thread = identity.describe(row.as_ref(), ThreadStatus::Idle, turns);
        self.keep(Loaded { handle, identity, clock, transport });
        Ok(Opened { thread, settings: opened, told, deprecations, warnings })
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

    pub(crate) async fn fresh(&self, id: ThreadId) -> Result<ThreadId, RuntimeError> {
        let wanted = id.clone();
        // Where nothing can be stored, no thread is stored under this id.
        let stored = self.on_disk(move |store| store.summary(&wanted)).await;
        if self.loaded(&id).is_some() || stored.is_ok_and(|stored| stored.is_ok()) {
            return Err(RuntimeError::ThreadExists(id));
        }
        Ok(id)
    }

    /// A stored thread goes on in the environments it had.
    pub(crate) fn chosen_before(
        &self,
        id: &ThreadId,
        history: &History,
    ) -> Option<Arc<[EnvironmentSelection]>> {
        let chosen = stored_choice(history.turn_context.as_ref())?;
        Some(self.inner.environments.choose_again(id, chosen))
    }

    pub(crate) fn meta(&self, id: &ThreadId, settings: &ThreadSettings) -> SessionMeta {
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
            git_info: git_facts(settings),
            dynamic_tools: None,
        }
    }
}

/// A turn that is about to go on has no end yet.
fn taken_up(mut turns: Vec<Turn>, unfinished: Option<&TurnId>) -> Vec<Turn> {
    if let Some(turn) = turns.iter_mut().rfind(|turn| Some(&turn.id) == unfinished) {
        (turn.status, turn.completed_at, turn.duration_ms) = (TurnStatus::InProgress, None, None);
    }
    turns
}

/// What the model looked for and found stays offered to it.
pub(crate) fn rediscover(bench: &Bench, settings: &ThreadSettings, history: &[ResponseItem]) {
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
    Joined { loaded: Loaded, with_turns: bool, tells_tools: bool, shows_pending: bool },
    Loaded(Box<Opened>),
}

/// What was said in a thread whose requests its host carried is for that host, unless the caller chooses otherwise.
fn check_carrier(before: &HostChoices, terms: &Terms, wishes: &Wishes<'_>) -> Result<(), RuntimeError> {
    if !before.is_delegated || terms.is_full() || wishes.chooses_provider() {
        return Ok(());
    }
    let problem = "is missing: a host carried this thread's model requests; pass it again, or modelProvider to go on \
                   without the host";
    Err(DelegationError::Unsupported { field: "delegation", problem: problem.to_owned() }.into())
}

/// A thread that is in memory already. What the caller asks for beyond joining it has no effect.
async fn join(loaded: Loaded, params: &ThreadResumeParams, terms: &Terms) -> Result<Resume, RuntimeError> {
    if let (Some(requested), Some(active)) = (&params.path, &loaded.identity.path)
        && Path::new(requested) != active
    {
        return Err(RuntimeError::OtherPath {
            id: loaded.handle.id().clone(),
            requested: requested.clone(),
            active: active.display().to_string(),
        });
    }
    let now = loaded.handle.look(false).await?;
    if now.row.is_none() && now.next_ordinal.is_none() {
        return Err(RuntimeError::NoRecord(loaded.handle.id().clone()));
    }
    if params.tool_set.is_some() && now.settings.host.tool_set.as_deref() != params.tool_set.as_ref() {
        let problem = "differs from that of the thread, which is in memory".to_owned();
        return Err(DelegationError::Unsupported { field: "toolSet", problem }.into());
    }
    let (with_turns, shows_pending) = (!params.exclude_turns, terms.shows_operations());
    Ok(Resume::Joined { with_turns, loaded, tells_tools: terms.has_host(), shows_pending })
}

impl ThreadIdentity {
    pub(crate) fn opened(&self, snapshot: Snapshot) -> Opened {
        let thread = self.describe(snapshot.row.as_ref(), snapshot.status, snapshot.turns);
        let rollout_ordinal = snapshot.next_ordinal;
        let told = HostAnswer { rollout_ordinal, ..HostAnswer::default() };
        Opened { thread, settings: snapshot.settings, told, deprecations: Vec::new(), warnings: Vec::new() }
    }
}
