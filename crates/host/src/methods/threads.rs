//! Threads: opened by a runtime once, and read from the store ever after.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use journal::{page_cursor, parse_page_cursor};
use protocol::{
    SessionSource, SortDirection, SubAgentSource, Thread, ThreadId, ThreadListCwd, ThreadListParams,
    ThreadResumeParams, ThreadSortKey, ThreadSourceKind, ThreadStartParams, Turn,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{
    NewTask, OperationFilter, OperationRow, TaskChange, TaskCreation, TaskFilter, TaskOrder, TaskRow,
    TaskState, parse_task_cursor, task_cursor,
};
use tokio::sync::oneshot;

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::link::{LinkAnswer, OrderedAnswer};
use crate::messages::{TaskCommand, TaskPass};
use crate::open_runtime::all_records;
use crate::operations::shown_operation;
use crate::placing::AskedSandbox;
use crate::settings::{TaskSettings, check_delegation};
use crate::task_host::TaskHost;
use task::TaskInput;

const DEFAULT_LIMIT: u32 = 25;
const MAX_LIMIT: u32 = 100;
/// The longest name of a thread, in characters. Every list has it.
const MAX_NAME: usize = 1_000;
/// How long a resume waits for a runtime that it can do without.
const LOAD_WITHIN: Duration = Duration::from_secs(2);
const MAX_LABELS: usize = 32;
const MAX_LABEL_NAME: usize = 64;
const MAX_LABEL: usize = 256;
/// Rows that are looked at for one page of a list with filters.
const MAX_ROWS: usize = 10_000;

/// The answer to `thread/resume` as JSON, with its turns.
pub type JoinReply = Result<Value, TaskError>;

/// How much a resume may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeManner {
    /// The caller only looks: nothing is started.
    Look,
    /// A turn that waits for a decision gets its runtime back, so that the question is asked again.
    Follow,
    /// Also loads the thread, for clients that know no threads but loaded ones.
    Load,
}

/// One page of `thread/list`.
#[derive(Debug)]
pub struct ThreadPageOfHost {
    pub threads: Vec<Thread>,
    pub cursor: Option<String>,
}

impl TaskHost {
    /// Commits the task, brings its runtime up, and answers as the runtime does. Repeated with the same `threadId`, it
    /// joins the task.
    pub async fn start_thread(
        &self,
        params: ThreadStartParams,
        by: &str,
        user_agent: &str,
    ) -> Result<Box<RawValue>, TaskError> {
        self.check_start(&params)?;
        let id = match &params.thread_id {
            Some(id) => check_thread_id(id)?,
            None => self.new_thread_id(),
        };
        let place = self.place_of(&params)?;
        let settings = TaskSettings::started_with(&params, user_agent).to_value();
        let created = match self.shared.store.task(&id).await? {
            // As everywhere else: one that is archived has to be taken back first, and a child is its parent's.
            Some(row) if row.is_archived || row.id != row.root => return Err(TaskError::NoRecord(id)),
            Some(row) if TaskSettings::read(&row.settings).has_other_carrier(params.delegation.as_ref()) => {
                let problem = "the thread is there already, with another provider; resume it with this one";
                return Err(TaskError::Field { field: "delegation", problem: problem.to_owned() });
            }
            Some(row) => TaskCreation::Existed(row),
            None => {
                let (placement_id, site) = self.put_place(place, &id, by).await?;
                let new = NewTask {
                    labels: params.labels.clone().unwrap_or_default(),
                    agent_digest: params.agent_digest.clone(),
                    placement_id,
                    site,
                    settings,
                    priority: params.priority.map_or(0, i64::from),
                    ..new_task(id.clone())
                };
                self.shared.audited(by, "thread/start", &id, json!({})).create_task(new).await?
            }
        };
        let opened = self.open_now(&id).await;
        if let (Err(error), TaskCreation::Created(row)) = (&opened, &created) {
            tracing::info!(%error, thread = %id, "a thread could not be started");
            // Nobody knows of it: a refused start leaves nothing behind.
            self.shared.audited(by, "task/delete", &id, not_started()).delete_task(&id).await?;
            self.drop_place_of(row, by).await;
        }
        opened
    }

    /// From now on, what the runtime of this thread says waits for [`Self::release_notices`]: nobody follows it yet.
    pub fn hold_notices(&self, thread: &ThreadId) {
        // One that runs has followers.
        if !self.shared.living.lock().contains_key(thread) {
            self.shared.early.hold(thread);
        }
    }

