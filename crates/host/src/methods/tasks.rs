//! `task/*`: tasks as rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::{
    OperationListParams, ReplicaInfo, Task, TaskListParams, TaskListResponse, TaskReadResponse, TaskStatus,
    ThreadId, ThreadSuspendParams, ThreadSuspendResponse,
};
use serde_json::json;
use store::{ReplicaRow, TaskFilter};
use tokio::time::timeout;

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::messages::TaskView;
use crate::task_host::TaskHost;
use crate::views::state_of;
use task::TaskInput;

const DEFAULT_LIMIT: u32 = 50;
/// How long a suspension may take before it is asked for again.
const SUSPEND_AGAIN: Duration = Duration::from_millis(200);

impl TaskHost {
    pub async fn list_tasks(&self, params: TaskListParams) -> Result<TaskListResponse, TaskError> {
        let root = match &params.children_of {
            Some(task) => Some(self.root_of(&check_thread_id(task)?).await?.id),
            None => None,
        };
        let filter = TaskFilter {
            is_archived: params.archived,
            root,
            state: params.state.map(state_of),
            labels: params.labels.unwrap_or_default(),
            cursor: params.cursor,
            limit: params.limit.unwrap_or(DEFAULT_LIMIT),
            ..TaskFilter::default()
        };
        let page = self.shared.store.list_tasks(filter).await?;
        let is_of_tasks = params.children_of.is_none();
        let ids: Vec<ThreadId> = page.tasks.iter().map(|row| row.id.clone()).collect();
        // For the whole page at once: lists are long, and consoles read them again and again.
        let roots: BTreeSet<ThreadId> = page.tasks.iter().map(|row| row.root.clone()).collect();
        let waiting = self.shared.store.waiting_counts(roots.into_iter().collect()).await?;
        let children = if is_of_tasks { self.shared.store.child_counts(ids).await? } else { BTreeMap::new() };
        let mut data = Vec::with_capacity(page.tasks.len());
        for row in page.tasks.iter().filter(|row| is_of_tasks || row.parent.is_some()) {
            let children = children.get(&row.id).copied().unwrap_or_default();
            let waiting = waiting.get(&row.id).copied().unwrap_or_default();
            data.push(Task { children, ..self.shared.task_of(row, waiting).await? });
        }
        Ok(TaskListResponse { data, next_cursor: page.cursor })
    }

    pub async fn read_task(&self, thread: &ThreadId) -> Result<TaskReadResponse, TaskError> {
        let row = self.root_of(thread).await?;
        let list = OperationListParams { thread_id: Some(row.id.clone()), ..OperationListParams::default() };
        let operations = self.list_operations(list).await?.data;
        Ok(TaskReadResponse { task: self.shown_task(&row.id).await?, operations })
    }

    /// Answers when the runtime has ended.
    pub async fn suspend_task(&self, thread: &ThreadId, by: &str) -> Result<Task, TaskError> {
        let row = self.root_of(thread).await?;
        self.note(by, "task/suspend", &row.id).await?;
        self.end_runtime(&row.id).await?;
        self.shown_task(&row.id).await
    }

    /// As [`TaskHost::suspend_task`]. With a snapshot the workspace is kept as the turns left it.
    pub async fn suspend_thread(
        &self,
        params: &ThreadSuspendParams,
        by: &str,
    ) -> Result<ThreadSuspendResponse, TaskError> {
        let row = self.root_of(&check_thread_id(&params.thread_id)?).await?;
        let kept = match params.snapshot {
            true => Some(self.keepable_place(&row).await?),
            false => None,
        };
        let details = json!({ "snapshot": params.snapshot });
        self.shared.audited(by, "thread/suspend", &row.id, details).note().await?;
        self.end_runtime(&row.id).await?;
        let placement = match kept {
            Some(id) => Some(self.snapshot_placement(&id, by).await?),
            None => None,
        };
        Ok(ThreadSuspendResponse { task: self.shown_task(&row.id).await?, placement })
    }

    /// Returns when the runtime that the task has now has ended. A turn stays where it is.
    pub(crate) async fn end_runtime(&self, task: &ThreadId) -> Result<(), TaskError> {
        let mut living = self.living(task).await?;
        let before = living.view.borrow().generation;
        let is_over = |view: &TaskView| match view.generation {
            None => true,
            now => before.is_some() && now != before,
        };
        loop {
            self.tell_task(task, TaskInput::SuspendWanted).await?;
            // A decision that arrives in between takes the suspension back, so it is asked for again. An error says that the
            // driver has left, and the runtime with it.
            if timeout(SUSPEND_AGAIN, living.view.wait_for(is_over)).await.is_ok() {
                return Ok(());
            }
        }
    }

    pub async fn resume_task(&self, thread: &ThreadId, by: &str) -> Result<Task, TaskError> {
        let row = self.root_of(thread).await?;
        self.note(by, "task/resume", &row.id).await?;
        self.tell_task(&row.id, TaskInput::ResumeWanted).await?;
        self.shown_task(&row.id).await
    }

    /// As [`TaskHost::delete_task`], for a task in which no turn runs.
    pub async fn delete_idle_task(&self, thread: &ThreadId, by: &str) -> Result<(), TaskError> {
        let row = self.root_of(thread).await?;
        match self.shown_task(&row.id).await?.state {
            TaskStatus::Idle | TaskStatus::Failed => self.delete_task(thread, by).await,
            _ => {
                let problem = format!("{thread} is at work; interrupt its turn before you delete it");
                Err(TaskError::Field { field: "threadId", problem })
            }
        }
    }

    pub async fn delete_task(&self, thread: &ThreadId, by: &str) -> Result<(), TaskError> {
        let row = self.root_of(thread).await?;
        if row.id != *thread {
            let problem = format!("{thread} is a child; delete its task {}", row.id);
            return Err(TaskError::Field { field: "threadId", problem });
        }
        self.end_runtime(thread).await?;
        self.shared.audited(by, "task/delete", thread, json!({})).delete_task(thread).await?;
        Ok(())
    }

    async fn shown_task(&self, id: &ThreadId) -> Result<Task, TaskError> {
        self.shared.shown_task(&self.root_of(id).await?).await
    }

    /// The hosts that share the store, with their leases.
    pub async fn list_replicas(&self) -> Result<Vec<ReplicaInfo>, TaskError> {
        let this = self.shared.replica().id;
        let found = self.shared.store.list_replicas().await?;
        let shown = |row: ReplicaRow| ReplicaInfo {
            is_this: row.id == this,
            id: row.id,
            address: row.address,
            sites: row.sites,
            lease_ends_at_ms: row.expires_at_ms,
            is_alive: row.is_alive,
            tasks: row.tasks,
        };
        Ok(found.into_iter().map(shown).collect())
    }
}
