//! Records of a runtime on their way into the store: committed before they are acknowledged, and before anything that the
//! runtime said after them is passed on.

use std::collections::BTreeSet;
use std::time::Duration;

use journal::{HistoryBuilder, JournalEntry, Record};
use protocol::{
    LastTurn, OperationDecision, OperationId, OperationRecord, RolloutAppendResponse, RolloutItem,
    RolloutRecord, SessionSource, SubAgentSource, ThreadId,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{NewRecord, NewTask, StoreError, TaskChange, TaskCreation, TaskLease};

use crate::operations::{operation_over, shown_operation};
use crate::shared::HostShared;
use task::{OperationStage, RecordFact};

/// Records of one task, children included.
const MAX_TASK_BYTES: u64 = 256 * 1024 * 1024;
pub(crate) const MAX_CHILDREN: usize = 32;
/// A database that is away for longer refuses the append, and the runtime stops.
const STORE_PATIENCE: Duration = Duration::from_secs(60);
const STORE_PAUSE: Duration = Duration::from_millis(200);

/// The tool by which a thread waits for its agents.
pub(crate) const WAIT_TOOL: &str = "wait_agent";

const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

/// An append as the wire has it, with records as text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AppendRequest {
    pub(crate) thread_id: ThreadId,
    host_epoch: u64,
    from_ordinal: u64,
    items: Vec<Box<RawValue>>,
}

/// Why an append is refused, as JSON-RPC tells it.
#[derive(Debug)]
pub(crate) struct AppendRefusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

fn refusal(code: &str, message: impl Into<String>) -> AppendRefusal {
    AppendRefusal { code: INVALID_PARAMS, message: message.into(), data: Some(json!({ "code": code })) }
}

/// The threads of a task, and how much they have recorded.
#[derive(Debug)]
pub(crate) struct TaskThreads {
    pub(crate) root: ThreadId,
    pub(crate) known: BTreeSet<ThreadId>,
    pub(crate) bytes: u64,
    pub(crate) has_preview: bool,
}

/// An append that is committed.
pub(crate) struct CommittedAppend {
    pub(crate) response: RolloutAppendResponse,
    pub(crate) facts: Vec<RecordFact>,
    /// A child that was not known before, with its parent.
    pub(crate) child: Option<(ThreadId, ThreadId)>,
}

/// One batch of records, read.
#[derive(Default)]
struct RecordBatchFacts {
    records: Vec<NewRecord>,
    facts: Vec<RecordFact>,
    touched: Vec<OperationId>,
    ended: Vec<LastTurn>,
    preview: Option<String>,
    parent: Option<ThreadId>,
    bytes: u64,
}

pub(crate) async fn append(
    shared: &HostShared,
    lease: &TaskLease,
    threads: &mut TaskThreads,
    request: AppendRequest,
) -> Result<CommittedAppend, AppendRefusal> {
    if request.host_epoch != lease.epoch {
        return Err(refusal("fenced", "another runtime has this task now"));
    }
    let thread = request.thread_id.clone();
    let batch = read(&request, threads)?;
    if threads.bytes + batch.bytes > MAX_TASK_BYTES {
        let message = format!("the records of a task may take {MAX_TASK_BYTES} bytes");
        return Err(refusal("recordTooLarge", message));
    }
    let child = match threads.known.contains(&thread) {
        true => None,
        false => Some((admit_child(shared, threads, &thread, &batch).await?, thread.clone())),
    };
    #[cfg(debug_assertions)]
    batch.reach_kill_points("before");
    let receipt = commit(shared, lease, &thread, request.from_ordinal, &batch.records).await?;
    #[cfg(debug_assertions)]
    batch.reach_kill_points("after");
    threads.bytes += batch.bytes;
    if let Some(preview) = batch.preview.filter(|_| !threads.has_preview && thread == threads.root) {
        threads.has_preview = true;
        let change = TaskChange { preview: Some(preview), ..TaskChange::default() };
        log_failure(shared.store.update_task(&thread, change).await.map(drop));
    }
    if let Some(turn) = batch.ended.last() {
        let change = TaskChange { last_turn: Some(json!(turn)), ..TaskChange::default() };
        log_failure(shared.store.update_task(&thread, change).await.map(drop));
    }
    for turn in &batch.ended {
        operation_over(shared, &thread, Some(&turn.id)).await;
        log_failure(shared.store.forget_streams(&thread).await);
    }
    for operation in &batch.touched {
        if let Some(operation) = shown_operation(&shared.store, operation).await {
            shared.clients.operation_updated(operation).await;
        }
    }
    let valid_for_ms = receipt.valid_for_ms.map(|left| u64::try_from(left).unwrap_or(0));
    let response = RolloutAppendResponse { next_ordinal: receipt.next_ordinal, valid_for_ms };
    Ok(CommittedAppend { response, facts: batch.facts, child })
}

