//! Operations: a projection of the records, so that they can be listed, with decisions and attempts beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::{
    OperationDecision, OperationId, OperationRecord, OperationResult, PendingOperationState, ThreadId, TurnId,
};
use serde_json::{Value, json};

use crate::audit::{self, AuditEntry};
use crate::backend::{RowLock, SqlRow, SqlValue, Transaction, query_one};
use crate::decision::{DecisionRow, OwnDecision, decision_of, without_content};
use crate::error::StoreError;
use crate::leases::{self, TaskLease};
use crate::store::TaskStore;
use crate::tasks::{TaskRow, with_settings};

/// How far an operation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationRowState {
    Proposed,
    /// Decided here; the runtime may not have heard of it yet.
    Decided,
    Started,
    /// Started before a crash and never seen to finish.
    Unknown,
    Finished,
    Withdrawn,
}

impl OperationRowState {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Proposed, "proposed"),
        (Self::Decided, "decided"),
        (Self::Started, "started"),
        (Self::Unknown, "unknown"),
        (Self::Finished, "finished"),
        (Self::Withdrawn, "withdrawn"),
    ];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("proposed", |(_, word)| word)
    }

    fn parse(word: &str) -> Result<Self, StoreError> {
        let found = Self::ALL.iter().find(|(_, known)| *known == word).map(|(state, _)| *state);
        found.ok_or_else(|| StoreError::Damaged(format!("an operation is `{word}`, which is no state")))
    }

    /// The word that clients know, for those that wait.
    pub fn pending(self) -> Option<PendingOperationState> {
        match self {
            Self::Proposed => Some(PendingOperationState::Proposed),
            Self::Decided => Some(PendingOperationState::Decided),
            Self::Unknown => Some(PendingOperationState::Unknown),
            Self::Started | Self::Finished | Self::Withdrawn => None,
        }
    }

    fn waits_for_decision(self) -> bool {
        matches!(self, Self::Proposed | Self::Unknown)
    }
}

/// An operation as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    pub id: OperationId,
    pub thread: ThreadId,
    pub root: ThreadId,
    pub state: OperationRowState,
    /// The `proposed` record.
    pub proposal: Value,
    pub arguments_digest: String,
    /// Attempts that were started so far.
    pub attempt: u32,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    /// Set when its record has a decision that is not in the store.
    pub own_decision: Option<OwnDecision>,
}

const FUNCTION_DECISIONS: [&str; 5] = ["accept", "acceptWithArguments", "respond", "decline", "cancel"];

impl OperationRow {
    /// Whether it may run twice.
    pub fn may_repeat(&self) -> bool {
        let effects = self.proposal.get("effects").and_then(Value::as_str);
        matches!(effects, Some("readonly" | "idempotent"))
    }

    /// The decisions that are possible now. After an unknown outcome these are fixed.
    pub fn available_decisions(&self) -> Vec<String> {
        if self.state == OperationRowState::Unknown {
            return ["retry", "respond", "reject"].map(str::to_owned).to_vec();
        }
        // Whether a tool of a client runs is decided here, not by the runtime that asks for its result.
        if self.proposal.get("type").and_then(Value::as_str) == Some("function") {
            return FUNCTION_DECISIONS.map(str::to_owned).to_vec();
        }
        let listed = self.proposal.get("availableDecisions").and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    }
}

#[derive(Debug, Clone, Default)]
pub struct OperationFilter {
    /// With all its children, when it is a root.
    pub thread: Option<ThreadId>,
    /// Unset means those that wait for somebody.
    pub state: Option<OperationRowState>,
    pub cursor: Option<String>,
    pub limit: u32,
}

/// A decision that somebody wants to take.
#[derive(Debug, Clone)]
pub struct DecisionRequest {
    pub operation: OperationId,
    pub arguments_digest: String,
    pub decision: OperationDecision,
    /// The word in `availableDecisions` that the decision needs.
    pub needs: String,
    /// The authenticated name.
    pub by: String,
    /// The name that was claimed.
    pub on_behalf_of: Option<String>,
}

/// The first decision, and the operation after it.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionOutcome {
    pub decision: DecisionRow,
    pub operation: OperationRow,
}

/// One try at a tool that a client runs.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptRow {
    pub operation_id: OperationId,
    pub attempt: u32,
    pub executor: String,
    pub epoch: u64,
    pub started_at_ms: i64,
    pub finished_at_ms: Option<i64>,
    pub result: Option<OperationResult>,
}