    /// Whoever started the thread follows it: what was said meanwhile is sent, then the rest as it comes.
    pub async fn release_notices(&self, thread: &ThreadId) {
        let gate = self.shared.living.lock().get(thread).map(|task| task.gate.clone());
        let _held = match &gate {
            Some(gate) => Some(gate.lock().await),
            None => None,
        };
        for (method, params) in self.shared.early.release(thread) {
            self.shared.clients.relay(thread, &method, &params, None).await;
        }
    }

    /// The thread that clients know by this path.
    pub fn thread_at(path: &str) -> Result<ThreadId, TaskError> {
        let path = Path::new(path);
        let id = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let found =
            check_thread_id(&ThreadId::new(id)).ok().filter(|_| path.extension() == Some("jsonl".as_ref()));
        let problem = "a host keeps its threads in the store; give the path that it shows, or `threadId`";
        found.ok_or_else(|| TaskError::Field { field: "path", problem: problem.to_owned() })
    }

    /// An id for a thread that is to be.
    pub fn new_thread_id(&self) -> ThreadId {
        ThreadId::new(self.shared.new_uuid())
    }

    fn check_start(&self, params: &ThreadStartParams) -> Result<(), TaskError> {
        let field = |field, problem: &str| Err(TaskError::Field { field, problem: problem.to_owned() });
        let provider = &self.shared.options.provider.id;
        if params.model_provider.as_ref().is_some_and(|asked| asked != provider) {
            let problem = format!("this host carries requests to `{provider}`; leave it out");
            return field("modelProvider", &problem);
        }
        check_labels(params.labels.as_ref())?;
        if params.ephemeral == Some(true) {
            return field("ephemeral", "a host keeps every thread; use an app-server for this one");
        }
        check_delegation(params.delegation.as_ref())?;
        if params.rollout_ownership.is_some() {
            return field("rolloutOwnership", "the host itself keeps the record");
        }
        if params.initial_items.is_some()
            || params.turn_history.is_some()
            || params.initial_items_ref.is_some()
        {
            return field("initialItems", "a host begins threads without a history, or by thread/fork");
        }
        if params.sdk_delegation.is_some() {
            return field("sdkDelegation", "the host itself carries requests");
        }
        Ok(())
    }

