//! Threads: opened by a runtime once, and read from the store ever after.

use std::future::Future;

use protocol::{
    SessionSource, SubAgentSource, Thread, ThreadId, ThreadListCwd, ThreadListParams, ThreadResumeParams,
    ThreadSourceKind, ThreadStartParams,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{NewTask, TaskChange, TaskCreation, TaskFilter, TaskRow};
use tokio::sync::oneshot;

use crate::error::TaskError;
use crate::ids::{check_thread_id, new_uuid};
use crate::link::{LinkAnswer, OrderedAnswer};
use crate::messages::{TaskCommand, TaskPass};
use crate::settings::TaskSettings;
use crate::task::TaskInput;
use crate::task_host::TaskHost;

const DEFAULT_LIMIT: u32 = 25;
const MAX_LIMIT: u32 = 100;
/// Rows that are looked at for one page of a list with filters.
const MAX_ROWS: usize = 10_000;

/// The answer to `thread/resume` as JSON, with its turns.
pub type JoinReply = Result<Value, TaskError>;

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
    ) -> Result<Box<RawValue>, TaskError> {
        self.check_start(&params)?;
        let id = match &params.thread_id {
            Some(id) => check_thread_id(id)?,
            None => Self::new_thread_id(),
        };
        let place = self.place_of(&params)?;
        let settings = TaskSettings::started_with(&params).to_value();
        let created = match self.shared.store.task(&id).await? {
            Some(row) => TaskCreation::Existed(row),
            None => {
                let (placement, site) = self.put_place(place).await?;
                self.create(&id, settings, placement, site).await?
            }
        };
        self.audit(by, "thread/start", &id).await;
        let opened = self.open_now(&id).await;
        if let (Err(error), TaskCreation::Created(row)) = (&opened, &created) {
            tracing::info!(%error, thread = %id, "a thread could not be started");
            // Nobody knows of it: a refused start leaves nothing behind.
            self.shared.store.delete_task(&id).await?;
            self.drop_place_of(row).await;
        }
        opened
    }

    /// An id for a thread that is to be.
    pub fn new_thread_id() -> ThreadId {
        ThreadId::new(new_uuid())
    }

    fn check_start(&self, params: &ThreadStartParams) -> Result<(), TaskError> {
        let field = |field, problem: &str| Err(TaskError::Field { field, problem: problem.to_owned() });
        let provider = &self.shared.options.provider.id;
        if params.model_provider.as_ref().is_some_and(|asked| asked != provider) {
            let problem = format!("this host carries requests to `{provider}`; leave it out");
            return field("modelProvider", &problem);
        }
        if params.ephemeral == Some(true) {
            return field("ephemeral", "a host keeps every thread; use an app-server for this one");
        }
        if params.delegation.is_some() || params.rollout_ownership.is_some() {
            return field("delegation", "the host itself carries requests and keeps the record");
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

    pub(crate) async fn create(
        &self,
        id: &ThreadId,
        settings: Value,
        placement_id: Option<String>,
        site: String,
    ) -> Result<TaskCreation, TaskError> {
        let new = NewTask {
            id: id.clone(),
            parent: None,
            labels: Default::default(),
            agent_digest: None,
            placement_id,
            site,
            settings,
            record_schema: 1,
            priority: 0,
        };
        Ok(self.shared.store.create_task(new).await?)
    }

    /// The thread as its runtime opens it, or has opened it.
    pub(crate) async fn open_now(&self, id: &ThreadId) -> Result<Box<RawValue>, TaskError> {
        let (told, opened) = oneshot::channel();
        let answer: OrderedAnswer = Box::new(move |result: LinkAnswer| drop(told.send(result)));
        self.send(id, TaskCommand::Pass(TaskPass::Open(answer))).await?;
        match opened.await {
            Ok(Ok(opened)) => Ok(opened),
            Ok(Err(Some(error))) => Err(TaskError::Refused(error)),
            Ok(Err(None)) | Err(_) => Err(TaskError::RuntimeGone(id.clone())),
        }
    }

    /// Answers by `join` between two messages of the runtime: whoever is subscribed there misses nothing and hears nothing
    /// twice. A turn that waits for a decision gets its runtime back, so that the question is asked again.
    pub async fn resume_thread<F: Future<Output = ()>>(
        &self,
        params: ThreadResumeParams,
        join: impl FnOnce(JoinReply) -> F,
    ) {
        let row = match self.resumable(&params).await {
            Ok(row) => row,
            Err(error) => return join(Err(error)).await,
        };
        let task = match self.living(&row.id).await {
            Ok(task) => task,
            Err(error) => return join(Err(error)).await,
        };
        let held = task.gate.lock().await;
        let answer = self.resumed(&params).await;
        let is_open = answer.is_ok();
        join(answer).await;
        drop(held);
        if is_open && self.waits(&row.id).await {
            let told = self.tell_task(&row.id, TaskInput::ResumeWanted).await;
            if let Err(error) = told {
                tracing::warn!(%error, task = %row.id, "a task that waits could not be brought back");
            }
        }
    }

    async fn resumable(&self, params: &ThreadResumeParams) -> Result<TaskRow, TaskError> {
        for (given, field) in [
            (params.history.is_some(), "history"),
            (params.path.is_some(), "path"),
            (params.delegation.is_some(), "delegation"),
        ] {
            if given {
                let problem = "the host keeps the record and carries requests; resume by threadId alone";
                return Err(TaskError::Field { field, problem: problem.to_owned() });
            }
        }
        let row = self.root_of(&check_thread_id(&params.thread_id)?).await?;
        if row.is_archived {
            return Err(TaskError::Archived(row.id));
        }
        if !self.view_of(&row.id).has_runtime {
            let mut settings = TaskSettings::read(&row.settings);
            settings.override_with(&serde_json::to_value(params).unwrap_or_default());
            let change = TaskChange { settings: Some(settings.to_value()), ..TaskChange::default() };
            return Ok(self.shared.store.update_task(&row.id, change).await?);
        }
        Ok(row)
    }

    async fn resumed(&self, params: &ThreadResumeParams) -> JoinReply {
        let thread = check_thread_id(&params.thread_id)?;
        let row = self.shared.store.task(&thread).await?;
        let row = row.ok_or_else(|| TaskError::UnknownThread(thread.clone()))?;
        let root = self.root_of(&thread).await?;
        let mut opened = self.opened_of(&root).ok_or_else(|| TaskError::CannotRun {
            thread: thread.clone(),
            reason: "no runtime has opened it yet".to_owned(),
        })?;
        if row.id != root.id {
            opened["thread"] = json!(self.thread_of(&row).await?);
        }
        if !params.exclude_turns {
            opened["thread"]["turns"] = json!(self.history(&thread).await?.turns);
        }
        Ok(opened)
    }

    async fn waits(&self, root: &ThreadId) -> bool {
        let history = self.history(root).await;
        history.is_ok_and(|history| history.unfinished_turn.is_some())
    }

    pub async fn read_thread(&self, thread: &ThreadId, with_turns: bool) -> Result<Thread, TaskError> {
        let thread = check_thread_id(thread)?;
        let row = self.shared.store.task(&thread).await?;
        let row = row.ok_or_else(|| TaskError::UnknownThread(thread.clone()))?;
        let mut shown = self.thread_of(&row).await?;
        if with_turns {
            shown.turns = self.history(&thread).await?.turns;
        }
        Ok(shown)
    }

    /// The last changed first, whatever `sortKey` says: the store keeps one order.
    pub async fn list_threads(&self, params: &ThreadListParams) -> Result<ThreadPageOfHost, TaskError> {
        let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
        let mut page = ThreadPageOfHost { threads: Vec::new(), cursor: params.cursor.clone() };
        let mut looked_at = 0;
        loop {
            let filter = TaskFilter {
                is_archived: params.archived.unwrap_or(false),
                root: None,
                state: None,
                search: params.search_term.clone(),
                cursor: page.cursor.take(),
                limit: u32::try_from(limit - page.threads.len()).unwrap_or(1),
            };
            let found = self.shared.store.list_tasks(filter).await?;
            looked_at += found.tasks.len();
            for row in found.tasks.iter().filter(|row| row.next_ordinal > 0) {
                let thread = self.thread_of(row).await?;
                if is_wanted(&thread, params) {
                    page.threads.push(thread);
                }
            }
            page.cursor = found.cursor;
            if page.cursor.is_none() || page.threads.len() >= limit || looked_at >= MAX_ROWS {
                return Ok(page);
            }
        }
    }

    pub fn list_loaded(&self) -> Vec<ThreadId> {
        self.loaded()
    }

    pub fn is_loaded(&self, thread: &ThreadId) -> bool {
        self.view_of(thread).has_runtime
    }

    /// The name without the space around it.
    pub async fn set_name(&self, thread: &ThreadId, name: &str) -> Result<String, TaskError> {
        let name = name.trim().to_owned();
        if name.is_empty() {
            return Err(TaskError::Field { field: "name", problem: "must not be empty".to_owned() });
        }
        let change = TaskChange { name: Some(Some(name.clone())), ..TaskChange::default() };
        self.shared.store.update_task(&check_thread_id(thread)?, change).await?;
        Ok(name)
    }

    /// Ends the runtime first. Answers whether there was one.
    pub async fn archive(&self, thread: &ThreadId, by: &str) -> Result<bool, TaskError> {
        let row = self.root_of(&check_thread_id(thread)?).await?;
        if row.next_ordinal == 0 {
            return Err(TaskError::CannotRun {
                thread: row.id,
                reason: "nothing was said in it yet, so there is nothing to archive".to_owned(),
            });
        }
        let was_loaded = self.view_of(&row.id).has_runtime;
        self.suspend_task(&row.id, by).await?;
        let change = TaskChange { is_archived: Some(true), ..TaskChange::default() };
        self.shared.store.update_task(&row.id, change).await?;
        Ok(was_loaded)
    }

    pub async fn unarchive(&self, thread: &ThreadId) -> Result<Thread, TaskError> {
        let row = self.root_of(&check_thread_id(thread)?).await?;
        if !row.is_archived {
            return Err(TaskError::NotArchived(row.id));
        }
        let change = TaskChange { is_archived: Some(false), ..TaskChange::default() };
        let row = self.shared.store.update_task(&row.id, change).await?;
        self.thread_of(&row).await
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
    cwd && provider && kind
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
