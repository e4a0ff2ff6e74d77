//! The inbox: user input that is committed before it is acted on, once per input id.

use protocol::{ThreadId, TurnId};
use serde_json::Value;

use crate::backend::{SqlRow, SqlValue, Transaction, query_one};
use crate::error::StoreError;
use crate::migrations::next_number;
use crate::store::TaskStore;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InboxState {
    /// Not handed to a runtime, or not acknowledged by one.
    Received,
    /// The runtime has it in the record.
    Accepted,
    Refused,
}

impl InboxState {
    fn word(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }

    fn parse(word: &str) -> Result<Self, StoreError> {
        [Self::Received, Self::Accepted, Self::Refused]
            .into_iter()
            .find(|state| state.word() == word)
            .ok_or_else(|| StoreError::Damaged(format!("an input is `{word}`, which is no state")))
    }
}

/// Input as it arrived.
#[derive(Debug, Clone)]
pub struct InboxEntry {
    pub thread: ThreadId,
    pub input_id: String,
    /// `turn/start` or `turn/steer`.
    pub method: String,
    /// The turn it begins or belongs to.
    pub turn_id: TurnId,
    pub params: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InboxRow {
    pub thread: ThreadId,
    pub input_id: String,
    pub method: String,
    pub turn_id: TurnId,
    pub params: Value,
    pub state: InboxState,
    /// The answer that a repeated request gets again.
    pub answer: Option<Value>,
    pub received_at_ms: i64,
}

/// Whether an input is new.
#[derive(Debug, Clone, PartialEq)]
pub enum InboxPut {
    Received(InboxRow),
    /// The same id was here before.
    Known(InboxRow),
}

const COLUMNS: &str = "thread_id, input_id, method, turn_id, params, state, answer, received_at";

fn load(row: &SqlRow) -> Result<InboxRow, StoreError> {
    Ok(InboxRow {
        thread: ThreadId::new(row.text(0)?),
        input_id: row.text(1)?,
        method: row.text(2)?,
        turn_id: TurnId::new(row.text(3)?),
        params: row.json(4)?,
        state: InboxState::parse(&row.text(5)?)?,
        answer: row.maybe_json(6)?,
        received_at_ms: row.int(7)?,
    })
}

async fn find(
    transaction: &mut dyn Transaction,
    thread: &str,
    input: &str,
) -> Result<Option<InboxRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM inbox WHERE thread_id = $1 AND input_id = $2");
    query_one(transaction, &sql, vec![thread.into(), input.into()]).await?.map(|row| load(&row)).transpose()
}

pub(crate) async fn put(
    transaction: &mut dyn Transaction,
    entry: &InboxEntry,
) -> Result<InboxPut, StoreError> {
    if let Some(known) = find(transaction, entry.thread.as_str(), &entry.input_id).await? {
        return Ok(InboxPut::Known(known));
    }
    let now = transaction.now_ms().await?;
    let position = next_number(transaction, "inbox").await?;
    let sql = format!(
        "INSERT INTO inbox ({COLUMNS}, position) VALUES ($1, $2, $3, $4, $5, 'received', NULL, $6, $7) \
         ON CONFLICT (thread_id, input_id) DO NOTHING"
    );
    let values = vec![
        entry.thread.as_str().into(),
        entry.input_id.as_str().into(),
        entry.method.as_str().into(),
        entry.turn_id.as_str().into(),
        SqlValue::json(&entry.params)?,
        now.into(),
        position.into(),
    ];
    let made = transaction.execute(&sql, values).await? == 1;
    transaction.notify(entry.thread.as_str()).await?;
    let row = find(transaction, entry.thread.as_str(), &entry.input_id).await?;
    let row = row.ok_or_else(|| StoreError::UnknownTask(entry.thread.clone()))?;
    Ok(if made { InboxPut::Received(row) } else { InboxPut::Known(row) })
}

impl TaskStore {
    /// Commits input, or finds the one with the same id.
    pub async fn put_input(&self, entry: InboxEntry) -> Result<InboxPut, StoreError> {
        self.work(move |transaction| {
            let entry = entry.clone();
            Box::pin(async move { put(transaction, &entry).await })
        })
        .await
    }

    /// Notes what became of an input. The first answer counts; false when there was one.
    pub async fn answer_input(
        &self,
        thread: &ThreadId,
        input_id: &str,
        state: InboxState,
        answer: Value,
    ) -> Result<bool, StoreError> {
        let (thread, input_id) = (thread.clone(), input_id.to_owned());
        self.work_soon(move |transaction| {
            let (thread, input_id, answer) = (thread.clone(), input_id.clone(), answer.clone());
            Box::pin(async move {
                let sql = "UPDATE inbox SET state = $3, answer = $4 \
                           WHERE thread_id = $1 AND input_id = $2 AND answer IS NULL";
                let values = vec![
                    thread.as_str().into(),
                    input_id.into(),
                    state.word().into(),
                    SqlValue::json(&answer)?,
                ];
                Ok(transaction.execute(sql, values).await? == 1)
            })
        })
        .await
    }

    /// Inputs that no runtime has taken yet, in the order they came.
    pub async fn waiting_inputs(&self, thread: &ThreadId) -> Result<Vec<InboxRow>, StoreError> {
        let thread = thread.clone();
        self.work(move |transaction| {
            let thread = thread.clone();
            Box::pin(async move {
                let sql = format!(
                    "SELECT {COLUMNS} FROM inbox WHERE thread_id = $1 AND state = 'received' ORDER BY position"
                );
                let rows = transaction.query(&sql, vec![thread.as_str().into()]).await?;
                rows.iter().map(load).collect()
            })
        })
        .await
    }
}