    /// The thread as its runtime opens it, or has opened it.
    pub(crate) async fn open_now(&self, id: &ThreadId) -> Result<Box<RawValue>, TaskError> {
        let (told, opened) = oneshot::channel();
        let answer: OrderedAnswer = Box::new(move |result: LinkAnswer| drop(told.send(result)));
        self.send(id, TaskCommand::Pass { pass: TaskPass::Open(answer), trace: traces::current() }).await?;
        match opened.await {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(Some(error))) => Err(TaskError::Refused(error)),
            Ok(Err(None)) | Err(_) => Err(TaskError::RuntimeGone(id.clone())),
        }
    }

    /// Answers by `join` between two messages of the runtime: whoever is subscribed there misses nothing and hears nothing
    /// twice.
    pub async fn resume_thread<F: Future<Output = ()>>(
        &self,
        params: ThreadResumeParams,
        manner: ResumeManner,
        join: impl FnOnce(JoinReply) -> F,
    ) {
        let may_start = manner != ResumeManner::Look;
        let row = match self.resumable(&params).await {
            Ok(row) => row,
            Err(error) => return join(Err(error)).await,
        };
        if let Err(error) = self.ensure_opened(&row, may_start).await {
            return join(Err(error)).await;
        }
        if manner == ResumeManner::Load && !self.shared.view_of(&row.id).is_up {
            let loaded = tokio::time::timeout(LOAD_WITHIN, self.open_now(&row.id)).await;
            if !matches!(loaded, Ok(Ok(_))) {
                tracing::info!(task = %row.id, "resumed from the record alone: no runtime has it yet");
            }
        }
        let task = match self.living(&row.id).await {
            Ok(task) => task,
            Err(error) => return join(Err(error)).await,
        };
        let held = task.gate.lock().await;
        let answer = self.resumed(&params).await;
        let is_open = answer.is_ok();
        join(answer).await;
        drop(held);
        let goes_on = params.delegation.is_some() || !self.lacks_carrier(&row.id).await;
        if is_open && may_start && goes_on && self.waits(&row.id).await {
            let told = self.tell_task(&row.id, TaskInput::ResumeWanted).await;
            if let Err(error) = told {
                tracing::warn!(%error, task = %row.id, "a task that waits could not be brought back");
            }
        }
    }

    /// The task whose model requests a client is to carry: those of its agents are among them.
    pub async fn carried_task(&self, thread: &ThreadId) -> Result<ThreadId, TaskError> {
        let task = self.recorded(thread).await?.id;
        if task == *thread {
            return Ok(task);
        }
        let problem = format!("an agent's model requests are those of its task; resume {task} with it");
        Err(TaskError::Field { field: "delegation", problem })
    }

    /// Whether its turn waits for a client that carries its model requests: others change nothing about that.
    async fn lacks_carrier(&self, root: &ThreadId) -> bool {
        let row = self.shared.store.task(root).await.ok().flatten();
        row.is_some_and(|row| row.state == TaskState::WaitingForCarrier)
    }

    /// The task of a thread that can be opened. Clients know one that is archived by the words for one that is not there.
    pub(crate) async fn recorded(&self, thread: &ThreadId) -> Result<TaskRow, TaskError> {
        let thread = check_thread_id(thread)?;
        match self.root_of(&thread).await {
            Ok(row) if row.is_archived => Err(TaskError::NoRecord(thread)),
            Err(TaskError::UnknownThread(id)) => Err(TaskError::NoRecord(id)),
            found => found,
        }
    }

    async fn resumable(&self, params: &ThreadResumeParams) -> Result<TaskRow, TaskError> {
        if params.history.is_some() {
            let problem = "the host keeps the record; resume by threadId alone".to_owned();
            return Err(TaskError::Field { field: "history", problem });
        }
        let delegation = params.delegation.as_ref();
        check_delegation(delegation)?;
        check_labels(params.labels.as_ref())?;
        let mut row = self.recorded(&params.thread_id).await?;
        let asked = AskedSandbox::of(params.sandbox, params.config.as_ref());
        self.check_sandbox_of(&row, asked).await?;
        if params.labels.is_some() || params.agent_digest.is_some() {
            let change = TaskChange {
                labels: params.labels.clone(),
                agent_digest: params.agent_digest.clone().map(Some),
                ..TaskChange::default()
            };
            row = self.shared.store.update_task(&row.id, change).await?;
        }
        let settings = TaskSettings::read(&row.settings);
        let needs_other_runtime = settings.has_other_tools(params) || settings.has_other_carrier(delegation);
        if !needs_other_runtime && self.shared.view_of(&row.id).has_runtime {
            return Ok(row);
        }
        let given = params.clone();
        let change = move |stored: &mut Value| {
            TaskSettings::change(stored, |settings| {
                settings.carry_as(given.delegation.as_ref());
                settings.resume(&given)
            })
        };
        let (row, reopened) = self.shared.store.change_tools(&row.id, change).await?;
        if needs_other_runtime || !reopened.is_empty() {
            self.use_new_tools(&row.id, reopened).await?;
        }
        Ok(row)
    }

    /// Calls that were allowed for another schema of their tool wait again, and a runtime that offers the tools as they were
    /// is replaced.
    async fn use_new_tools(&self, task: &ThreadId, reopened: Vec<OperationRow>) -> Result<(), TaskError> {
        for row in reopened {
            self.tell_task(task, TaskInput::Reopened(row.id.clone())).await?;
            if let Some(shown) = shown_operation(&self.shared.store, &row.id).await {
                self.shared.clients.operation_updated(shown).await;
            }
        }
        // Whether or not a runtime is shown: one that is just being started may have read the settings as they were.
        self.tell_task(task, TaskInput::ToolsChanged).await
    }

    /// Settings of a thread are known once a runtime has opened it. One whose host died before that is opened now, unless the
    /// caller only looks: for those it is not there yet.
    async fn ensure_opened(&self, row: &TaskRow, may_open: bool) -> Result<(), TaskError> {
        if self.shared.opened_of(row).is_some() {
            return Ok(());
        }
        match may_open {
            true => self.open_now(&row.id).await.map(drop),
            false => Err(TaskError::NoRecord(row.id.clone())),
        }
    }

    async fn resumed(&self, params: &ThreadResumeParams) -> JoinReply {
        let thread = check_thread_id(&params.thread_id)?;
        let row = self.shared.store.task(&thread).await?;
        let row = row.ok_or_else(|| TaskError::UnknownThread(thread.clone()))?;
        let root = self.root_of(&thread).await?;
        let mut opened = self.shared.opened_of(&root).ok_or_else(|| TaskError::NoRecord(thread.clone()))?;
        if row.id != root.id {
            opened["thread"] = json!(self.shared.thread_of(&row).await?);
        }
        if !params.exclude_turns {
            let mut turns = self.shared.history(&thread).await?.turns;
            if let Some(after) = params.after {
                let changed = self.turns_after(&thread, after).await?;
                turns.retain(|turn| changed.contains(turn.id.as_str()));
            }
            opened["thread"]["turns"] = json!(turns);
        }
        opened["rolloutOrdinal"] = json!(row.next_ordinal);
        Ok(opened)
    }

    /// The turns that records after this one are about.
    async fn turns_after(&self, thread: &ThreadId, after: u64) -> Result<BTreeSet<String>, TaskError> {
        let mut changed = BTreeSet::new();
        for record in all_records(&self.shared, thread).await? {
            if record.ordinal <= after {
                continue;
            }
            let value: Value = serde_json::from_str(&record.payload).unwrap_or_default();
            let of_operation = value["operationId"].as_str().and_then(|id| id.split(':').nth(1));
            changed.extend(value["turnId"].as_str().or(of_operation).map(str::to_owned));
        }
        Ok(changed)
    }

    /// Whether a turn of the task is unfinished: the root's, or that of an agent which asks for something.
    pub(crate) async fn waits(&self, root: &ThreadId) -> bool {
        let history = self.shared.history(root).await;
        if history.is_ok_and(|history| history.unfinished_turn.is_some()) {
            return true;
        }
        let filter = OperationFilter { thread: Some(root.clone()), limit: 1, ..OperationFilter::default() };
        self.shared.store.list_operations(filter).await.is_ok_and(|(waiting, _)| !waiting.is_empty())
    }

    pub async fn read_thread(&self, thread: &ThreadId, with_turns: bool) -> Result<Thread, TaskError> {
        let thread = check_thread_id(thread)?;
        let row = self.shared.store.task(&thread).await?;
        let row = row.ok_or_else(|| TaskError::NotLoaded(thread.clone()))?;
        if with_turns && row.next_ordinal == 0 {
            return Err(TaskError::NothingSaid(thread));
        }
        let mut shown = self.shared.thread_of(&row).await?;
        if with_turns {
            shown.turns = self.shared.history(&thread).await?.turns;
        }
        Ok(shown)
    }

    /// The turns of a thread as its record has them. Nothing while a runtime holds it, which knows more.
    pub async fn stored_turns(&self, thread: &ThreadId) -> Result<Option<Vec<Turn>>, TaskError> {
        let thread = check_thread_id(thread)?;
        let root = self.root_of(&thread).await?.id;
        match self.shared.view_of(&root).has_runtime {
            true => Ok(None),
            false => Ok(Some(self.shared.history(&thread).await?.turns)),
        }
    }

    pub async fn list_threads(&self, params: &ThreadListParams) -> Result<ThreadPageOfHost, TaskError> {
        // Clients get the cursors that they would get of an app-server.
        let cursor = params.cursor.as_deref().map(|cursor| match parse_page_cursor(cursor) {
            Some((at_ms, id)) => Ok(task_cursor(at_ms, id)),
            None => Err(TaskError::InvalidCursor(cursor.to_owned())),
        });
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
        let mut page = ThreadPageOfHost { threads: Vec::new(), cursor: cursor.transpose()? };
        let mut looked_at = 0;
        loop {
            let filter = TaskFilter {
                order: match params.sort_key {
                    None | Some(ThreadSortKey::CreatedAt) => TaskOrder::Created,
                    Some(_) => TaskOrder::Updated,
                },
                oldest_first: params.sort_direction == Some(SortDirection::Asc),
                is_archived: params.archived.unwrap_or(false),
                search: params.search_term.clone(),
                cursor: page.cursor.take(),
                limit: u32::try_from(limit - page.threads.len()).unwrap_or(1),
                ..TaskFilter::default()
            };
            let found = self.shared.store.list_tasks(filter).await?;
            looked_at += found.tasks.len();
            for row in found.tasks.iter().filter(|row| row.next_ordinal > 0) {
                let thread = self.shared.thread_of(row).await?;
                if is_wanted(&thread, params) {
                    page.threads.push(thread);
                }
            }
            page.cursor = found.cursor;
            if page.cursor.is_none() || page.threads.len() >= limit || looked_at >= MAX_ROWS {
                let after = page.cursor.as_deref().and_then(parse_task_cursor);
                page.cursor = after.map(|(at_ms, id)| page_cursor(at_ms, &id));
                return Ok(page);
            }
        }
    }

    pub fn list_loaded(&self) -> Vec<ThreadId> {
        self.loaded()
    }

    pub fn is_loaded(&self, thread: &ThreadId) -> bool {
        self.shared.view_of(thread).has_runtime
    }

    /// The name without the space around it.
    pub async fn set_name(&self, thread: &ThreadId, name: &str) -> Result<String, TaskError> {
        let name = name.trim().to_owned();
        let thread = check_thread_id(thread)?;
        if name.is_empty() {
            return Err(TaskError::EmptyName);
        }
        if name.chars().count() > MAX_NAME {
            let problem = format!("a name has at most {MAX_NAME} characters");
            return Err(TaskError::Field { field: "name", problem });
        }
        if self.root_of(&thread).await?.is_archived {
            return Err(TaskError::UnknownThread(thread));
        }
        let change = TaskChange { name: Some(Some(name.clone())), ..TaskChange::default() };
        self.shared.store.update_task(&thread, change).await?;
        Ok(name)
    }

    /// Ends the runtime first. Answers whether there was one.
    pub async fn archive(&self, thread: &ThreadId, by: &str) -> Result<bool, TaskError> {
        let row = self.recorded(thread).await?;
        if row.next_ordinal == 0 {
            return Err(TaskError::NoRecord(row.id));
        }
        let was_loaded = self.shared.view_of(&row.id).has_runtime;
        self.end_runtime(&row.id).await?;
        let change = TaskChange { is_archived: Some(true), ..TaskChange::default() };
        self.shared.audited(by, "thread/archive", &row.id, json!({})).update_task(&row.id, change).await?;
        Ok(was_loaded)
    }

    pub async fn unarchive(&self, thread: &ThreadId, by: &str) -> Result<Thread, TaskError> {
        let thread = check_thread_id(thread)?;
        let row = self.root_of(&thread).await.map_err(|error| match error {
            TaskError::UnknownThread(id) => TaskError::NotArchived(id),
            error => error,
        })?;
        if !row.is_archived {
            return Err(TaskError::NotArchived(row.id));
        }
        let change = TaskChange { is_archived: Some(false), ..TaskChange::default() };
        let audited = self.shared.audited(by, "thread/unarchive", &row.id, json!({}));
        self.shared.thread_of(&audited.update_task(&row.id, change).await?).await
    }
}

