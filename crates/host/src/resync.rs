//! How the threads of a task stand when another host has taken it over: for clients that followed them at the one before.

use protocol::{ItemStartedNotification, RolloutItem, RolloutRecord, ThreadId, ThreadItem, Turn, TurnId};
use serde_json::json;
use store::{TaskRow, TaskState};
use tokio::sync::OwnedMutexGuard;

use crate::error::TaskError;
use crate::open_runtime::{all_records, thread_rows};
use crate::task_host::TaskHost;
use task::TaskInput;

/// One thread by its record.
#[derive(Debug)]
pub struct ThreadStanding {
    pub thread: ThreadId,
    /// Its last record.
    pub ordinal: Option<u64>,
    /// Items that the record has as begun and not ended.
    pub open_items: Vec<ItemStartedNotification>,
}

/// Whether the item has begun and not ended.
fn is_open(item: &ThreadItem) -> bool {
    json!(item)["status"] == "inProgress"
}

impl TaskHost {
    /// Held, nothing of what the runtime of the task says is passed on. Nothing where no driver has the task.
    pub async fn hold_messages(&self, root: &ThreadId) -> Option<OwnedMutexGuard<()>> {
        let gate = self.shared.living.lock().get(root).map(|task| task.gate.clone())?;
        Some(gate.lock_owned().await)
    }

    /// Takes the task of a thread whose followers here have lost its owner, unless another host has it or is about to: a task
    /// that goes on by itself is adopted. A turn that waits gets its runtime back if `may_start`, and asks again. Answers
    /// whether it is here now.
    pub async fn take_up(&self, thread: &ThreadId, may_start: bool) -> Result<bool, TaskError> {
        let row = self.root_of(thread).await?;
        if matches!(row.state, TaskState::Creating | TaskState::Queued | TaskState::Running) {
            return Ok(self.drives(&row.id));
        }
        match self.living(&row.id).await {
            Ok(_) => {}
            Err(TaskError::OwnedElsewhere { .. } | TaskError::PlacementUnreachable { .. }) => {
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        if may_start && self.waits(&row.id).await {
            self.tell_task(&row.id, TaskInput::ResumeWanted).await?;
        }
        Ok(true)
    }

    /// How a thread stands, and after it, where it is the root of a task, each of its agents.
    pub async fn standings(&self, thread: &ThreadId) -> Result<Vec<ThreadStanding>, TaskError> {
        let unknown = || TaskError::UnknownThread(thread.clone());
        let row = self.shared.store.task(thread).await?.ok_or_else(unknown)?;
        let agents = match row.root == row.id {
            true => thread_rows(&self.shared, thread).await?,
            false => Vec::new(),
        };
        let mut standings = vec![self.standing(&row).await?];
        for agent in agents.iter().filter(|agent| agent.id != row.id) {
            standings.push(self.standing(agent).await?);
        }
        Ok(standings)
    }

    async fn standing(&self, row: &TaskRow) -> Result<ThreadStanding, TaskError> {
        let history = self.shared.history(&row.id).await?;
        let turn = history.turns.into_iter().rfind(|turn| Some(&turn.id) == history.unfinished_turn.as_ref());
        let mut open_items = Vec::new();
        if let Some(turn) = turn {
            let open = self.open_items(&row.id, &turn.id).await?;
            open_items.extend(open.into_iter().map(|item| ItemStartedNotification {
                item,
                thread_id: row.id.clone(),
                turn_id: turn.id.clone(),
                started_at_ms: turn.started_at.unwrap_or_default().saturating_mul(1_000),
            }));
        }
        let ordinal = row.next_ordinal.checked_sub(1);
        Ok(ThreadStanding { thread: row.id.clone(), ordinal, open_items })
    }

    /// The turns of a thread by its record, without items that have not ended.
    pub async fn recorded_turns(&self, thread: &ThreadId) -> Result<Vec<Turn>, TaskError> {
        let mut history = self.shared.history(thread).await?;
        if let Some(unfinished) = &history.unfinished_turn
            && let Some(turn) = history.turns.iter_mut().rfind(|turn| turn.id == *unfinished)
        {
            let open = self.open_items(thread, unfinished).await?;
            turn.items.retain(|item| open.iter().all(|open| open.id() != item.id()));
        }
        Ok(history.turns)
    }

    /// Items of a turn that have begun and not ended. The history has them as failed, as if the turn were over.
    async fn open_items(&self, thread: &ThreadId, turn: &TurnId) -> Result<Vec<ThreadItem>, TaskError> {
        let mut open: Vec<ThreadItem> = Vec::new();
        for record in all_records(&self.shared, thread).await? {
            if !record.payload.contains("threadItem") {
                continue;
            }
            let read = serde_json::from_str::<RolloutItem>(&record.payload).map(|item| item.record);
            if let Ok(RolloutRecord::ThreadItem { turn_id, item }) = read
                && turn_id == *turn
            {
                open.retain(|known| known.id() != item.id());
                open.extend(Some(item).filter(is_open));
            }
        }
        Ok(open)
    }
}