fn log_failure(done: Result<(), StoreError>) {
    if let Err(error) = done {
        tracing::warn!(%error, "a row beside the records is not up to date");
    }
}

fn read(request: &AppendRequest, threads: &TaskThreads) -> Result<RecordBatchFacts, AppendRefusal> {
    let mut batch = RecordBatchFacts::default();
    // The store counts with signed numbers.
    let last = request.from_ordinal.checked_add(request.items.len() as u64);
    if last.is_none_or(|last| i64::try_from(last).is_err()) {
        return Err(refusal("badRecord", "fromOrdinal is beyond every record"));
    }
    for (payload, ordinal) in request.items.iter().zip(request.from_ordinal..) {
        let item: RolloutItem = serde_json::from_str(payload.get()).map_err(|error| {
            refusal("badRecord", format!("items[{}]: {error}", ordinal - request.from_ordinal))
        })?;
        if item.ordinal != ordinal {
            let message = format!("an item has the ordinal {}, and its place is {ordinal}", item.ordinal);
            return Err(refusal("badRecord", message));
        }
        batch.bytes += payload.get().len() as u64;
        let operation = batch.take(&request.thread_id, item.record, threads);
        batch.records.push(NewRecord { payload: payload.get().to_owned(), operation });
    }
    Ok(batch)
}

impl RecordBatchFacts {
    fn take(
        &mut self,
        thread: &ThreadId,
        record: RolloutRecord,
        threads: &TaskThreads,
    ) -> Option<OperationRecord> {
        let fact = match record {
            RolloutRecord::SessionMeta { meta } => {
                if let SessionSource::SubAgent(SubAgentSource::ThreadSpawn { parent_thread_id, .. }) =
                    &meta.source
                {
                    self.parent = Some(parent_thread_id.clone());
                }
                RecordFact::Other
            }
            RolloutRecord::TurnStarted { turn_id, .. } => {
                RecordFact::TurnStarted { thread: thread.clone(), turn: turn_id }
            }
            RolloutRecord::TurnEnded { turn_id, status, error, .. } => {
                let error = error.map(|error| error.message);
                self.ended.push(LastTurn { id: turn_id.clone(), status, error });
                RecordFact::TurnEnded { thread: thread.clone(), turn: turn_id }
            }
            RolloutRecord::Operation { operation } => {
                if let OperationRecord::Proposed { operation_id, tool, .. } = &operation
                    && tool == WAIT_TOOL
                {
                    self.facts.push(RecordFact::AgentWait(operation_id.clone()));
                }
                let fact = fact_of(&operation);
                if let RecordFact::Operation { operation, .. } = &fact {
                    self.touched.push(operation.clone());
                }
                self.facts.push(fact);
                return Some(operation);
            }
            RolloutRecord::ThreadItem { .. } if !threads.has_preview && self.preview.is_none() => {
                self.preview = preview_of(thread, record);
                RecordFact::Other
            }
            _ => RecordFact::Other,
        };
        if fact != RecordFact::Other {
            self.facts.push(fact);
        }
        None
    }
}

#[cfg(debug_assertions)]
impl RecordBatchFacts {
    /// A point for each kind of record that the batch has.
    fn reach_kill_points(&self, when: &str) {
        for fact in &self.facts {
            let kind = match fact {
                RecordFact::TurnStarted { .. } => "turnStarted",
                RecordFact::TurnEnded { .. } => "turnEnded",
                RecordFact::Operation { stage: Some(OperationStage::Proposed), .. } => "proposed",
                RecordFact::Operation { stage: Some(OperationStage::Decided), .. } => "decided",
                RecordFact::Operation { stage: Some(OperationStage::Started), .. } => "started",
                RecordFact::Operation { stage: None, .. } => "finished",
                _ => continue,
            };
            support::kill_point!("host.{kind}.{when}");
        }
    }
}

fn fact_of(record: &OperationRecord) -> RecordFact {
    let (operation, stage) = match record {
        OperationRecord::Proposed { operation_id, .. } => (operation_id, Some(OperationStage::Proposed)),
        OperationRecord::Decided { operation_id, .. } => {
            (operation_id, (!is_settled(record)).then_some(OperationStage::Decided))
        }
        OperationRecord::Started { operation_id, .. } => (operation_id, Some(OperationStage::Started)),
        // The runtime has told the model so: nobody has to decide any more.
        OperationRecord::Unknown { operation_id, .. }
        | OperationRecord::Finished { operation_id, .. }
        | OperationRecord::Withdrawn { operation_id, .. } => (operation_id, None),
    };
    RecordFact::Operation { operation: operation.clone(), stage }
}

