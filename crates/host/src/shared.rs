//! State that all tasks share, and the table of those that live.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex as SyncMutex;
use protocol::ThreadId;
use store::{ReplicaIdentity, TaskStore};
use tokio::sync::{Mutex, mpsc};

use crate::clients::HostClients;
use crate::messages::{LivingTask, TaskCommand};
use crate::options::HostOptions;

/// The only place for now.
pub(crate) const SITE: &str = "local";

/// State that all tasks share.
#[derive(Debug)]
pub(crate) struct HostShared {
    pub(crate) store: TaskStore,
    pub(crate) clients: Arc<dyn HostClients>,
    pub(crate) options: HostOptions,
    pub(crate) replica: ReplicaIdentity,
    pub(crate) living: SyncMutex<HashMap<ThreadId, LivingTask>>,
    /// Held while a task is loaded: one driver per task.
    pub(crate) loading: Mutex<()>,
}

impl HostShared {
    pub(crate) fn site(&self) -> &str {
        SITE
    }

    /// A driver that is at rest leaves, unless somebody has just sent it something.
    pub(crate) fn let_go(&self, id: &ThreadId, commands: &mut mpsc::Receiver<TaskCommand>) -> bool {
        let mut living = self.living.lock();
        if !commands.is_empty() {
            return false;
        }
        living.remove(id);
        commands.close();
        true
    }
}