/// Whether an attempt was begun by this call.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptStart {
    Begun(AttemptRow),
    /// The same executor began it before: the answer was lost.
    Repeated(AttemptRow),
}

const COLUMNS: &str = "id, thread_id, root_id, state, proposal, arguments_digest, attempt, created_at, updated_at, own_decision";

fn load(row: &SqlRow) -> Result<OperationRow, StoreError> {
    Ok(OperationRow {
        id: OperationId::new(row.text(0)?),
        thread: ThreadId::new(row.text(1)?),
        root: ThreadId::new(row.text(2)?),
        state: OperationRowState::parse(&row.text(3)?)?,
        proposal: row.json(4)?,
        arguments_digest: row.text(5)?,
        attempt: row.small(6)?,
        created_at_ms: row.int(7)?,
        updated_at_ms: row.int(8)?,
        own_decision: row.maybe_text(9)?.map(OwnDecision::parse),
    })
}

async fn find(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    lock: Option<RowLock>,
) -> Result<Option<OperationRow>, StoreError> {
    let lock = lock.map_or("", |lock| transaction.row_lock(lock));
    let sql = format!("SELECT {COLUMNS} FROM operations WHERE id = $1{lock}");
    query_one(transaction, &sql, vec![id.as_str().into()]).await?.map(|row| load(&row)).transpose()
}

/// Brings the row of an operation up to what its record says. Part of the append, which ends with the entry for the audit
/// trail, if there is one.
pub(crate) async fn project(
    transaction: &mut dyn Transaction,
    task: &TaskRow,
    record: &OperationRecord,
    now: i64,
) -> Result<Option<AuditEntry>, StoreError> {
    let mut entry = None;
    let (id, state, attempt) = match record {
        OperationRecord::Proposed { operation_id, arguments_digest, created_at_ms, .. } => {
            let of_record = (operation_id, arguments_digest.as_str(), *created_at_ms);
            propose(transaction, task, record, of_record).await?;
            return Ok(None);
        }
        OperationRecord::Decided { operation_id, decision, attempt, by, .. } => {
            let found = find(transaction, operation_id, Some(RowLock::Update)).await?;
            if let Some(row) = found.filter(|row| row.thread == task.id) {
                let attempt = attempt.unwrap_or(row.attempt);
                let stored = decision_of(transaction, operation_id, attempt).await?;
                let is_backed = stored.is_some_and(|stored| stored.backs(decision));
                let own = if is_backed { None } else { Some(OwnDecision::of(by.as_deref(), decision)) };
                entry = note_own_decision(transaction, &row, own).await?;
            }
            (operation_id, OperationRowState::Decided, None)
        }
        OperationRecord::Started { operation_id, attempt, .. } => {
            (operation_id, OperationRowState::Started, Some(*attempt))
        }
        OperationRecord::Finished { operation_id, .. } => (operation_id, OperationRowState::Finished, None),
        OperationRecord::Unknown { operation_id, attempt } => {
            (operation_id, OperationRowState::Unknown, Some(*attempt))
        }
        OperationRecord::Withdrawn { operation_id, .. } => (operation_id, OperationRowState::Withdrawn, None),
    };
    let sql = "UPDATE operations SET state = $2, attempt = coalesce($3, attempt), updated_at = $4 \
               WHERE id = $1 AND thread_id = $5";
    let values =
        vec![id.as_str().into(), state.word().into(), attempt.into(), now.into(), task.id.as_str().into()];
    transaction.execute(sql, values).await?;
    Ok(entry)
}

/// Remembers whose decision the record has, where it is not that of the store. Gives an entry for the audit trail about
/// one without a policy behind it.
async fn note_own_decision(
    transaction: &mut dyn Transaction,
    row: &OperationRow,
    own: Option<OwnDecision>,
) -> Result<Option<AuditEntry>, StoreError> {
    if own == row.own_decision {
        return Ok(None);
    }
    let sql = "UPDATE operations SET own_decision = $2 WHERE id = $1";
    let values = vec![row.id.as_str().into(), own.as_ref().map(|own| own.word().to_owned()).into()];
    transaction.execute(sql, values).await?;
    Ok((own == Some(OwnDecision::Unbacked)).then(|| AuditEntry {
        who: "runtime".to_owned(),
        action: "operation/unbackedDecision".to_owned(),
        subject: row.id.as_str().to_owned(),
        task: Some(row.root.clone()),
        details: json!({}),
    }))
}

