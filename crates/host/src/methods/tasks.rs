//! `task/*`: tasks as rows.

use protocol::{OperationListParams, Task, TaskListParams, TaskListResponse, TaskReadResponse, ThreadId};
use serde_json::json;
use store::{AuditEntry, TaskFilter};

use crate::error::TaskError;
use crate::task::TaskInput;
use crate::task_host::TaskHost;
use crate::views::state_of;

const DEFAULT_LIMIT: u32 = 50;

impl TaskHost {
    pub async fn list_tasks(&self, params: TaskListParams) -> Result<TaskListResponse, TaskError> {
        let filter = TaskFilter {
            is_archived: params.archived,
            root: None,
            state: params.state.map(state_of),
            search: None,
            cursor: params.cursor,
            limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        };
        let page = self.shared.store.list_tasks(filter).await?;
        let mut data = Vec::with_capacity(page.tasks.len());
        for row in &page.tasks {
            data.push(self.task_of(row).await?);
        }
        Ok(TaskListResponse { data, next_cursor: page.cursor })
    }

    pub async fn read_task(&self, thread: &ThreadId) -> Result<TaskReadResponse, TaskError> {
        let row = self.root_of(thread).await?;
        let list = OperationListParams { thread_id: Some(row.id.clone()), ..OperationListParams::default() };
        let operations = self.list_operations(list).await?.data;
        Ok(TaskReadResponse { task: self.task_of(&row).await?, operations })
    }

    /// Answers when the runtime has ended.
    pub async fn suspend_task(&self, thread: &ThreadId, by: &str) -> Result<Task, TaskError> {
        let row = self.root_of(thread).await?;
        let mut task = self.living(&row.id).await?;
        self.tell_task(&row.id, TaskInput::SuspendWanted).await?;
        self.audit(by, "task/suspend", &row.id).await;
        // An error says that the driver has left, and the runtime with it.
        let _ = task.view.wait_for(|view| !view.has_runtime).await;
        self.shown_task(&row.id).await
    }

    pub async fn resume_task(&self, thread: &ThreadId, by: &str) -> Result<Task, TaskError> {
        let row = self.root_of(thread).await?;
        self.tell_task(&row.id, TaskInput::ResumeWanted).await?;
        self.audit(by, "task/resume", &row.id).await;
        self.shown_task(&row.id).await
    }

    pub async fn delete_task(&self, thread: &ThreadId, by: &str) -> Result<(), TaskError> {
        let row = self.root_of(thread).await?;
        if row.id != *thread {
            let problem = format!("{thread} is a child; delete its task {}", row.id);
            return Err(TaskError::Field { field: "threadId", problem });
        }
        self.suspend_task(thread, by).await?;
        self.shared.store.delete_task(thread).await?;
        self.audit(by, "task/delete", thread).await;
        Ok(())
    }

    async fn shown_task(&self, id: &ThreadId) -> Result<Task, TaskError> {
        let row = self.root_of(id).await?;
        self.task_of(&row).await
    }

    pub(crate) async fn audit(&self, who: &str, action: &str, subject: &ThreadId) {
        let entry = AuditEntry {
            who: who.to_owned(),
            action: action.to_owned(),
            subject: subject.as_str().to_owned(),
            details: json!({}),
        };
        if let Err(error) = self.shared.store.add_audit(entry).await {
            tracing::warn!(%error, action, "an action is missing in the audit trail");
        }
    }
}
