//! Removing tasks that nobody needs any more.

use crate::error::TaskError;
use crate::task_host::TaskHost;

/// The name in the audit trail.
const BY: &str = "host:retention";

impl TaskHost {
    /// Removes tasks without a turn that have not changed for so long. Gives their number.
    pub async fn remove_older_than(&self, age_ms: i64) -> Result<u64, TaskError> {
        let before = self.shared.now_ms() - age_ms;
        let old = self.shared.store.idle_tasks(before).await?;
        let mut removed = 0;
        for task in old {
            // Somebody may have gone on with it since.
            if self.shared.view_of(&task).turn.is_some() {
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