async fn propose(
    transaction: &mut dyn Transaction,
    task: &TaskRow,
    record: &OperationRecord,
    (id, digest, created): (&OperationId, &str, i64),
) -> Result<(), StoreError> {
    // Proposed again after a restart: the row, and with it the decision, stays.
    let sql = format!(
        "INSERT INTO operations ({COLUMNS}) VALUES ($1, $2, $3, 'proposed', $4, $5, 0, $6, $6, NULL) \
         ON CONFLICT (id) DO NOTHING"
    );
    let values = vec![
        id.as_str().into(),
        task.id.as_str().into(),
        task.root.as_str().into(),
        SqlValue::json(record)?,
        digest.into(),
        created.into(),
    ];
    if transaction.execute(&sql, values).await? == 1 {
        return Ok(());
    }
    // Taken back, because what was agreed to has changed, and proposed anew: it waits again, and the decisions about all its
    // attempts were about something else.
    let sql = "UPDATE operations SET state = 'proposed', proposal = $2, arguments_digest = $3, updated_at = $4, \
               own_decision = NULL WHERE id = $1 AND thread_id = $5 AND state = 'withdrawn'";
    let values = vec![
        id.as_str().into(),
        SqlValue::json(record)?,
        digest.into(),
        created.into(),
        task.id.as_str().into(),
    ];
    if transaction.execute(sql, values).await? == 1 {
        let sql = "DELETE FROM decisions WHERE operation_id = $1";
        transaction.execute(sql, vec![id.as_str().into()]).await?;
    }
    Ok(())
}

async fn list(
    transaction: &mut dyn Transaction,
    filter: &OperationFilter,
) -> Result<(Vec<OperationRow>, Option<String>), StoreError> {
    let mut values = Vec::new();
    let mut sql = format!("SELECT {COLUMNS} FROM operations WHERE ");
    match filter.state {
        Some(state) => {
            values.push(SqlValue::from(state.word()));
            sql.push_str("state = $1");
        }
        None => sql.push_str("state IN ('proposed', 'unknown')"),
    }
    if let Some(thread) = &filter.thread {
        values.push(thread.as_str().into());
        let number = values.len();
        sql.push_str(&format!(" AND (thread_id = ${number} OR root_id = ${number})"));
    }
    if let Some((time, id)) = filter.cursor.as_deref().and_then(|cursor| cursor.split_once(':')) {
        let time: i64 = time.parse().unwrap_or_default();
        values.extend([time.into(), id.into()]);
        let (time, id) = (values.len() - 1, values.len());
        sql.push_str(&format!(" AND (created_at > ${time} OR (created_at = ${time} AND id > ${id}))"));
    }
    let limit = filter.limit.clamp(1, 1_000);
    sql.push_str(&format!(" ORDER BY created_at, id LIMIT {}", limit + 1));
    let rows = transaction.query(&sql, values).await?;
    let mut found = rows.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| has_more);
    let cursor = last.map(|row| format!("{}:{}", row.created_at_ms, row.id.as_str()));
    Ok((found, cursor))
}

