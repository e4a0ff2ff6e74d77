//! Leases: one owner per task at any time, by the clock of the database.

use protocol::ThreadId;

use crate::backend::{RowLock, SqlValue, Transaction, query_one};
use crate::error::StoreError;
use crate::migrations::next_number;
use crate::store::TaskStore;

/// Room for this many leases on one timeline of the database. Epochs stay exact in JSON.
const EPOCHS_OF_A_TIMELINE: i64 = 1 << 36;

/// A host process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaIdentity {
    /// Stays the same when the host is started again.
    pub id: String,
    /// Another one at each start.
    pub incarnation: i64,
    /// Where other replicas reach it.
    pub address: String,
    /// The sites whose placements it can reach.
    pub sites: Vec<String>,
}

/// A replica's own lease, which all its tasks hang on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaLease {
    /// How long it holds from the moment the renewal was sent; unset where leases do not expire.
    pub valid_for_ms: Option<i64>,
}

/// The right to append to a task's records and to start its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLease {
    pub task: ThreadId,
    pub replica: String,
    pub incarnation: i64,
    /// Greater than that of any owner before.
    pub epoch: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseGrant {
    Granted(TaskLease),
    /// Another replica has it.
    Held {
        replica: String,
        address: String,
    },
}

async fn renew(
    transaction: &mut dyn Transaction,
    replica: &ReplicaIdentity,
    ttl_ms: i64,
) -> Result<(), StoreError> {
    let now = transaction.now_ms().await?;
    let sql = "INSERT INTO replicas (id, incarnation, address, sites, expires_at) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (id) DO UPDATE SET incarnation = excluded.incarnation, address = excluded.address, \
               sites = excluded.sites, expires_at = excluded.expires_at \
               WHERE replicas.incarnation <= excluded.incarnation";
    let values = vec![
        replica.id.as_str().into(),
        replica.incarnation.into(),
        replica.address.as_str().into(),
        SqlValue::json(&replica.sites)?,
        (now + ttl_ms).into(),
    ];
    if transaction.execute(sql, values).await? == 0 {
        // A newer start of the same host has taken its place.
        return Err(StoreError::Database(format!("replica {} was started again elsewhere", replica.id)));
    }
    Ok(())
}

/// The owner of a task and whether its lease still holds.
async fn holder(
    transaction: &mut dyn Transaction,
    task: &ThreadId,
    lock: RowLock,
) -> Result<Option<(String, i64, u64)>, StoreError> {
    let sql = format!(
        "SELECT owner, owner_incarnation, epoch FROM tasks WHERE id = $1{}",
        transaction.row_lock(lock)
    );
    let row = query_one(transaction, &sql, vec![task.as_str().into()]).await?;
    let row = row.ok_or_else(|| StoreError::UnknownTask(task.clone()))?;
    let epoch = row.unsigned(2)?;
    row.maybe_text(0)?.map(|owner| Ok((owner, row.int(1)?, epoch))).transpose()
}

/// The address of a replica whose lease holds, with what is left of it.
async fn alive(
    transaction: &mut dyn Transaction,
    replica: &str,
    incarnation: i64,
    expires: bool,
) -> Result<Option<(String, i64)>, StoreError> {
    let sql = "SELECT address, incarnation, expires_at FROM replicas WHERE id = $1";
    let Some(row) = query_one(transaction, sql, vec![replica.into()]).await? else { return Ok(None) };
    let left = row.int(2)? - transaction.now_ms().await?;
    let holds = row.int(1)? == incarnation && (left > 0 || !expires);
    Ok(if holds { Some((row.text(0)?, left)) } else { None })
}

async fn acquire(
    transaction: &mut dyn Transaction,
    task: &ThreadId,
    replica: &ReplicaIdentity,
    expires: bool,
) -> Result<LeaseGrant, StoreError> {
    let held = holder(transaction, task, RowLock::Update).await?;
    if let Some((owner, incarnation, epoch)) = held {
        let is_own = owner == replica.id && incarnation == replica.incarnation;
        if is_own {
            let lease = TaskLease { task: task.clone(), replica: owner, incarnation, epoch };
            return Ok(LeaseGrant::Granted(lease));
        }
        // An earlier start of this host is gone: the same id cannot run twice.
        if owner != replica.id
            && let Some((address, _)) = alive(transaction, &owner, incarnation, expires).await?
        {
            return Ok(LeaseGrant::Held { replica: owner, address });
        }
    }
    if alive(transaction, &replica.id, replica.incarnation, expires).await?.is_none() {
        return Err(StoreError::Fenced(task.clone()));
    }
    let epoch =
        transaction.timeline().await? * EPOCHS_OF_A_TIMELINE + next_number(transaction, "epoch").await?;
    let sql = "UPDATE tasks SET owner = $2, owner_incarnation = $3, epoch = $4 WHERE id = $1";
    let values =
        vec![task.as_str().into(), replica.id.as_str().into(), replica.incarnation.into(), epoch.into()];
    transaction.execute(sql, values).await?;
    let epoch = u64::try_from(epoch).map_err(|_| StoreError::Damaged("a negative epoch".to_owned()))?;
    let lease = TaskLease {
        task: task.clone(),
        replica: replica.id.clone(),
        incarnation: replica.incarnation,
        epoch,
    };
    Ok(LeaseGrant::Granted(lease))
}

