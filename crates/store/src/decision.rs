//! Decisions about operations: those that were taken here, and those that a record has without them.

use protocol::{ItemId, OperationDecision, OperationId, ThreadId};
use serde_json::{Value, json};

use crate::backend::{SqlRow, Transaction, query_one};
use crate::error::StoreError;
use crate::store::TaskStore;

/// A decision as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct DecisionRow {
    pub operation_id: OperationId,
    /// The attempt it is about: 0 before the first.
    pub attempt: u32,
    pub decision: OperationDecision,
    pub by: String,
    pub on_behalf_of: Option<String>,
    pub decided_at_ms: i64,
}

impl DecisionRow {
    /// Whether a record may have this decision because of it. A runtime may make less of it, which is a no, and spells
    /// replacements its own way; it never makes more of it.
    pub(crate) fn backs(&self, recorded: &OperationDecision) -> bool {
        use OperationDecision::{Approve, Reject, Replace, Respond, Retry};
        match (recorded, &self.decision) {
            (Reject { .. }, _) | (Replace { .. }, Replace { .. }) | (Respond { .. }, Respond { .. }) => true,
            (Approve { .. }, Approve { .. }) => !recorded.is_for_session() || self.decision.is_for_session(),
            (Approve { .. } | Retry, Retry) => !recorded.is_for_session(),
            _ => false,
        }
    }

    /// Whether the operation is carried out by it.
    pub(crate) fn lets_run(&self) -> bool {
        use OperationDecision::{Approve, Replace, Retry};
        matches!(self.decision, Approve { .. } | Replace { .. } | Retry)
    }
}

/// For the audit trail, which outlives the task: what was decided, without the words, arguments and answers in it.
pub(crate) fn without_content(decision: &OperationDecision) -> Result<Value, StoreError> {
    Ok(match decision {
        OperationDecision::Approve { .. } | OperationDecision::Retry => serde_json::to_value(decision)?,
        OperationDecision::Reject { end_turn, .. } => json!({ "type": "reject", "endTurn": end_turn }),
        OperationDecision::Replace { .. } => json!({ "type": "replace" }),
        OperationDecision::Respond { success, .. } => json!({ "type": "respond", "success": success }),
    })
}

/// Whose decision a record has, where the store has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnDecision {
    /// That of a policy of the runtime, which names it: `policy:reviewer`.
    Policy(String),
    /// Nobody's: neither a person here nor a policy.
    Unbacked,
}

impl OwnDecision {
    const UNBACKED: &'static str = "unbacked";
    /// Of questions that got no answer: it lets nothing run.
    const UNANSWERED: &'static str = "policy:unanswered";

    /// By the name in the record.
    pub(crate) fn of(by: Option<&str>, decision: &OperationDecision) -> Self {
        let is_no = matches!(decision, OperationDecision::Reject { .. });
        match by.filter(|name| name.starts_with("policy:")) {
            Some(name) if is_no || name != Self::UNANSWERED => Self::Policy(name.to_owned()),
            _ => Self::Unbacked,
        }
    }

    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Policy(name) => name,
            Self::Unbacked => Self::UNBACKED,
        }
    }

    pub(crate) fn parse(word: String) -> Self {
        if word == Self::UNBACKED { Self::Unbacked } else { Self::Policy(word) }
    }
}

/// An operation that was decided, once for each decision.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedOperation {
    pub id: OperationId,
    pub item: ItemId,
    pub decision: Option<DecisionRow>,
    pub own_decision: Option<OwnDecision>,
}

fn load_decision(id: &OperationId, row: &SqlRow) -> Result<DecisionRow, StoreError> {
    Ok(DecisionRow {
        operation_id: id.clone(),
        decision: row.json(0)?,
        by: row.text(1)?,
        on_behalf_of: row.maybe_text(2)?,
        decided_at_ms: row.int(3)?,
        attempt: row.small(4)?,
    })
}

const DECISION: &str = "SELECT decision, decided_by, on_behalf_of, decided_at, attempt FROM decisions";

pub(crate) async fn decision_of(
    transaction: &mut dyn Transaction,
    id: &OperationId,
    attempt: u32,
) -> Result<Option<DecisionRow>, StoreError> {
    let sql = format!("{DECISION} WHERE operation_id = $1 AND attempt = $2");
    let row = query_one(transaction, &sql, vec![id.as_str().into(), attempt.into()]).await?;
    row.map(|row| load_decision(id, &row)).transpose()
}

async fn last_decision_of(
    transaction: &mut dyn Transaction,
    id: &OperationId,
) -> Result<Option<DecisionRow>, StoreError> {
    let sql = format!("{DECISION} WHERE operation_id = $1 ORDER BY attempt DESC LIMIT 1");
    let row = query_one(transaction, &sql, vec![id.as_str().into()]).await?;
    row.map(|row| load_decision(id, &row)).transpose()
}

/// Whoever decided, a person here or a policy, oldest first.
async fn decided_in(
    transaction: &mut dyn Transaction,
    thread: &ThreadId,
) -> Result<Vec<DecidedOperation>, StoreError> {
    let sql = "SELECT d.decision, d.decided_by, d.on_behalf_of, d.decided_at, d.attempt, o.id, o.proposal, o.own_decision \
               FROM operations o LEFT JOIN decisions d ON d.operation_id = o.id \
               WHERE o.thread_id = $1 AND (d.attempt IS NOT NULL OR o.own_decision IS NOT NULL) \
               ORDER BY coalesce(d.decided_at, o.updated_at), o.id";
    let rows = transaction.query(sql, vec![thread.as_str().into()]).await?;
    let shown = rows.iter().map(|row| {
        let (id, proposal) = (OperationId::new(row.text(5)?), row.json::<Value>(6)?);
        let item = proposal.get("itemId").and_then(Value::as_str).unwrap_or_default();
        let decision = match row.maybe_text(1)? {
            Some(_) => Some(load_decision(&id, row)?),
            None => None,
        };
        let own_decision = row.maybe_text(7)?.map(OwnDecision::parse);
        Ok(DecidedOperation { item: ItemId::new(item), id, decision, own_decision })
    });
    shown.collect()
}

impl TaskStore {
    /// The decision about this attempt, if there is one.
    pub async fn decision(&self, id: &OperationId, attempt: u32) -> Result<Option<DecisionRow>, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { decision_of(transaction, &id, attempt).await })
        })
        .await
    }

    /// All decisions about what a thread did, oldest first.
    pub async fn decisions_of(&self, thread: &ThreadId) -> Result<Vec<DecidedOperation>, StoreError> {
        let thread = thread.clone();
        self.work(move |transaction| {
            let thread = thread.clone();
            Box::pin(async move { decided_in(transaction, &thread).await })
        })
        .await
    }

    /// The decision that holds for its attempts now, whichever of them it was taken before.
    pub async fn last_decision(&self, id: &OperationId) -> Result<Option<DecisionRow>, StoreError> {
        let id = id.clone();
        self.work(move |transaction| {
            let id = id.clone();
            Box::pin(async move { last_decision_of(transaction, &id).await })
        })
        .await
    }
}