fn is_wanted(thread: &Thread, params: &ThreadListParams) -> bool {
    let cwd = match &params.cwd {
        None => true,
        Some(ThreadListCwd::One(cwd)) => thread.cwd == *cwd,
        Some(ThreadListCwd::Any(many)) => many.is_empty() || many.contains(&thread.cwd),
    };
    let providers = params.model_providers.as_ref();
    let provider =
        providers.is_none_or(|wanted| wanted.is_empty() || wanted.contains(&thread.model_provider));
    let kinds = params.source_kinds.as_ref().filter(|kinds| !kinds.is_empty());
    let kind = kinds.is_none_or(|kinds| kinds.contains(&kind_of(&thread.source)));
    // The store also looks into names, and whatever the case.
    let search = params.search_term.as_ref();
    let is_found = search.is_none_or(|search| thread.preview.contains(search.as_str()));
    cwd && provider && kind && is_found
}

/// The details of a removal.
pub(crate) fn not_started() -> Value {
    json!({ "reason": "it could not be started" })
}

/// A root without anything but its id.
pub(crate) fn new_task(id: ThreadId) -> NewTask {
    NewTask {
        id,
        parent: None,
        labels: Default::default(),
        agent_digest: None,
        placement_id: None,
        site: String::new(),
        settings: Value::Null,
        record_schema: 1,
        priority: 0,
    }
}