/// The remaining time of the lease, by the database's clock. Locks the task against another owner until the commit.
pub(crate) async fn check(
    transaction: &mut dyn Transaction,
    lease: &TaskLease,
    lock: RowLock,
    expires: bool,
) -> Result<Option<i64>, StoreError> {
    let fenced = || StoreError::Fenced(lease.task.clone());
    let (owner, incarnation, epoch) = holder(transaction, &lease.task, lock).await?.ok_or_else(fenced)?;
    if (owner.as_str(), incarnation, epoch) != (lease.replica.as_str(), lease.incarnation, lease.epoch) {
        return Err(fenced());
    }
    let (_, left) = alive(transaction, &owner, incarnation, expires).await?.ok_or_else(fenced)?;
    Ok(expires.then_some(left))
}

async fn adoptable(
    transaction: &mut dyn Transaction,
    replica: &ReplicaIdentity,
    limit: u32,
    expires: bool,
) -> Result<Vec<ThreadId>, StoreError> {
    let now = if expires { transaction.now_ms().await? } else { i64::MIN };
    let lock = transaction.row_lock(RowLock::UpdateSkipLocked);
    // Roots whose owner is gone or out of time, and that have something left to do.
    let sql = format!(
        "SELECT id, site FROM tasks WHERE parent_id IS NULL AND archived = 0 \
         AND state IN ('creating', 'queued', 'running', 'waiting') AND (owner IS NULL OR NOT EXISTS \
         (SELECT 1 FROM replicas WHERE replicas.id = tasks.owner AND replicas.incarnation = tasks.owner_incarnation \
         AND replicas.expires_at > $1)) ORDER BY priority DESC, created_at LIMIT {}{lock}",
        limit.clamp(1, 1_000)
    );
    let rows = transaction.query(&sql, vec![now.into()]).await?;
    let mut found = Vec::new();
    for row in rows {
        if replica.sites.contains(&row.text(1)?) {
            found.push(ThreadId::new(row.text(0)?));
        }
    }
    Ok(found)
}

/// Roots with something to do that no decision or request is needed for.
async fn with_work(transaction: &mut dyn Transaction) -> Result<Vec<ThreadId>, StoreError> {
    let sql = "SELECT id FROM tasks WHERE parent_id IS NULL AND archived = 0 AND \
               (state IN ('queued', 'running') \
               OR EXISTS (SELECT 1 FROM inbox WHERE inbox.thread_id = tasks.id AND inbox.state = 'received') \
               OR EXISTS (SELECT 1 FROM operations WHERE operations.root_id = tasks.id \
               AND operations.state = 'decided')) ORDER BY priority DESC, created_at";
    let rows = transaction.query(sql, Vec::new()).await?;
    rows.iter().map(|row| Ok(ThreadId::new(row.text(0)?))).collect()
}

impl TaskStore {
    /// Tasks that go on by themselves when a host starts: a turn runs, input waits, or a decision was not carried out.
    pub async fn tasks_with_work(&self) -> Result<Vec<ThreadId>, StoreError> {
        self.work(move |transaction| Box::pin(async move { with_work(transaction).await })).await
    }

    /// Says that this replica is alive. Its deadline counts from before this call.
    pub async fn renew_replica(
        &self,
        replica: &ReplicaIdentity,
        ttl_ms: i64,
    ) -> Result<ReplicaLease, StoreError> {
        let replica = replica.clone();
        self.work(move |transaction| {
            let replica = replica.clone();
            Box::pin(async move { renew(transaction, &replica, ttl_ms).await })
        })
        .await?;
        Ok(ReplicaLease { valid_for_ms: self.leases_expire().then_some(ttl_ms) })
    }

    /// Takes a task that nobody owns, or whose owner's lease is over.
    pub async fn acquire_task(
        &self,
        task: &ThreadId,
        replica: &ReplicaIdentity,
    ) -> Result<LeaseGrant, StoreError> {
        let (task, replica, expires) = (task.clone(), replica.clone(), self.leases_expire());
        self.work(move |transaction| {
            let (task, replica) = (task.clone(), replica.clone());
            Box::pin(async move { acquire(transaction, &task, &replica, expires).await })
        })
        .await
    }

    /// Gives a task up. Has no effect when it is another's already.
    pub async fn release_task(&self, lease: &TaskLease) -> Result<(), StoreError> {
        let lease = lease.clone();
        self.work(move |transaction| {
            let lease = lease.clone();
            Box::pin(async move {
                let sql =
                    "UPDATE tasks SET owner = NULL, owner_incarnation = NULL WHERE id = $1 AND epoch = $2";
                transaction.execute(sql, vec![lease.task.as_str().into(), lease.epoch.into()]).await.map(drop)
            })
        })
        .await
    }

    /// Tasks of these sites that have something to do and no living owner.
    pub async fn adoptable_tasks(
        &self,
        replica: &ReplicaIdentity,
        limit: u32,
    ) -> Result<Vec<ThreadId>, StoreError> {
        let (replica, expires) = (replica.clone(), self.leases_expire());
        self.work(move |transaction| {
            let replica = replica.clone();
            Box::pin(async move { adoptable(transaction, &replica, limit, expires).await })
        })
        .await
    }
}
