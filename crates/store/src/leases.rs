//! Leases: one owner per task at any time, by the clock of the database.

use protocol::ThreadId;
use serde_json::json;

use crate::audit::{self, AuditEntry};
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
        return Err(StoreError::ReplicaReplaced(replica.id.clone()));
    }
    Ok(())
}

/// A start of a replica: its incarnation is greater than that of any start before, whatever the clocks say.
async fn register(
    transaction: &mut dyn Transaction,
    mut replica: ReplicaIdentity,
    ttl_ms: i64,
) -> Result<ReplicaIdentity, StoreError> {
    let sql =
        format!("SELECT incarnation FROM replicas WHERE id = $1{}", transaction.row_lock(RowLock::Update));
    let row = query_one(transaction, &sql, vec![replica.id.as_str().into()]).await?;
    let last = row.map_or(Ok(0), |row| row.int(0))?;
    if replica.incarnation != 0 && replica.incarnation != last {
        return Err(StoreError::ReplicaReplaced(replica.id));
    }
    replica.incarnation = last + 1;
    renew(transaction, &replica, ttl_ms).await?;
    Ok(replica)
}

/// The owner of a task with its incarnation and epoch, whether or not its lease still holds.
pub(crate) async fn holder(
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
pub(crate) async fn alive(
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
    let mut before = None;
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
        before = Some(owner).filter(|owner| *owner != replica.id);
    }
    if alive(transaction, &replica.id, replica.incarnation, expires).await?.is_none() {
        return Err(StoreError::Fenced(task.clone()));
    }
    let lease = own(transaction, task, replica).await?;
    if before.is_some() {
        audit::write(transaction, &adoption(task, replica, before.as_deref())).await?;
    }
    Ok(LeaseGrant::Granted(lease))
}

/// That a replica has taken over a task that goes on by itself, or whose owner was lost.
pub(crate) fn adoption(task: &ThreadId, replica: &ReplicaIdentity, before: Option<&str>) -> AuditEntry {
    AuditEntry {
        who: format!("host:{}", replica.id),
        action: "task/adopt".to_owned(),
        subject: task.as_str().to_owned(),
        task: Some(task.clone()),
        details: json!({ "from": before }),
    }
}

/// Makes a replica the owner of a task whose row is locked, with an epoch greater than all before.
pub(crate) async fn own(
    transaction: &mut dyn Transaction,
    task: &ThreadId,
    replica: &ReplicaIdentity,
) -> Result<TaskLease, StoreError> {
    let epoch =
        transaction.timeline().await? * EPOCHS_OF_A_TIMELINE + next_number(transaction, "epoch").await?;
    let sql = "UPDATE tasks SET owner = $2, owner_incarnation = $3, epoch = $4 WHERE id = $1";
    let values =
        vec![task.as_str().into(), replica.id.as_str().into(), replica.incarnation.into(), epoch.into()];
    transaction.execute(sql, values).await?;
    let epoch = u64::try_from(epoch).map_err(|_| StoreError::Damaged("a negative epoch".to_owned()))?;
    let (task, incarnation) = (task.clone(), replica.incarnation);
    Ok(TaskLease { task, replica: replica.id.clone(), incarnation, epoch })
}

/// Another epoch for the owner of a task: whatever carries an earlier one is refused from now on.
async fn next_epoch(
    transaction: &mut dyn Transaction,
    task: &ThreadId,
    replica: &ReplicaIdentity,
    expires: bool,
) -> Result<TaskLease, StoreError> {
    let held = holder(transaction, task, RowLock::Update).await?;
    let is_own =
        held.is_some_and(|(owner, incarnation, _)| owner == replica.id && incarnation == replica.incarnation);
    let lives = alive(transaction, &replica.id, replica.incarnation, expires).await?.is_some();
    if !is_own || !lives {
        return Err(StoreError::Fenced(task.clone()));
    }
    own(transaction, task, replica).await
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

impl TaskStore {
    /// Enters a host that has just started, with no incarnation yet, or one that lost its lease, under another incarnation:
    /// whatever it owned before is not its own any more. Refused when another start has taken the name meanwhile.
    pub async fn register_replica(
        &self,
        replica: &ReplicaIdentity,
        ttl_ms: i64,
    ) -> Result<ReplicaIdentity, StoreError> {
        let replica = replica.clone();
        self.work(move |transaction| {
            let replica = replica.clone();
            Box::pin(async move { register(transaction, replica, ttl_ms).await })
        })
        .await
    }

    /// The replica stops: what it still owns may be adopted at once.
    pub async fn retire_replica(&self, replica: &ReplicaIdentity) -> Result<(), StoreError> {
        let replica = replica.clone();
        self.work(move |transaction| {
            let replica = replica.clone();
            Box::pin(async move {
                let sql = "UPDATE replicas SET expires_at = 0 WHERE id = $1 AND incarnation = $2";
                let values = vec![replica.id.as_str().into(), replica.incarnation.into()];
                transaction.execute(sql, values).await?;
                transaction.notify("").await
            })
        })
        .await
    }

    /// Another epoch for a task that this replica owns, for its next runtime.
    pub async fn next_epoch(
        &self,
        task: &ThreadId,
        replica: &ReplicaIdentity,
    ) -> Result<TaskLease, StoreError> {
        let (task, replica, expires) = (task.clone(), replica.clone(), self.leases_expire());
        self.work(move |transaction| {
            let (task, replica) = (task.clone(), replica.clone());
            Box::pin(async move { next_epoch(transaction, &task, &replica, expires).await })
        })
        .await
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
                transaction.execute(sql, vec![lease.task.as_str().into(), lease.epoch.into()]).await?;
                transaction.notify(lease.task.as_str()).await
            })
        })
        .await
    }
}