/// Labels are for finding tasks, and every list has them: they stay short.
fn check_labels(labels: Option<&BTreeMap<String, String>>) -> Result<(), TaskError> {
    let Some(labels) = labels else { return Ok(()) };
    let is_long = |(name, value): (&String, &String)| {
        name.is_empty() || name.len() > MAX_LABEL_NAME || value.len() > MAX_LABEL
    };
    match labels.len() > MAX_LABELS || labels.iter().any(is_long) {
        true => {
            let problem = format!(
                "at most {MAX_LABELS}, with names of 1 to {MAX_LABEL_NAME} bytes and values of at most {MAX_LABEL}"
            );
            Err(TaskError::Field { field: "labels", problem })
        }
        false => Ok(()),
    }
}

fn kind_of(source: &SessionSource) -> ThreadSourceKind {
    match source {
        SessionSource::Cli => ThreadSourceKind::Cli,
        SessionSource::Vscode => ThreadSourceKind::Vscode,
        SessionSource::Exec => ThreadSourceKind::Exec,
        SessionSource::AppServer => ThreadSourceKind::AppServer,
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn { .. }) => ThreadSourceKind::SubAgentThreadSpawn,
        SessionSource::SubAgent(_) => ThreadSourceKind::SubAgentOther,
        SessionSource::Unknown | SessionSource::Custom(_) => ThreadSourceKind::Unknown,
    }
}
