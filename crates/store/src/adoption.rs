//! Tasks that nobody works on: who takes them over, and who has them.

use std::collections::BTreeMap;

use protocol::ThreadId;

use crate::audit;
use crate::backend::{RowLock, SqlValue, Transaction};
use crate::error::StoreError;
use crate::leases::{self, ReplicaIdentity, TaskLease};
use crate::store::TaskStore;
use crate::tasks::TaskState;

/// Whoever committed input or a decision for a task without an owner takes the task next. Only when that does not happen
/// within this time is it left to others.
const LEFT_TO_OTHERS_MS: i64 = 2_000;

/// A replica as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaRow {
    pub id: String,
    pub address: String,
    pub sites: Vec<String>,
    /// Unset where leases do not expire.
    pub expires_at_ms: Option<i64>,
    /// Its lease holds.
    pub is_alive: bool,
    /// The tasks it owns.
    pub tasks: u32,
}

/// A replica that owns a task and is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOwner {
    pub replica: String,
    /// Where it is reached by other replicas.
    pub address: String,
}

/// Tasks that go on without anybody asking: a turn runs, input waits, or a decision was not carried out. `$1` is the time
/// before which input and decisions of tasks without an owner are nobody's.
const HAS_WORK: &str = "(state IN ('queued', 'running') \
     OR EXISTS (SELECT 1 FROM inbox WHERE inbox.thread_id = tasks.id AND inbox.state = 'received' \
     AND (tasks.owner IS NOT NULL OR inbox.received_at <= $1)) \
     OR EXISTS (SELECT 1 FROM operations WHERE operations.root_id = tasks.id AND operations.state = 'decided' \
     AND (tasks.owner IS NOT NULL OR operations.updated_at <= $1)))";

async fn adopt(
    transaction: &mut dyn Transaction,
    replica: &ReplicaIdentity,
    limit: u32,
    expires: bool,
) -> Result<Vec<TaskLease>, StoreError> {
    let now = transaction.now_ms().await?;
    // Where leases do not expire there is one host, and an owner is gone when that was started again.
    let (nobodys_before, alive_after) =
        if expires { (now - LEFT_TO_OTHERS_MS, now) } else { (now, i64::MIN) };
    let mut values: Vec<SqlValue> = vec![nobodys_before.into(), alive_after.into()];
    let mut sites = Vec::new();
    for site in &replica.sites {
        values.push(site.as_str().into());
        sites.push(format!("${}", values.len()));
    }
    if sites.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT id, owner FROM tasks WHERE parent_id IS NULL AND archived = 0 AND site IN ({}) AND {HAS_WORK} \
         AND (owner IS NULL OR NOT EXISTS (SELECT 1 FROM replicas WHERE replicas.id = tasks.owner \
         AND replicas.incarnation = tasks.owner_incarnation AND replicas.expires_at > $2)) \
         ORDER BY priority DESC, created_at LIMIT {}{}",
        sites.join(", "),
        limit.clamp(1, 1_000),
        transaction.row_lock(RowLock::UpdateSkipLocked),
    );
    let rows = transaction.query(&sql, values).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    if leases::alive(transaction, &replica.id, replica.incarnation, expires).await?.is_none() {
        return Err(StoreError::ReplicaReplaced(replica.id.clone()));
    }
    let (mut adopted, mut entries) = (Vec::new(), Vec::new());
    for row in rows {
        let task = ThreadId::new(row.text(0)?);
        entries.push(leases::adoption(&task, replica, row.maybe_text(1)?.as_deref()));
        adopted.push(leases::own(transaction, &task, replica).await?);
    }
    for entry in &entries {
        audit::write(transaction, entry).await?;
    }
    Ok(adopted)
}

async fn owner(
    transaction: &mut dyn Transaction,
    task: &ThreadId,
    expires: bool,
) -> Result<Option<TaskOwner>, StoreError> {
    let held = leases::holder(transaction, task, RowLock::Nothing).await?;
    let Some((replica, incarnation, _)) = held else { return Ok(None) };
    let found = leases::alive(transaction, &replica, incarnation, expires).await?;
    Ok(found.map(|(address, _)| TaskOwner { replica, address }))
}