async fn decide(
    transaction: &mut dyn Transaction,
    asked: &DecisionRequest,
) -> Result<DecisionOutcome, StoreError> {
    let id = &asked.operation;
    let row = find(transaction, id, Some(RowLock::Update)).await?;
    let row = row.ok_or_else(|| StoreError::UnknownOperation(id.clone()))?;
    if let Some(first) = decision_of(transaction, id, row.attempt).await? {
        return Err(StoreError::AlreadyDecided(Box::new(first)));
    }
    if row.arguments_digest != asked.arguments_digest {
        return Err(StoreError::DigestMismatch { operation: id.clone(), shown: row.arguments_digest });
    }
    if !row.state.waits_for_decision() {
        // Decided before its last attempt, which is under way or over.
        let before = decision_of(transaction, id, row.attempt.saturating_sub(1)).await?;
        return Err(match before {
            Some(first) => StoreError::AlreadyDecided(Box::new(first)),
            None => StoreError::NotWaiting(id.clone()),
        });
    }
    let available = row.available_decisions();
    if !available.contains(&asked.needs) {
        let (operation, decision) = (id.clone(), asked.needs.clone());
        return Err(StoreError::DecisionNotAvailable { operation, decision, available });
    }
    let now = transaction.now_ms().await?;
    let sql = "INSERT INTO decisions (operation_id, attempt, decision, decided_by, on_behalf_of, decided_at) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = vec![
        id.as_str().into(),
        row.attempt.into(),
        SqlValue::json(&asked.decision)?,
        asked.by.as_str().into(),
        asked.on_behalf_of.clone().into(),
        now.into(),
    ];
    transaction.execute(sql, values).await?;
    let sql = "UPDATE operations SET state = 'decided', updated_at = $2 WHERE id = $1";
    transaction.execute(sql, vec![id.as_str().into(), now.into()]).await?;
    transaction.notify(row.root.as_str()).await?;
    let decision = decision_of(transaction, id, row.attempt).await?;
    let decision = decision.ok_or_else(|| StoreError::Damaged("a decision is gone".to_owned()))?;
    let entry = AuditEntry {
        who: asked.by.clone(),
        action: "operation/decide".to_owned(),
        subject: id.as_str().to_owned(),
        task: Some(row.root.clone()),
        details: json!({ "decision": without_content(&asked.decision)?, "onBehalfOf": asked.on_behalf_of }),
    };
    audit::write(transaction, &entry).await?;
    let operation = OperationRow { state: OperationRowState::Decided, updated_at_ms: now, ..row };
    Ok(DecisionOutcome { decision, operation })
}

/// Operations of the task that were started and may not be run again: nobody is left who could see them finish.
async fn lose_started(
    transaction: &mut dyn Transaction,
    lease: &TaskLease,
    but: &[OperationId],
    expires: bool,
) -> Result<Vec<OperationRow>, StoreError> {
    leases::check(transaction, lease, RowLock::Share, expires).await?;
    let sql = format!(
        "SELECT {COLUMNS} FROM operations WHERE root_id = $1 AND state = 'started'{}",
        transaction.row_lock(RowLock::Update)
    );
    let rows = transaction.query(&sql, vec![lease.task.as_str().into()]).await?;
    let now = transaction.now_ms().await?;
    let mut lost = Vec::new();
    for row in &rows {
        let row = load(row)?;
        if row.may_repeat() || but.contains(&row.id) {
            continue;
        }
        let sql = "UPDATE operations SET state = 'unknown', updated_at = $2 WHERE id = $1";
        transaction.execute(sql, vec![row.id.as_str().into(), now.into()]).await?;
        lost.push(OperationRow { state: OperationRowState::Unknown, updated_at_ms: now, ..row });
    }
    Ok(lost)
}

/// Calls of these function tools that were allowed and have not begun.
async fn reopen(
    transaction: &mut dyn Transaction,
    root: &ThreadId,
    tools: &[String],
) -> Result<Vec<OperationRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM operations WHERE root_id = $1 AND state = 'decided'{}",
        transaction.row_lock(RowLock::Update)
    );
    let rows = transaction.query(&sql, vec![root.as_str().into()]).await?;
    let now = transaction.now_ms().await?;
    let mut reopened = Vec::new();
    for row in &rows {
        let row = load(row)?;
        let word = |key: &str| row.proposal.get(key).and_then(Value::as_str);
        let is_one = word("type") == Some("function")
            && word("tool").is_some_and(|name| tools.iter().any(|tool| tool == name));
        // One that has run is settled by its result, and has no decision about the next attempt.
        if !is_one || !decision_of(transaction, &row.id, row.attempt).await?.is_some_and(|row| row.lets_run())
        {
            continue;
        }
        let sql = "DELETE FROM decisions WHERE operation_id = $1 AND attempt = $2";
        transaction.execute(sql, vec![row.id.as_str().into(), row.attempt.into()]).await?;
        let state = if row.attempt == 0 { OperationRowState::Proposed } else { OperationRowState::Unknown };
        set_state(transaction, &row.id, (state, row.attempt), now).await?;
        reopened.push(OperationRow { state, updated_at_ms: now, ..row });
    }
    Ok(reopened)
}

