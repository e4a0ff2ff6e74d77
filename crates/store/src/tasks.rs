//! Tasks: a root thread and its children, one row each.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::ThreadId;
use serde_json::Value;

use crate::backend::{RowLock, SqlRow, SqlValue, Transaction, query_one};
use crate::error::StoreError;
use crate::store::TaskStore;

/// How far a task has come, as far as it can be told without a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskState {
    /// Its placement is being made.
    Creating,
    /// Waits for room among the running ones.
    Queued,
    /// No turn runs.
    Idle,
    Running,
    /// Every branch of its turn waits for a decision.
    Waiting,
    /// Its turn waits for a client that carries its model requests.
    WaitingForCarrier,
    /// Its turn waits, and its runtime was ended.
    Suspended,
    Failed,
}

impl TaskState {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Creating, "creating"),
        (Self::Queued, "queued"),
        (Self::Idle, "idle"),
        (Self::Running, "running"),
        (Self::Waiting, "waiting"),
        (Self::WaitingForCarrier, "waitingForCarrier"),
        (Self::Suspended, "suspended"),
        (Self::Failed, "failed"),
    ];

    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("idle", |(_, word)| word)
    }

    fn parse(word: &str) -> Result<Self, StoreError> {
        let found = Self::ALL.iter().find(|(_, known)| *known == word).map(|(state, _)| *state);
        found.ok_or_else(|| StoreError::Damaged(format!("a task is `{word}`, which is no state")))
    }
}

/// A task that is to be.
#[derive(Debug, Clone)]
pub struct NewTask {
    pub id: ThreadId,
    /// Set for a child. It belongs to the task of its parent's root.
    pub parent: Option<ThreadId>,
    pub labels: BTreeMap<String, String>,
    pub agent_digest: Option<String>,
    pub placement_id: Option<String>,
    /// Only hosts that serve it may adopt the task.
    pub site: String,
    /// The settings it is resumed with, opaque to the store.
    pub settings: Value,
    /// The newest format among its records; a host that reads older ones only does not adopt it.
    pub record_schema: u32,
    /// Queued tasks begin by priority, then by age.
    pub priority: i64,
}

/// A task as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRow {
    pub id: ThreadId,
    pub root: ThreadId,
    pub parent: Option<ThreadId>,
    pub name: Option<String>,
    pub preview: String,
    pub labels: BTreeMap<String, String>,
    pub agent_digest: Option<String>,
    pub placement_id: Option<String>,
    pub site: String,
    pub state: TaskState,
    pub settings: Value,
    pub record_schema: u32,
    pub is_archived: bool,
    pub priority: i64,
    /// The replica that owns it, with the address at which it is reached.
    pub owner: Option<String>,
    pub epoch: u64,
    /// The ordinal of the next record.
    pub next_ordinal: u64,
    pub record_bytes: u64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    /// How its last turn ended, opaque to the store.
    pub last_turn: Option<Value>,
}

/// Whether creating a task made it.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCreation {
    Created(TaskRow),
    /// It was there before; repeating a request joins it.
    Existed(TaskRow),
}

/// Unset fields stay as they are; `Some(None)` clears one. Settings are changed by [`TaskStore::change_settings`].
#[derive(Debug, Clone, Default)]
pub struct TaskChange {
    pub name: Option<Option<String>>,
    pub preview: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub agent_digest: Option<Option<String>>,
    pub placement_id: Option<Option<String>>,
    pub site: Option<String>,
    pub state: Option<TaskState>,
    pub record_schema: Option<u32>,
    pub is_archived: Option<bool>,
    pub priority: Option<i64>,
    pub last_turn: Option<Value>,
}

/// The time that a list of tasks is sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskOrder {
    /// The last change.
    #[default]
    Updated,
    Created,
}

/// Which tasks to list: newest first, unless it says otherwise.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    pub order: TaskOrder,
    pub oldest_first: bool,
    pub is_archived: bool,
    /// Without it, root tasks alone; with it, all threads of that root.
    pub root: Option<ThreadId>,
    pub state: Option<TaskState>,
    /// Those that have all of these.
    pub labels: BTreeMap<String, String>,
    /// Part of the name or the preview, whatever its case.
    pub search: Option<String>,
    /// From the page before.
    pub cursor: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    pub tasks: Vec<TaskRow>,
    /// Unset on the last page.
    pub cursor: Option<String>,
}

const COLUMNS: &str = "id, root_id, parent_id, name, preview, labels, agent_digest, placement_id, site, state, settings, \
                       record_schema, archived, priority, owner, epoch, next_ordinal, record_bytes, created_at, updated_at, last_turn";

