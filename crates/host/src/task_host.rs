//! The host: its store, its living tasks, and how a request finds its task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use protocol::ThreadId;
use store::{LeaseGrant, ReplicaIdentity, StoreError, TaskRow, TaskState, TaskStore};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::Instant;

use crate::clients::HostClients;
use crate::counters::HostCounters;
use crate::driver::{DriverParts, TaskDriver};
use crate::early::EarlyNotices;
use crate::error::TaskError;
use crate::lease::LeaseState;
use crate::messages::{LivingTask, TaskCommand, TaskView};
use crate::open_runtime::{open_operations, recorded_threads};
use crate::options::HostOptions;
use crate::placing::HostPlaces;
use crate::shared::HostShared;
use host_limits::RuntimeSlots;
use task::{TaskInput, TaskMachine, TaskSeed};

/// Commands that wait for a task.
const MAILBOX: usize = 256;

/// Durable tasks over any number of runtimes. Clones are the same host.
#[derive(Debug, Clone)]
pub struct TaskHost {
    pub(crate) shared: Arc<HostShared>,
}

impl TaskHost {
    /// Takes over the store. Each start has an incarnation, and so leases, greater than all before.
    pub async fn open(
        store: TaskStore,
        clients: Arc<dyn HostClients>,
        options: HostOptions,
    ) -> Result<Self, StoreError> {
        let replica = ReplicaIdentity {
            id: options.replica.id.clone(),
            incarnation: 0,
            address: options.address.clone(),
            sites: [options.replica.site.clone()].into_iter().chain(options.places.shared_sites()).collect(),
        };
        let ttl_ms = i64::try_from(options.replica.ttl.as_millis()).unwrap_or(i64::MAX);
        let before = Instant::now();
        let replica = store.register_replica(&replica, ttl_ms).await?;
        let places = HostPlaces::new(options.places.clone(), Arc::clone(&options.clock))
            .map_err(|error| StoreError::Damaged(error.to_string()))?;
        let slots = RuntimeSlots::new(options.limits.max_running);
        let shared = HostShared {
            store,
            clients,
            options,
            places,
            replica: SyncMutex::new(replica),
            lease: watch::Sender::new(LeaseState::Forever),
            replaced: watch::Sender::new(None),
            is_stopping: AtomicBool::new(false),
            counters: HostCounters::default(),
            early: EarlyNotices::default(),
            slots,
            streams: Arc::default(),
            failed: SyncMutex::default(),
            living: SyncMutex::default(),
            doubted: SyncMutex::default(),
            loading: Mutex::default(),
        };
        let host = Self { shared: Arc::new(shared) };
        host.sweep_placements();
        if host.shared.store.leases_expire() {
            host.keep_lease(before);
        }
        Ok(host)
    }

    /// Brings back what goes on by itself and no other host has: turns that ran, input that waits, decisions that were not
    /// carried out.
    pub async fn recover(&self) -> Result<usize, TaskError> {
        Ok(self.adopt().await?)
    }