/// Whether the runtime has recorded a decision after which nothing starts: the operation is over, though no record says so.
pub(crate) fn is_settled(record: &OperationRecord) -> bool {
    let OperationRecord::Decided { decision, .. } = record else { return false };
    match decision {
        OperationDecision::Reject { .. } | OperationDecision::Respond { .. } => true,
        // Another command is another operation; other arguments start this one.
        OperationDecision::Replace { command, .. } => command.is_some(),
        OperationDecision::Approve { .. } | OperationDecision::Retry => false,
    }
}

/// The first words of the user, by the rule of the journal.
fn preview_of(thread: &ThreadId, record: RolloutRecord) -> Option<String> {
    let mut builder = HistoryBuilder::new(Some(thread.clone()));
    builder.add(JournalEntry { seq: 0, at_ms: 0, record: Record::Known(record) });
    builder.finish().summary.preview.filter(|preview| !preview.is_empty())
}

/// A runtime is not trusted: it may name threads of its task alone, and a new one must be new to the store.
async fn admit_child(
    shared: &HostShared,
    threads: &mut TaskThreads,
    thread: &ThreadId,
    batch: &RecordBatchFacts,
) -> Result<ThreadId, AppendRefusal> {
    let parent = batch.parent.clone().filter(|parent| threads.known.contains(parent));
    let Some(parent) = parent else {
        return Err(refusal("unknownThread", format!("thread {thread} is not one of this task")));
    };
    if threads.known.len() > MAX_CHILDREN {
        return Err(refusal("tooManyChildren", format!("a task may have {MAX_CHILDREN} children")));
    }
    let new = NewTask {
        id: thread.clone(),
        parent: Some(parent.clone()),
        labels: Default::default(),
        agent_digest: None,
        placement_id: None,
        site: shared.site().to_owned(),
        settings: json!({}),
        record_schema: 1,
        priority: 0,
    };
    match shared.store.create_task(new).await {
        Ok(TaskCreation::Created(_)) => {
            threads.known.insert(thread.clone());
            Ok(parent)
        }
        Ok(TaskCreation::Existed(_)) => {
            Err(refusal("unknownThread", format!("thread {thread} belongs to another task")))
        }
        Err(error) => Err(of_store(&error)),
    }
}

/// Waits for a database that is away: the runtime waits at its barrier meanwhile, and nothing is lost.
async fn commit(
    shared: &HostShared,
    lease: &TaskLease,
    thread: &ThreadId,
    from: u64,
    records: &[NewRecord],
) -> Result<store::AppendReceipt, AppendRefusal> {
    let deadline = tokio::time::Instant::now() + STORE_PATIENCE;
    loop {
        match shared.store.append(lease, thread, from, records.to_vec()).await {
            Ok(receipt) => return Ok(receipt),
            Err(error) if error.is_temporary() && tokio::time::Instant::now() < deadline => {
                tracing::warn!(%error, thread = %thread, "an append waits for the database");
                tokio::time::sleep(STORE_PAUSE).await;
            }
            Err(error) => return Err(of_store(&error)),
        }
    }
}

fn of_store(error: &StoreError) -> AppendRefusal {
    let message = error.to_string();
    let data = match error {
        StoreError::Fenced(_) => json!({"code": "fenced"}),
        StoreError::OrdinalConflict { next, .. } => json!({"code": "ordinalConflict", "nextOrdinal": next}),
        StoreError::UnknownTask(_) => json!({"code": "unknownThread"}),
        _ => return AppendRefusal { code: INTERNAL, message, data: Some(json!({"code": "storeFailed"})) },
    };
    AppendRefusal { code: INVALID_PARAMS, message, data: Some(data) }
}

#[cfg(test)]
mod tests {
    use serde_json::from_value;

    use super::*;

    #[test]
    fn an_operation_is_over_with_a_decision_after_which_nothing_starts() {
        for (decision, stage) in [
            (json!({"type": "approve"}), Some(OperationStage::Decided)),
            (json!({"type": "retry"}), Some(OperationStage::Decided)),
            (json!({"type": "replace", "arguments": {"a": 1}}), Some(OperationStage::Decided)),
            (json!({"type": "replace", "command": ["ls"]}), None),
            (json!({"type": "reject", "endTurn": false}), None),
            (json!({"type": "respond", "contentItems": [], "success": true}), None),
        ] {
            let record = OperationRecord::Decided {
                operation_id: OperationId::new("t:u:c1"),
                decision: from_value(decision.clone()).expect("a decision"),
                attempt: None,
                by: None,
                arguments_digest: "sha256:0".to_owned(),
                session_keys: None,
                decided_at_ms: 1,
            };
            let operation = OperationId::new("t:u:c1");
            assert_eq!(fact_of(&record), RecordFact::Operation { operation, stage }, "{decision}");
        }
    }
}
