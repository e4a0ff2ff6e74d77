//! Which replica has a thread, for whoever relays requests to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::ThreadId;
pub use store::TaskOwner;

use crate::error::TaskError;
use crate::task_host::TaskHost;

impl TaskHost {
    /// How long the lease of a host holds that is not heard of.
    pub fn lease_time(&self) -> Duration {
        self.shared.options.replica.ttl
    }

    /// The names of the replicas whose leases hold.
    pub async fn living_replicas(&self) -> Result<BTreeSet<String>, TaskError> {
        let rows = self.shared.store.list_replicas().await?;
        Ok(rows.into_iter().filter(|row| row.is_alive).map(|row| row.id).collect())
    }

    /// Whether the task of this id has its driver here.
    pub fn drives(&self, root: &ThreadId) -> bool {
        self.shared.living.lock().contains_key(root)
    }

    /// The replica that has the thread, if it is another one and alive.
    pub async fn owner_elsewhere(&self, thread: &ThreadId) -> Result<Option<TaskOwner>, TaskError> {
        if self.drives(thread) {
            return Ok(None);
        }
        Ok(self.owners_elsewhere(vec![thread.clone()]).await?.remove(thread))
    }

    /// The replicas that have these threads, children by their roots, as far as others that are alive do.
    pub async fn owners_elsewhere(
        &self,
        threads: Vec<ThreadId>,
    ) -> Result<BTreeMap<ThreadId, TaskOwner>, TaskError> {
        let mut owners = self.shared.store.owners_of(threads).await?;
        let own = self.shared.replica();
        owners.retain(|_, owner| owner.replica != own.id);
        Ok(owners)
    }
}
