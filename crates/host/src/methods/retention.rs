//! Removing tasks that nobody needs any more.

use store::{TaskFilter, TaskState};

use crate::error::TaskError;
use crate::task_host::TaskHost;

const PAGE: u32 = 200;
/// The name in the audit trail.
const BY: &str = "host:retention";

impl TaskHost {
    /// Removes tasks without a turn that have not changed for so long. Gives their number.
    pub async fn remove_older_than(&self, age_ms: i64) -> Result<usize, TaskError> {
        let before = self.shared.now_ms() - age_ms;
        let mut old = Vec::new();
        for is_archived in [false, true] {
            let mut cursor = None;
            loop {
                let state = Some(TaskState::Idle);
                let filter = TaskFilter { is_archived, state, cursor, limit: PAGE, ..TaskFilter::default() };
                let page = self.shared.store.list_tasks(filter).await?;
                let expired = page.tasks.into_iter().filter(|task| task.updated_at_ms < before);
                old.extend(expired.map(|task| task.id));
                cursor = page.cursor;
                if cursor.is_none() {
                    break;
                }
            }
        }
        let mut removed = 0;
        for task in old {
            // Somebody may have gone on with it since.
            if self.view_of(&task).turn.is_some() {
                continue;
            }
            match self.delete_task(&task, BY).await {
                Ok(()) => removed += 1,
                Err(error) => tracing::warn!(%error, %task, "an old task could not be removed"),
            }
        }
        Ok(removed)
    }
}