async fn replicas(transaction: &mut dyn Transaction, expires: bool) -> Result<Vec<ReplicaRow>, StoreError> {
    let now = transaction.now_ms().await?;
    let sql = "SELECT id, address, sites, expires_at, (SELECT count(*) FROM tasks WHERE tasks.owner = replicas.id \
               AND tasks.owner_incarnation = replicas.incarnation AND parent_id IS NULL) FROM replicas ORDER BY id";
    let rows = transaction.query(sql, Vec::new()).await?;
    let shown = rows.iter().map(|row| {
        let ends = row.int(3)?;
        Ok(ReplicaRow {
            id: row.text(0)?,
            address: row.text(1)?,
            sites: row.json(2)?,
            expires_at_ms: expires.then_some(ends),
            is_alive: !expires || ends > now,
            tasks: u32::try_from(row.int(4)?).unwrap_or(u32::MAX),
        })
    });
    shown.collect()
}

/// Threads that are asked about at once.
const OWNERS_AT_ONCE: usize = 500;

async fn owners(
    transaction: &mut dyn Transaction,
    threads: &[ThreadId],
    expires: bool,
) -> Result<BTreeMap<ThreadId, TaskOwner>, StoreError> {
    let now = transaction.now_ms().await?;
    let mut owners = BTreeMap::new();
    for threads in threads.chunks(OWNERS_AT_ONCE) {
        let mut values: Vec<SqlValue> = vec![if expires { now } else { i64::MIN }.into()];
        let mut names = Vec::new();
        for thread in threads {
            values.push(thread.as_str().into());
            names.push(format!("${}", values.len()));
        }
        let sql = format!(
            "SELECT threads.id, replicas.id, replicas.address FROM tasks AS threads \
             JOIN tasks AS roots ON roots.id = threads.root_id \
             JOIN replicas ON replicas.id = roots.owner AND replicas.incarnation = roots.owner_incarnation \
             WHERE replicas.expires_at > $1 AND threads.id IN ({})",
            names.join(", ")
        );
        for row in transaction.query(&sql, values).await? {
            let owner = TaskOwner { replica: row.text(1)?, address: row.text(2)? };
            owners.insert(ThreadId::new(row.text(0)?), owner);
        }
    }
    Ok(owners)
}

impl TaskStore {
    /// The replicas that own the tasks of these threads and are alive.
    pub async fn owners_of(
        &self,
        threads: Vec<ThreadId>,
    ) -> Result<BTreeMap<ThreadId, TaskOwner>, StoreError> {
        if threads.is_empty() {
            return Ok(BTreeMap::new());
        }
        let expires = self.leases_expire();
        self.work(move |transaction| {
            let threads = threads.clone();
            Box::pin(async move { owners(transaction, &threads, expires).await })
        })
        .await
    }

    /// Takes over tasks of the replica's sites that have something to do and no living owner. Replicas that do this at the
    /// same time get different ones.
    pub async fn adopt_tasks(
        &self,
        replica: &ReplicaIdentity,
        limit: u32,
    ) -> Result<Vec<TaskLease>, StoreError> {
        let (replica, expires) = (replica.clone(), self.leases_expire());
        self.work(move |transaction| {
            let replica = replica.clone();
            Box::pin(async move { adopt(transaction, &replica, limit, expires).await })
        })
        .await
    }

    /// The replica that owns a task, if it is alive.
    pub async fn owner_of(&self, task: &ThreadId) -> Result<Option<TaskOwner>, StoreError> {
        let (task, expires) = (task.clone(), self.leases_expire());
        self.work(move |transaction| {
            let task = task.clone();
            Box::pin(async move { owner(transaction, &task, expires).await })
        })
        .await
    }

    /// Every host that has ever used the store, whether or not its lease holds.
    pub async fn list_replicas(&self) -> Result<Vec<ReplicaRow>, StoreError> {
        let expires = self.leases_expire();
        self.work(move |transaction| Box::pin(async move { replicas(transaction, expires).await })).await
    }

    /// Changes the state of a task, for its owner alone.
    pub async fn set_task_state(&self, lease: &TaskLease, state: TaskState) -> Result<(), StoreError> {
        let (lease, expires) = (lease.clone(), self.leases_expire());
        self.work_soon(move |transaction| {
            let lease = lease.clone();
            Box::pin(async move {
                leases::check(transaction, &lease, RowLock::Update, expires).await?;
                let now = transaction.now_ms().await?;
                let sql = "UPDATE tasks SET state = $2, updated_at = $3 WHERE id = $1";
                let values = vec![lease.task.as_str().into(), state.word().into(), now.into()];
                transaction.execute(sql, values).await.map(drop)
            })
        })
        .await
    }
}