/// Open operations of a thread, of one turn or of any, are over.
async fn withdraw(
    transaction: &mut dyn Transaction,
    thread: &ThreadId,
    turn: Option<&TurnId>,
) -> Result<Vec<OperationRow>, StoreError> {
    let of_turn = turn.map_or_else(String::new, |turn| format!("{thread}:{turn}:"));
    let length = i64::try_from(of_turn.chars().count()).unwrap_or(i64::MAX);
    let sql = format!(
        "SELECT {COLUMNS} FROM operations WHERE thread_id = $1 AND substr(id, 1, {length}) = $2 \
         AND state IN ('proposed', 'decided', 'started', 'unknown'){}",
        transaction.row_lock(RowLock::Update)
    );
    let rows = transaction.query(&sql, vec![thread.as_str().into(), of_turn.into()]).await?;
    let now = transaction.now_ms().await?;
    let mut withdrawn = Vec::new();
    for row in &rows {
        let row = load(row)?;
        let sql = "UPDATE operations SET state = 'withdrawn', updated_at = $2 WHERE id = $1";
        transaction.execute(sql, vec![row.id.as_str().into(), now.into()]).await?;
        withdrawn.push(OperationRow { state: OperationRowState::Withdrawn, updated_at_ms: now, ..row });
    }
    Ok(withdrawn)
}

async fn count_waiting(
    transaction: &mut dyn Transaction,
    roots: &[ThreadId],
) -> Result<BTreeMap<ThreadId, u32>, StoreError> {
    let places: Vec<String> = (1..=roots.len()).map(|number| format!("${number}")).collect();
    let sql = format!(
        "SELECT root_id, thread_id, count(*) FROM operations \
         WHERE state IN ('proposed', 'unknown') AND root_id IN ({}) GROUP BY root_id, thread_id",
        places.join(", ")
    );
    let values = roots.iter().map(|root| root.as_str().into()).collect();
    let mut counts = BTreeMap::new();
    for row in transaction.query(&sql, values).await? {
        let (root, thread) = (ThreadId::new(row.text(0)?), ThreadId::new(row.text(1)?));
        let count = u32::try_from(row.int(2)?).unwrap_or(u32::MAX);
        if thread != root {
            *counts.entry(thread).or_default() += count;
        }
        *counts.entry(root).or_default() += count;
    }
    Ok(counts)
}

async fn attempt_of(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    attempt: u32,
) -> Result<Option<AttemptRow>, StoreError> {
    let sql = "SELECT executor, epoch, started_at, finished_at, result FROM attempts \
               WHERE operation_id = $1 AND attempt = $2";
    let row = query_one(transaction, sql, vec![id.as_str().into(), attempt.into()]).await?;
    row.map(|row| {
        Ok(AttemptRow {
            operation_id: id.clone(),
            attempt,
            executor: row.text(0)?,
            epoch: row.unsigned(1)?,
            started_at_ms: row.int(2)?,
            finished_at_ms: row.maybe_int(3)?,
            result: row.maybe_json(4)?,
        })
    })
    .transpose()
}

/// An attempt that is about to begin.
#[derive(Debug, Clone)]
struct AttemptRequest {
    lease: TaskLease,
    operation: OperationId,
    attempt: u32,
    executor: String,
}

async fn begin(
    transaction: &mut dyn Transaction,
    asked: &AttemptRequest,
    expires: bool,
) -> Result<AttemptStart, StoreError> {
    let AttemptRequest { lease, operation, attempt, executor } = asked;
    leases::check(transaction, lease, RowLock::Share, expires).await?;
    let row = find(transaction, operation, Some(RowLock::Update)).await?;
    let row = row.filter(|row| row.root == lease.task);
    let row = row.ok_or_else(|| StoreError::UnknownOperation(operation.clone()))?;
    if let Some(found) = attempt_of(transaction, operation, *attempt).await? {
        if found.executor == *executor && found.epoch == lease.epoch {
            return Ok(AttemptStart::Repeated(found));
        }
        return Err(StoreError::AttemptTaken { operation: operation.clone(), attempt: *attempt });
    }
    let may_run = match row.state {
        OperationRowState::Proposed => true,
        // Decided in the meantime, perhaps not to run.
        OperationRowState::Decided => {
            decision_of(transaction, operation, row.attempt).await?.is_some_and(|row| row.lets_run())
        }
        // Begun here before: a record that says so is the word of the runtime alone.
        OperationRowState::Started => {
            row.may_repeat() && attempt_of(transaction, operation, row.attempt).await?.is_some()
        }
        OperationRowState::Unknown | OperationRowState::Finished | OperationRowState::Withdrawn => false,
    };
    if !may_run {
        return Err(StoreError::NotWaiting(operation.clone()));
    }
    let now = transaction.now_ms().await?;
    let sql = "INSERT INTO attempts (operation_id, attempt, executor, epoch, started_at) VALUES ($1, $2, $3, $4, $5)";
    let values = vec![
        operation.as_str().into(),
        (*attempt).into(),
        executor.as_str().into(),
        lease.epoch.into(),
        now.into(),
    ];
    transaction.execute(sql, values).await?;
    set_state(transaction, operation, (OperationRowState::Started, *attempt), now).await?;
    Ok(AttemptStart::Begun(AttemptRow {
        operation_id: operation.clone(),
        attempt: *attempt,
        executor: executor.clone(),
        epoch: lease.epoch,
        started_at_ms: now,
        finished_at_ms: None,
        result: None,
    }))
}

