//! Tasks and threads as clients see them, built from rows and records alone.

use journal::{Foreign, HistoryBuilder, JournalEntry, Record, ThreadHistory};
use protocol::{RolloutItem, Task, TaskStatus, Thread, ThreadId, ThreadStatus, TurnStatus};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{OperationFilter, StoreError, StoredRecord, TaskRow, TaskState};

use crate::error::TaskError;
use crate::open_runtime::all_records;
use crate::settings::{TaskSettings, shown_provider};
use crate::task_host::TaskHost;

/// A stored record as the history builder takes it. One of a newer release is kept and passed over.
pub(crate) fn entry_of(record: &StoredRecord) -> Result<JournalEntry, StoreError> {
    let seq = record.ordinal;
    let read = match serde_json::from_str::<RolloutItem>(&record.payload) {
        Ok(item) => Record::Known(item.record),
        Err(_) => {
            let payload = RawValue::from_string(record.payload.clone())?;
            Record::Foreign(Foreign { kind: "unknown".to_owned(), schema: 0, payload })
        }
    };
    Ok(JournalEntry { seq, at_ms: 0, record: read })
}

pub(crate) fn status_of(state: TaskState) -> TaskStatus {
    match state {
        TaskState::Creating => TaskStatus::Creating,
        TaskState::Queued => TaskStatus::Queued,
        TaskState::Idle => TaskStatus::Idle,
        TaskState::Running => TaskStatus::Running,
        TaskState::Waiting => TaskStatus::Waiting,
        TaskState::Suspended => TaskStatus::Suspended,
        TaskState::Failed => TaskStatus::Failed,
    }
}

pub(crate) fn state_of(status: TaskStatus) -> TaskState {
    match status {
        TaskStatus::Creating => TaskState::Creating,
        TaskStatus::Queued => TaskState::Queued,
        TaskStatus::Idle => TaskState::Idle,
        TaskStatus::Running => TaskState::Running,
        TaskStatus::Waiting => TaskState::Waiting,
        TaskStatus::Suspended => TaskState::Suspended,
        TaskStatus::Failed => TaskState::Failed,
    }
}

impl TaskHost {
    pub(crate) async fn history(&self, thread: &ThreadId) -> Result<ThreadHistory, TaskError> {
        let mut builder = HistoryBuilder::new(Some(thread.clone()));
        for record in all_records(&self.shared, thread).await? {
            builder.add(entry_of(&record)?);
        }
        let mut history = builder.finish();
        // It waits or runs; only the record of its end says otherwise.
        if let Some(unfinished) = &history.unfinished_turn
            && let Some(turn) = history.turns.iter_mut().rfind(|turn| turn.id == *unfinished)
        {
            turn.status = TurnStatus::InProgress;
            (turn.completed_at, turn.duration_ms) = (None, None);
        }
        Ok(history)
    }

    /// The answer of an opening, from what the last runtime answered and the row says. Nothing before a runtime opened it.
    pub(crate) fn opened_of(&self, row: &TaskRow) -> Option<Value> {
        let settings = TaskSettings::read(&row.settings);
        let mut opened = settings.opened().clone();
        let thread = opened.get_mut("thread")?;
        thread["id"] = json!(row.id);
        thread["name"] = json!(row.name);
        thread["preview"] = json!(row.preview);
        thread["createdAt"] = json!(row.created_at_ms.div_euclid(1_000));
        thread["updatedAt"] = json!(row.updated_at_ms.div_euclid(1_000));
        thread["status"] = json!(self.status(row));
        thread["turns"] = json!([]);
        let mut opened = Value::Object(opened);
        shown_provider(&mut opened, &self.shared.options.provider);
        Some(opened)
    }

    fn status(&self, row: &TaskRow) -> ThreadStatus {
        let view = self.view_of(&row.root);
        match (view.has_runtime, row.state) {
            (false, TaskState::Failed) => ThreadStatus::SystemError,
            (false, _) => ThreadStatus::NotLoaded,
            (true, TaskState::Waiting) => {
                ThreadStatus::Active { active_flags: vec![protocol::ThreadActiveFlag::WaitingOnApproval] }
            }
            (true, _) if view.turn.is_some() => ThreadStatus::Active { active_flags: Vec::new() },
            (true, _) => ThreadStatus::Idle,
        }
    }

    /// Without turns. Of a child, from its own record.
    pub(crate) async fn thread_of(&self, row: &TaskRow) -> Result<Thread, TaskError> {
        if let Some(opened) = self.opened_of(row) {
            let thread = opened.get("thread").cloned().unwrap_or_default();
            return serde_json::from_value(thread).map_err(|error| TaskError::Unreadable(error.to_string()));
        }
        let history = self.history(&row.id).await?;
        let Some(meta) = history.meta else {
            return Err(TaskError::CannotRun {
                thread: row.id.clone(),
                reason: "no runtime has opened it yet".to_owned(),
            });
        };
        let thread = json!({
            "id": row.id, "sessionId": meta.session_id, "forkedFromId": meta.forked_from_id, "preview": row.preview,
            "ephemeral": false, "projectId": null, "modelProvider": self.shared.options.provider.id,
            "createdAt": row.created_at_ms.div_euclid(1_000), "updatedAt": row.updated_at_ms.div_euclid(1_000),
            "status": self.status(row), "path": null, "cwd": meta.cwd, "cliVersion": meta.cli_version,
            "source": meta.source, "threadSource": meta.thread_source, "agentNickname": meta.agent_nickname,
            "agentRole": meta.agent_role, "gitInfo": meta.git_info, "name": row.name, "turns": [],
        });
        serde_json::from_value(thread).map_err(|error| TaskError::Unreadable(error.to_string()))
    }

    pub(crate) async fn task_of(&self, row: &TaskRow) -> Result<Task, TaskError> {
        let filter =
            OperationFilter { thread: Some(row.id.clone()), state: None, cursor: None, limit: 1_000 };
        let waiting = self.shared.store.list_operations(filter).await?.0;
        Ok(Task {
            id: row.id.clone(),
            name: row.name.clone(),
            preview: row.preview.clone(),
            state: status_of(row.state),
            has_runtime: self.view_of(&row.id).has_runtime,
            cwd: TaskSettings::read(&row.settings).cwd(),
            labels: row.labels.clone(),
            is_archived: row.is_archived,
            epoch: row.epoch,
            waiting_operations: u32::try_from(waiting.len()).unwrap_or(u32::MAX),
            created_at_ms: row.created_at_ms,
            updated_at_ms: row.updated_at_ms,
        })
    }
}
