//! Tasks and threads as clients see them, built from rows and records alone.

use journal::{Foreign, HistoryBuilder, JournalEntry, Record, ThreadHistory};
use protocol::{RolloutItem, Task, TaskStatus, Thread, ThreadId, ThreadStatus, TurnStatus};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{StoreError, StoredRecord, TaskRow, TaskState};

use crate::error::TaskError;
use crate::messages::TaskView;
use crate::open_runtime::all_records;
use crate::settings::{TaskSettings, shown_to_clients};
use crate::shared::HostShared;

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
        TaskState::WaitingForCarrier => TaskStatus::WaitingForCarrier,
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
        TaskStatus::WaitingForCarrier => TaskState::WaitingForCarrier,
        TaskStatus::Suspended => TaskState::Suspended,
        TaskStatus::Failed => TaskState::Failed,
    }
}

/// The end of a turn is in the row before clients are told of it, and in the view only afterwards: whoever has seen
/// `turn/completed` must read a thread that is idle.
fn thread_status(
    view: &TaskView,
    state: TaskState,
    last_turn: Option<&Value>,
    has_failed: bool,
) -> ThreadStatus {
    let last = last_turn.and_then(|turn| turn.get("id")).and_then(Value::as_str);
    let turn = view.turn.as_ref().filter(|turn| last != Some(turn.as_str()));
    match (view.has_runtime, state) {
        (false, TaskState::Failed) => ThreadStatus::SystemError,
        (false, _) => ThreadStatus::NotLoaded,
        (true, TaskState::Waiting) if turn.is_some() || view.turn.is_none() => {
            ThreadStatus::Active { active_flags: vec![protocol::ThreadActiveFlag::WaitingOnApproval] }
        }
        (true, _) if turn.is_some() => ThreadStatus::Active { active_flags: Vec::new() },
        (true, _) if has_failed => ThreadStatus::SystemError,
        (true, _) => ThreadStatus::Idle,
    }
}

impl HostShared {
    pub(crate) async fn history(&self, thread: &ThreadId) -> Result<ThreadHistory, TaskError> {
        let mut builder = HistoryBuilder::new(Some(thread.clone()));
        for record in all_records(self, thread).await? {
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
        shown_to_clients(&mut opened, &self.options);
        Some(opened)
    }

    fn status(&self, row: &TaskRow) -> ThreadStatus {
        let has_failed = self.failed.lock().contains(&row.id);
        thread_status(&self.view_of(&row.root), row.state, row.last_turn.as_ref(), has_failed)
    }

    /// Without turns. Of a child, from its own record.
    pub(crate) async fn thread_of(&self, row: &TaskRow) -> Result<Thread, TaskError> {
        if let Some(opened) = self.opened_of(row) {
            let thread = opened.get("thread").unwrap_or(&Value::Null);
            return protocol::from_value(thread).map_err(|error| TaskError::Unreadable(error.to_string()));
        }
        let history = self.history(&row.id).await?;
        let Some(meta) = history.meta else {
            // No runtime has opened it yet.
            return Err(TaskError::NotLoaded(row.id.clone()));
        };
        let thread = json!({
            "id": row.id, "sessionId": meta.session_id, "forkedFromId": meta.forked_from_id, "preview": row.preview,
            "ephemeral": false, "projectId": null, "modelProvider": self.options.provider.id,
            "createdAt": row.created_at_ms.div_euclid(1_000), "updatedAt": row.updated_at_ms.div_euclid(1_000),
            "status": self.status(row), "path": self.options.path_of(row.id.as_str()),
            "cwd": meta.cwd, "cliVersion": meta.cli_version,
            "source": meta.source, "threadSource": meta.thread_source, "agentNickname": meta.agent_nickname,
            "agentRole": meta.agent_role, "gitInfo": meta.git_info, "name": row.name, "turns": [],
        });
        protocol::from_value(&thread).map_err(|error| TaskError::Unreadable(error.to_string()))
    }

    /// As its driver shows it; at rest where it has none.
    pub(crate) fn view_of(&self, id: &ThreadId) -> TaskView {
        self.living.lock().get(id).map(|task| task.view.borrow().clone()).unwrap_or_default()
    }

    /// A task with its children and what waits in it.
    pub(crate) async fn shown_task(&self, row: &TaskRow) -> Result<Task, TaskError> {
        let children = self.store.child_counts(vec![row.id.clone()]).await?;
        let children = children.get(&row.id).copied().unwrap_or_default();
        let waiting = self.store.waiting_counts(vec![row.id.clone()]).await?;
        let waiting = waiting.get(&row.id).copied().unwrap_or_default();
        Ok(Task { children, ..self.task_of(row, waiting).await? })
    }

    /// `waiting_operations` wait for a decision. Of a task all is in its row; the state of a child is in its record.
    pub(crate) async fn task_of(&self, row: &TaskRow, waiting_operations: u32) -> Result<Task, TaskError> {
        let settings = TaskSettings::read(&row.settings);
        let has_runtime = self.view_of(&row.root).has_runtime;
        let (state, preview, agent) = match row.parent {
            None => (status_of(row.state), row.preview.clone(), settings.agent()),
            // The row of a child has neither: its record has both.
            Some(_) => {
                let history = self.history(&row.id).await?;
                let state = match (waiting_operations == 0, has_runtime) {
                    (false, true) => TaskStatus::Waiting,
                    (false, false) => TaskStatus::Suspended,
                    (true, true) if history.unfinished_turn.is_some() => TaskStatus::Running,
                    (true, _) => TaskStatus::Idle,
                };
                let agent = history.meta.and_then(|meta| meta.agent_nickname);
                (state, history.summary.preview.unwrap_or_default(), agent)
            }
        };
        Ok(Task {
            id: row.id.clone(),
            parent_id: row.parent.clone(),
            children: 0,
            name: row.name.clone(),
            preview,
            state,
            has_runtime,
            cwd: settings.cwd(),
            model: settings.opened().get("model").and_then(Value::as_str).map(str::to_owned),
            placement_id: row.placement_id.clone(),
            labels: row.labels.clone(),
            agent,
            agent_digest: row.agent_digest.clone(),
            is_archived: row.is_archived,
            epoch: row.epoch,
            waiting_operations,
            last_turn: row.last_turn.as_ref().and_then(|turn| protocol::from_value(turn).ok()),
            created_at_ms: row.created_at_ms,
            updated_at_ms: row.updated_at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use protocol::TurnId;

    use super::*;

    #[test]
    fn a_thread_is_idle_as_soon_as_the_end_of_its_turn_is_stored() {
        let view =
            TaskView { has_runtime: true, generation: Some(1), is_up: true, turn: Some(TurnId::new("u2")) };
        let status = |state, last: &str| thread_status(&view, state, Some(&json!({ "id": last })), false);
        assert_eq!(status(TaskState::Running, "u1"), ThreadStatus::Active { active_flags: Vec::new() });
        assert_eq!(status(TaskState::Running, "u2"), ThreadStatus::Idle);
        assert!(matches!(status(TaskState::Waiting, "u1"), ThreadStatus::Active { .. }));
        assert_eq!(status(TaskState::Waiting, "u2"), ThreadStatus::Idle);
    }
}