async fn set_state(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    (state, attempt): (OperationRowState, u32),
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE operations SET state = $2, attempt = $3, updated_at = $4 WHERE id = $1";
    let values = vec![id.as_str().into(), state.word().into(), attempt.into(), now.into()];
    transaction.execute(sql, values).await.map(drop)
}

/// Ends an attempt without a result: unknown where it may have run, else as if it had never been begun. False when it is
/// not the one under way.
async fn give_up(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    attempt: u32,
    was_sent: bool,
) -> Result<bool, StoreError> {
    let row = find(transaction, id, Some(RowLock::Update)).await?;
    let is_current = |row: &OperationRow| row.state == OperationRowState::Started && row.attempt == attempt;
    if !row.as_ref().is_some_and(is_current) {
        return Ok(false);
    }
    let now = transaction.now_ms().await?;
    if was_sent {
        set_state(transaction, id, (OperationRowState::Unknown, attempt), now).await?;
        return Ok(true);
    }
    let sql = "DELETE FROM attempts WHERE operation_id = $1 AND attempt = $2";
    transaction.execute(sql, vec![id.as_str().into(), attempt.into()]).await?;
    let before = attempt.saturating_sub(1);
    let state = match decision_of(transaction, id, before).await? {
        Some(_) => OperationRowState::Decided,
        None if before > 0 => OperationRowState::Started,
        None => OperationRowState::Proposed,
    };
    set_state(transaction, id, (state, before), now).await?;
    Ok(true)
}

/// The first result counts. False when there was one before, or no such attempt.
async fn finish(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    attempt: u32,
    result: &OperationResult,
) -> Result<bool, StoreError> {
    let now = transaction.now_ms().await?;
    let sql = "UPDATE attempts SET finished_at = $3, result = $4 \
               WHERE operation_id = $1 AND attempt = $2 AND finished_at IS NULL";
    let values = vec![id.as_str().into(), attempt.into(), now.into(), SqlValue::json(result)?];
    let is_first = transaction.execute(sql, values).await? == 1;
    if is_first {
        // As settled as by a decision: the runtime may not have heard of it yet.
        let sql = "UPDATE operations SET state = 'decided', updated_at = $3 \
                   WHERE id = $1 AND attempt = $2 AND state IN ('started', 'unknown')";
        transaction.execute(sql, vec![id.as_str().into(), attempt.into(), now.into()]).await?;
    }
    Ok(is_first)
}

impl TaskStore {
    /// Oldest first, with the cursor of the next page.
    pub async fn list_operations(
        &self,
        filter: OperationFilter,
    ) -> Result<(Vec<OperationRow>, Option<String>), StoreError> {
        self.work(move |transaction| {
            let filter = filter.clone();
            Box::pin(async move { list(transaction, &filter).await })
        })
        .await
    }