    /// Returns when another process has taken the name of this host, which then has no tasks any more.
    pub async fn replaced(&self) -> String {
        let mut replaced = self.shared.replaced.subscribe();
        match replaced.wait_for(Option::is_some).await {
            Ok(name) => name.clone().unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Suspends every turn at a safe point, ends every runtime, and leaves the tasks to other hosts. What takes longer than
    /// `limit` is left to its lease.
    pub async fn shut_down(&self, limit: Duration) {
        self.shared.is_stopping.store(true, Ordering::Release);
        if tokio::time::timeout(limit, self.drain()).await.is_err() {
            tracing::warn!("some runtimes did not end in time");
            return;
        }
        if self.shared.store.leases_expire()
            && let Err(error) = self.shared.store.retire_replica(&self.shared.replica()).await
        {
            tracing::warn!(%error, "other hosts take over the tasks of this one when its lease is over");
        }
    }

    async fn drain(&self) {
        let living: Vec<LivingTask> = self.shared.living.lock().values().cloned().collect();
        for task in &living {
            let _ = task.mailbox.send(TaskCommand::Input(TaskInput::DrainWanted)).await;
        }
        for mut task in living {
            let _ = task.view.wait_for(|view| !view.has_runtime).await;
        }
    }

    /// Whether any turn runs.
    pub fn is_idle(&self) -> bool {
        self.shared.living.lock().values().all(|task| task.view.borrow().turn.is_none())
    }

    /// Whether a runtime has the thread at the moment.
    pub async fn has_runtime(&self, thread: &ThreadId) -> bool {
        match self.root_of(thread).await {
            Ok(row) => self.shared.view_of(&row.id).has_runtime,
            Err(_) => false,
        }
    }

    pub(crate) fn loaded(&self) -> Vec<ThreadId> {
        let living = self.shared.living.lock();
        let mut loaded: Vec<ThreadId> =
            living.values().filter(|task| task.view.borrow().is_up).map(|task| task.id.clone()).collect();
        loaded.sort();
        loaded
    }

    /// The row of the task that a thread belongs to.
    pub(crate) async fn root_of(&self, thread: &ThreadId) -> Result<TaskRow, TaskError> {
        let unknown = || TaskError::UnknownThread(thread.clone());
        let row = self.shared.store.task(thread).await?.ok_or_else(unknown)?;
        if row.root == row.id {
            return Ok(row);
        }
        self.shared.store.task(&row.root).await?.ok_or_else(unknown)
    }

    pub(crate) async fn tell_task(&self, root: &ThreadId, input: TaskInput) -> Result<(), TaskError> {
        self.send(root, TaskCommand::Input(input)).await
    }

    /// A driver may leave at the moment it is found; then another one is started.
    pub(crate) async fn send(&self, root: &ThreadId, mut command: TaskCommand) -> Result<(), TaskError> {
        for _ in 0..8 {
            let task = self.living(root).await?;
            match task.mailbox.send(command).await {
                Ok(()) => return Ok(()),
                Err(mpsc::error::SendError(back)) => command = back,
            }
        }
        Err(TaskError::RuntimeGone(root.clone()))
    }

    /// The driver of a task, started where there is none.
    pub(crate) async fn living(&self, root: &ThreadId) -> Result<LivingTask, TaskError> {
        if let Some(task) = self.found(root) {
            return Ok(task);
        }
        let _loading = self.shared.loading.lock().await;
        if let Some(task) = self.found(root) {
            return Ok(task);
        }
        let lost = || TaskError::OwnerLost(root.clone());
        let term = self.shared.lease.borrow().term().ok_or_else(lost)?;
        let replica = self.shared.replica();
        let lease = match self.shared.store.acquire_task(root, &replica).await? {
            LeaseGrant::Granted(lease) => lease,
            LeaseGrant::Held { address, .. } => {
                return Err(TaskError::OwnedElsewhere { thread: root.clone(), address });
            }
        };
        // Read under the lease: nobody else changes it any more.
        let row = self.shared.store.task(root).await?;
        let row = row.ok_or_else(|| TaskError::UnknownThread(root.clone()))?;
        if self.shared.store.leases_expire() && !replica.sites.contains(&row.site) {
            self.shared.store.release_task(&lease).await?;
            return Err(TaskError::PlacementUnreachable { thread: row.id, site: row.site });
        }
        let inputs = self.shared.store.waiting_inputs(root).await?;
        let seed = self.seed(&row, inputs.iter().map(|row| row.input_id.clone()).collect()).await?;
        let (mailbox, commands) = mpsc::channel(MAILBOX);
        let (view, shown) = watch::channel(TaskView::default());
        let gate = Arc::<Mutex<()>>::default();
        let task = LivingTask { id: root.clone(), mailbox: mailbox.clone(), gate: gate.clone(), view: shown };
        let driver = TaskDriver::new(DriverParts {
            shared: self.shared.clone(),
            id: root.clone(),
            replica,
            lease,
            term,
            machine: TaskMachine::new(root.clone(), self.shared.options.times, seed),
            inputs,
            mailbox,
            commands,
            gate,
            view,
        });
        self.shared.living.lock().insert(root.clone(), task.clone());
        tokio::spawn(driver.run());
        Ok(task)
    }

    fn found(&self, root: &ThreadId) -> Option<LivingTask> {
        self.shared.living.lock().get(root).cloned()
    }

    /// The task by its records and rows.
    async fn seed(&self, row: &TaskRow, inputs: Vec<String>) -> Result<TaskSeed, TaskError> {
        let threads = recorded_threads(&self.shared, &row.id).await?;
        let open = open_operations(&self.shared, &row.id, &threads).await?;
        let turns = threads.into_iter().filter_map(|thread| Some((thread.id, thread.unfinished?))).collect();
        let state = match row.state {
            // Its runtime never came up, or died before the first record.
            TaskState::Creating if row.next_ordinal > 0 => TaskState::Idle,
            state => state,
        };
        Ok(TaskSeed { state, turns, operations: open.stages, agent_waits: open.agent_waits, inputs })
    }
}
