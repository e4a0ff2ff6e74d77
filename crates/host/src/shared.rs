//! State that all tasks share, and the table of those that live.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex as SyncMutex;
use protocol::ThreadId;
use store::{ReplicaIdentity, TaskStore};
use tokio::sync::{Mutex, mpsc, watch};

use crate::clients::HostClients;
use crate::counters::HostCounters;
use crate::early::EarlyNotices;
use crate::ids::new_uuid;
use crate::lease::LeaseState;
use crate::messages::{LivingTask, TaskCommand};
use crate::options::HostOptions;
use crate::placing::HostPlaces;
use crate::streams::ClientStreams;
use host_limits::RuntimeSlots;

/// State that all tasks share.
#[derive(Debug)]
pub(crate) struct HostShared {
    pub(crate) store: TaskStore,
    pub(crate) clients: Arc<dyn HostClients>,
    pub(crate) options: HostOptions,
    pub(crate) places: HostPlaces,
    /// Another incarnation after the lease was lost.
    pub(crate) replica: SyncMutex<ReplicaIdentity>,
    pub(crate) lease: watch::Sender<LeaseState>,
    /// The name of this host, when another process has taken it.
    pub(crate) replaced: watch::Sender<Option<String>>,
    /// It takes over nothing more.
    pub(crate) is_stopping: AtomicBool,
    pub(crate) counters: HostCounters,
    pub(crate) early: EarlyNotices,
    pub(crate) slots: Arc<RuntimeSlots>,
    /// Of clients that carry model requests.
    pub(crate) streams: Arc<ClientStreams>,
    /// Threads with a runtime whose last turn failed.
    pub(crate) failed: SyncMutex<BTreeSet<ThreadId>>,
    pub(crate) living: SyncMutex<HashMap<ThreadId, LivingTask>>,
    /// Tasks that this host let go though its own lease held. The store may name it as their owner still, and then nobody
    /// else takes them.
    pub(crate) doubted: SyncMutex<BTreeSet<ThreadId>>,
    /// Held while a task is loaded: one driver per task.
    pub(crate) loading: Mutex<()>,
}

impl HostShared {
    pub(crate) fn note_failed(&self, thread: ThreadId, has_failed: bool) {
        let mut failed = self.failed.lock();
        match has_failed {
            true => drop(failed.insert(thread)),
            false => drop(failed.remove(&thread)),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    /// A UUID of version 7: those made later sort later.
    pub(crate) fn new_uuid(&self) -> String {
        new_uuid(self.now_ms())
    }

    pub(crate) fn site(&self) -> &str {
        &self.options.replica.site
    }

    pub(crate) fn replica(&self) -> ReplicaIdentity {
        self.replica.lock().clone()
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

    /// A driver whose task is another host's now leaves; one that has taken its place stays.
    pub(crate) fn forget(&self, id: &ThreadId, mailbox: &mpsc::Sender<TaskCommand>) {
        let mut living = self.living.lock();
        if living.get(id).is_some_and(|task| task.mailbox.same_channel(mailbox)) {
            living.remove(id);
        }
    }
}