fn load(row: &SqlRow) -> Result<TaskRow, StoreError> {
    Ok(TaskRow {
        id: ThreadId::new(row.text(0)?),
        root: ThreadId::new(row.text(1)?),
        parent: row.maybe_text(2)?.map(ThreadId::new),
        name: row.maybe_text(3)?,
        preview: row.text(4)?,
        labels: row.json(5)?,
        agent_digest: row.maybe_text(6)?,
        placement_id: row.maybe_text(7)?,
        site: row.text(8)?,
        state: TaskState::parse(&row.text(9)?)?,
        settings: row.json(10)?,
        record_schema: row.small(11)?,
        is_archived: row.flag(12)?,
        priority: row.int(13)?,
        owner: row.maybe_text(14)?,
        epoch: row.unsigned(15)?,
        next_ordinal: row.unsigned(16)?,
        record_bytes: row.unsigned(17)?,
        created_at_ms: row.int(18)?,
        updated_at_ms: row.int(19)?,
        last_turn: row.maybe_text(20)?.map(|text| serde_json::from_str(&text)).transpose()?,
    })
}

pub(crate) async fn find(
    transaction: &mut dyn Transaction,
    id: &ThreadId,
) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1");
    query_one(transaction, &sql, vec![id.as_str().into()]).await?.map(|row| load(&row)).transpose()
}

/// As `find`, and nobody else changes the row before the commit.
pub(crate) async fn find_locked(
    transaction: &mut dyn Transaction,
    id: &ThreadId,
    lock: RowLock,
) -> Result<Option<TaskRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1{}", transaction.row_lock(lock));
    query_one(transaction, &sql, vec![id.as_str().into()]).await?.map(|row| load(&row)).transpose()
}

async fn known(transaction: &mut dyn Transaction, id: &ThreadId) -> Result<TaskRow, StoreError> {
    find(transaction, id).await?.ok_or_else(|| StoreError::UnknownTask(id.clone()))
}

pub(crate) async fn create(
    transaction: &mut dyn Transaction,
    new: &NewTask,
) -> Result<TaskCreation, StoreError> {
    let root = match &new.parent {
        Some(parent) => known(transaction, parent).await?.root,
        None => new.id.clone(),
    };
    let now = transaction.now_ms().await?;
    let sql = format!(
        "INSERT INTO tasks ({COLUMNS}) VALUES \
         ($1, $2, $3, NULL, '', $4, $5, $6, $7, 'creating', $8, $9, 0, $10, NULL, 0, 0, 0, $11, $11, NULL) \
         ON CONFLICT (id) DO NOTHING"
    );
    let values = vec![
        new.id.as_str().into(),
        root.as_str().into(),
        new.parent.as_ref().map(|parent| parent.as_str().to_owned()).into(),
        SqlValue::json(&new.labels)?,
        new.agent_digest.clone().into(),
        new.placement_id.clone().into(),
        new.site.as_str().into(),
        SqlValue::json(&new.settings)?,
        new.record_schema.into(),
        new.priority.into(),
        now.into(),
    ];
    let made = transaction.execute(&sql, values).await? == 1;
    let row = known(transaction, &new.id).await?;
    Ok(if made { TaskCreation::Created(row) } else { TaskCreation::Existed(row) })
}

/// The assignments of a change and their values; `$1` is the task.
fn assignments(change: &TaskChange, now: i64) -> Result<(String, Vec<SqlValue>), StoreError> {
    let columns: [(&str, Option<SqlValue>); 11] = [
        ("name", change.name.clone().map(Into::into)),
        ("preview", change.preview.clone().map(Into::into)),
        ("labels", change.labels.as_ref().map(SqlValue::json).transpose()?),
        ("agent_digest", change.agent_digest.clone().map(Into::into)),
        ("placement_id", change.placement_id.clone().map(Into::into)),
        ("site", change.site.clone().map(Into::into)),
        ("state", change.state.map(|state| state.word().into())),
        ("record_schema", change.record_schema.map(Into::into)),
        ("archived", change.is_archived.map(Into::into)),
        ("priority", change.priority.map(Into::into)),
        ("last_turn", change.last_turn.as_ref().map(SqlValue::json).transpose()?),
    ];
    let mut values = vec![now.into()];
    let mut sql = "updated_at = $2".to_owned();
    for (column, value) in columns {
        let Some(value) = value else { continue };
        values.push(value);
        sql.push_str(&format!(", {column} = ${}", values.len() + 1));
    }
    Ok((sql, values))
}