    pub async fn operation(&self, id: &OperationId) -> Result<Option<OperationRow>, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { find(transaction, &id, None).await })
        })
        .await
    }

    /// The first decision counts, and is stored before anybody hears of it.
    pub async fn decide(&self, asked: DecisionRequest) -> Result<DecisionOutcome, StoreError> {
        self.work(move |transaction| {
            let asked = asked.clone();
            Box::pin(async move { decide(transaction, &asked).await })
        })
        .await
    }

    /// After the end of a task's runtime: what was started and never finished is unknown from now on, and waits for a
    /// decision. Operations that may run twice stay as they are, and so do `but`, which somebody else runs. Gives those
    /// that changed.
    pub async fn lose_started_operations(
        &self,
        lease: &TaskLease,
        but: Vec<OperationId>,
    ) -> Result<Vec<OperationRow>, StoreError> {
        let (lease, expires) = (lease.clone(), self.leases_expire());
        self.work(move |transaction| {
            let (lease, but) = (lease.clone(), but.clone());
            Box::pin(async move { lose_started(transaction, &lease, &but, expires).await })
        })
        .await
    }

    /// The turn has ended, or without one every turn of the thread has: its operations wait for nobody any more. Gives
    /// those that changed.
    pub async fn withdraw_operations(
        &self,
        thread: &ThreadId,
        turn: Option<&TurnId>,
    ) -> Result<Vec<OperationRow>, StoreError> {
        let (thread, turn) = (thread.clone(), turn.cloned());
        self.work(move |transaction| {
            let (thread, turn) = (thread.clone(), turn.clone());
            Box::pin(async move { withdraw(transaction, &thread, turn.as_ref()).await })
        })
        .await
    }

    /// Changes the settings of a task as [`TaskStore::change_settings`] does. `change` gives the function tools that are declared
    /// anew, with other schemas: their calls that were allowed and have not begun wait for a decision again. Gives those too.
    pub async fn change_tools(
        &self,
        root: &ThreadId,
        change: impl Fn(&mut Value) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(TaskRow, Vec<OperationRow>), StoreError> {
        let (root, change) = (root.clone(), Arc::new(change));
        self.work(move |transaction| {
            let (root, change) = (root.clone(), Arc::clone(&change));
            Box::pin(async move {
                let (row, tools) = with_settings(transaction, &root, &*change).await?;
                let reopened =
                    if tools.is_empty() { Vec::new() } else { reopen(transaction, &root, &tools).await? };
                Ok((row, reopened))
            })
        })
        .await
    }

    /// How many operations wait for a decision below each of these roots: by thread, a root with all its children. Threads
    /// without any are left out.
    pub async fn waiting_counts(&self, roots: Vec<ThreadId>) -> Result<BTreeMap<ThreadId, u32>, StoreError> {
        if roots.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.work(move |transaction| {
            let roots = roots.clone();
            Box::pin(async move { count_waiting(transaction, &roots).await })
        })
        .await
    }

    /// To be called before the tool is: whoever begins an attempt first is the only one to run it.
    pub async fn begin_attempt(
        &self,
        lease: &TaskLease,
        operation: &OperationId,
        attempt: u32,
        executor: &str,
    ) -> Result<AttemptStart, StoreError> {
        let expires = self.leases_expire();
        let asked = AttemptRequest {
            lease: lease.clone(),
            operation: operation.clone(),
            attempt,
            executor: executor.to_owned(),
        };
        self.work(move |transaction| {
            let asked = asked.clone();
            Box::pin(async move { begin(transaction, &asked, expires).await })
        })
        .await
    }

    /// The attempt under way ends without a result: its outcome is unknown where it was sent, and it never was where it
    /// was not. False when it is not under way.
    pub async fn give_up_attempt(
        &self,
        operation: &OperationId,
        attempt: u32,
        was_sent: bool,
    ) -> Result<bool, StoreError> {
        let operation = operation.clone();
        self.work(move |transaction| {
            let operation = operation.clone();
            Box::pin(async move { give_up(transaction, &operation, attempt, was_sent).await })
        })
        .await
    }

    pub async fn finish_attempt(
        &self,
        operation: &OperationId,
        attempt: u32,
        result: OperationResult,
    ) -> Result<bool, StoreError> {
        let operation = operation.clone();
        self.work(move |transaction| {
            let (operation, result) = (operation.clone(), result.clone());
            Box::pin(async move { finish(transaction, &operation, attempt, &result).await })
        })
        .await
    }

    pub async fn attempt(
        &self,
        operation: &OperationId,
        attempt: u32,
    ) -> Result<Option<AttemptRow>, StoreError> {
        let operation = operation.clone();
        self.work(move |transaction| {
            let operation = operation.clone();
            Box::pin(async move { attempt_of(transaction, &operation, attempt).await })
        })
        .await
    }
}