pub(crate) async fn update(
    transaction: &mut dyn Transaction,
    id: &ThreadId,
    change: &TaskChange,
) -> Result<TaskRow, StoreError> {
    let now = transaction.now_ms().await?;
    let (assignments, values) = assignments(change, now)?;
    let sql = format!("UPDATE tasks SET {assignments} WHERE id = $1");
    let values = std::iter::once(id.as_str().into()).chain(values).collect();
    transaction.execute(&sql, values).await?;
    known(transaction, id).await
}

/// Lets `change` work on the settings as they are now, with nobody in between.
pub(crate) async fn with_settings<T>(
    transaction: &mut dyn Transaction,
    id: &ThreadId,
    change: impl FnOnce(&mut Value) -> T,
) -> Result<(TaskRow, T), StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE id = $1{}", transaction.row_lock(RowLock::Update));
    let rows = transaction.query(&sql, vec![id.as_str().into()]).await?;
    let row = load(rows.first().ok_or_else(|| StoreError::UnknownTask(id.clone()))?)?;
    let mut settings = row.settings.clone();
    let result = change(&mut settings);
    // Looking at a task is no change of it.
    if settings == row.settings {
        return Ok((row, result));
    }
    let now = transaction.now_ms().await?;
    let sql = "UPDATE tasks SET updated_at = $2, settings = $3 WHERE id = $1";
    transaction.execute(sql, vec![id.as_str().into(), now.into(), SqlValue::json(&settings)?]).await?;
    Ok((TaskRow { settings, updated_at_ms: now, ..row }, result))
}

pub(crate) async fn delete(transaction: &mut dyn Transaction, id: &ThreadId) -> Result<bool, StoreError> {
    let sql = "DELETE FROM tasks WHERE id = $1 OR root_id = $1";
    Ok(transaction.execute(sql, vec![id.as_str().into()]).await? > 0)
}

/// A place in the list: when the task changed, and which one it is.
/// The cursor of a list of tasks, after the task of this time and id.
pub fn task_cursor(at_ms: i64, id: &str) -> String {
    format!("{at_ms}:{id}")
}

/// The time and the id in such a cursor.
pub fn parse_task_cursor(cursor: &str) -> Option<(i64, String)> {
    let (time, id) = cursor.split_once(':')?;
    Some((time.parse().ok()?, id.to_owned()))
}

async fn list(transaction: &mut dyn Transaction, filter: &TaskFilter) -> Result<TaskPage, StoreError> {
    let mut values = vec![SqlValue::from(filter.is_archived)];
    let mut sql = format!("SELECT {COLUMNS} FROM tasks WHERE archived = $1");
    let mut condition = |sql: &mut String, text: &str, added: Vec<SqlValue>| {
        let mut text = text.to_owned();
        for value in added {
            values.push(value);
            text = text.replacen("{}", &format!("${}", values.len()), 1);
        }
        sql.push_str(" AND ");
        sql.push_str(&text);
    };
    match &filter.root {
        Some(root) => condition(&mut sql, "root_id = {}", vec![root.as_str().into()]),
        None => condition(&mut sql, "parent_id IS NULL", Vec::new()),
    }
    if let Some(state) = filter.state {
        condition(&mut sql, "state = {}", vec![state.word().into()]);
    }
    for (name, value) in &filter.labels {
        // Both databases keep labels as compact JSON, in which a pair has one spelling and is part of no other.
        let pair = format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(value)?);
        condition(&mut sql, "replace(labels, {}, '') <> labels", vec![pair.into()]);
    }
    if let Some(search) = &filter.search {
        let escaped = search.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let pattern = SqlValue::Text(format!("%{escaped}%"));
        let text = "(lower(coalesce(name, '')) LIKE {} ESCAPE '\\' OR lower(preview) LIKE {} ESCAPE '\\')";
        condition(&mut sql, text, vec![pattern.clone(), pattern]);
    }
    let column = match filter.order {
        TaskOrder::Updated => "updated_at",
        TaskOrder::Created => "created_at",
    };
    let (after, direction) = if filter.oldest_first { (">", "ASC") } else { ("<", "DESC") };
    if let Some((time, id)) = filter.cursor.as_deref().and_then(parse_task_cursor) {
        let text = format!("({column} {after} {{}} OR ({column} = {{}} AND id {after} {{}}))");
        condition(&mut sql, &text, vec![time.into(), time.into(), id.into()]);
    }
    let limit = filter.limit.clamp(1, 1_000);
    sql.push_str(&format!(" ORDER BY {column} {direction}, id {direction} LIMIT {}", limit + 1));
    let rows = transaction.query(&sql, values).await?;
    let mut tasks = rows.iter().map(load).collect::<Result<Vec<_>, _>>()?;
    let has_more = tasks.len() > limit as usize;
    tasks.truncate(limit as usize);
    let last = tasks.last().filter(|_| has_more);
    let time = |task: &TaskRow| match filter.order {
        TaskOrder::Updated => task.updated_at_ms,
        TaskOrder::Created => task.created_at_ms,
    };
    let cursor = last.map(|task| task_cursor(time(task), task.id.as_str()));
    Ok(TaskPage { tasks, cursor })
}

impl TaskStore {
    /// Commits a task in the state `creating`, or finds the one that has this id already.
    pub async fn create_task(&self, new: NewTask) -> Result<TaskCreation, StoreError> {
        self.work(move |transaction| {
            let new = new.clone();
            Box::pin(async move { create(transaction, &new).await })
        })
        .await
    }

    pub async fn task(&self, id: &ThreadId) -> Result<Option<TaskRow>, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { find(transaction, &id).await })
        })
        .await
    }

    pub async fn update_task(&self, id: &ThreadId, change: TaskChange) -> Result<TaskRow, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let (id, change) = (id.clone(), change.clone());
            Box::pin(async move { update(transaction, &id, &change).await })
        })
        .await
    }

    /// Changes the settings as the store has them at that moment. Settings that were read before and written back would undo
    /// what others have changed in between.
    pub async fn change_settings(
        &self,
        id: &ThreadId,
        change: impl Fn(&mut Value) + Send + Sync + 'static,
    ) -> Result<TaskRow, StoreError> {
        let (id, change) = (id.clone(), Arc::new(change));
        self.work(move |transaction| {
            let (id, change) = (id.clone(), Arc::clone(&change));
            Box::pin(async move { Ok(with_settings(transaction, &id, &*change).await?.0) })
        })
        .await
    }

    pub async fn list_tasks(&self, filter: TaskFilter) -> Result<TaskPage, StoreError> {
        self.work(move |transaction| {
            let filter = filter.clone();
            Box::pin(async move { list(transaction, &filter).await })
        })
        .await
    }

    /// Tasks without a turn, archived ones included, that have not changed since this time.
    pub async fn idle_tasks(&self, before_ms: i64) -> Result<Vec<ThreadId>, StoreError> {
        self.work(move |transaction| {
            Box::pin(async move {
                let sql = "SELECT id FROM tasks WHERE parent_id IS NULL AND state = 'idle' AND updated_at < $1 \
                           ORDER BY updated_at, id";
                let rows = transaction.query(sql, vec![before_ms.into()]).await?;
                rows.iter().map(|row| row.text(0).map(ThreadId::new)).collect()
            })
        })
        .await
    }

    /// The tasks of each placement, archived ones included, the oldest first.
    pub async fn tasks_by_placement(&self) -> Result<BTreeMap<String, Vec<ThreadId>>, StoreError> {
        self.work(|transaction| {
            Box::pin(async move {
                let sql = "SELECT placement_id, id FROM tasks WHERE placement_id IS NOT NULL AND parent_id IS NULL \
                           ORDER BY created_at, id";
                let mut found: BTreeMap<String, Vec<ThreadId>> = BTreeMap::new();
                for row in transaction.query(sql, Vec::new()).await? {
                    found.entry(row.text(0)?).or_default().push(ThreadId::new(row.text(1)?));
                }
                Ok(found)
            })
        })
        .await
    }

    /// How many children each of these tasks has; those without any are left out.
    pub async fn child_counts(&self, tasks: Vec<ThreadId>) -> Result<BTreeMap<ThreadId, u32>, StoreError> {
        if tasks.is_empty() {
            return Ok(BTreeMap::new());
        }
        self.work(move |transaction| {
            let tasks = tasks.clone();
            Box::pin(async move {
                let places: Vec<String> = (1..=tasks.len()).map(|number| format!("${number}")).collect();
                let sql = format!(
                    "SELECT root_id, count(*) FROM tasks WHERE parent_id IS NOT NULL AND root_id IN ({}) \
                     GROUP BY root_id",
                    places.join(", ")
                );
                let values = tasks.iter().map(|task| task.as_str().into()).collect();
                let rows = transaction.query(&sql, values).await?;
                let counted = rows.iter().map(|row| {
                    Ok((ThreadId::new(row.text(0)?), u32::try_from(row.int(1)?).unwrap_or(u32::MAX)))
                });
                counted.collect()
            })
        })
        .await
    }

    /// Removes a thread with its children, records, inbox, operations and streams. Usage and the audit trail stay.
    /// False when there was none.
    pub async fn delete_task(&self, id: &ThreadId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { delete(transaction, &id).await })
        })
        .await
    }
}
