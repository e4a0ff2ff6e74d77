//! The threads of a task by their records: which of them have an unfinished turn, and which a runtime has to have in memory.

use std::collections::{BTreeMap, BTreeSet};

use journal::{HistoryBuilder, OpenOperation, ThreadHistory};
use protocol::{
    CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, OperationId, ThreadId, ThreadItem, TurnId,
};
use store::{
    OperationFilter, OperationRow, OperationRowState, StoreError, StoredRecord, TaskFilter, TaskRow,
};

use crate::append::{WAIT_TOOL, is_settled};
use crate::open_runtime::all_records;
use crate::operations::operation_over;
use crate::shared::HostShared;
use crate::views::entry_of;
use task::OperationStage;

/// One thread of a task.
#[derive(Debug)]
pub(crate) struct TaskThread {
    pub(crate) id: ThreadId,
    /// Unset for the root.
    pub(crate) parent: Option<ThreadId>,
    pub(crate) records: Vec<StoredRecord>,
    pub(crate) unfinished: Option<TurnId>,
    /// Where it works.
    pub(crate) folder: Option<String>,
    /// Operations that the record has as over, though no record says so.
    settled: BTreeSet<OperationId>,
    /// Agents that it started and did not close.
    agents: BTreeSet<ThreadId>,
}

impl TaskThread {
    pub(crate) async fn read(
        shared: &HostShared,
        id: ThreadId,
        parent: Option<ThreadId>,
    ) -> Result<Self, StoreError> {
        let records = all_records(shared, &id).await?;
        let mut builder = HistoryBuilder::new(Some(id.clone()));
        for record in &records {
            builder.add(entry_of(record)?);
        }
        let history = builder.finish();
        let is_over = |open: &&OpenOperation| open.records.last().is_some_and(is_settled);
        let over = history.operations.iter().filter(is_over).map(|open| open.operation_id.clone());
        Ok(Self {
            settled: over.collect(),
            agents: open_agents(&history),
            folder: folder_of(&history),
            unfinished: history.unfinished_turn,
            id,
            parent,
            records,
        })
    }

    /// Whether the operation is one of the unfinished turn that can still go on.
    fn has_open(&self, operation: &OperationId) -> bool {
        let Some(turn) = &self.unfinished else { return false };
        let of_turn = format!("{}:{turn}:", self.id);
        operation.as_str().starts_with(&of_turn) && !self.settled.contains(operation)
    }
}

/// That of its last turn, or the one it was started in.
fn folder_of(history: &ThreadHistory) -> Option<String> {
    let of_turn = history.turn_context.as_ref().and_then(|context| context["cwd"].as_str());
    of_turn.map(str::to_owned).or_else(|| Some(history.meta.as_ref()?.cwd.to_string()))
}

/// The agents that a thread started, or opened again, and did not close.
fn open_agents(history: &ThreadHistory) -> BTreeSet<ThreadId> {
    let mut open = BTreeSet::new();
    for item in history.turns.iter().flat_map(|turn| &turn.items) {
        let ThreadItem::CollabAgentToolCall { tool, status, receiver_thread_ids, agents_states, .. } = item
        else {
            continue;
        };
        for agent in receiver_thread_ids {
            let stood = agents_states.get(agent.as_str()).map(|state| state.status);
            // A call that is shown as failed because of how the agent stood did what it was for.
            let is_done = match status {
                CollabAgentToolCallStatus::Completed => true,
                CollabAgentToolCallStatus::Failed => stood == Some(CollabAgentStatus::Errored),
                CollabAgentToolCallStatus::InProgress => false,
            };
            match tool {
                CollabAgentTool::SpawnAgent | CollabAgentTool::ResumeAgent if is_done => {
                    open.insert(agent.clone());
                }
                CollabAgentTool::CloseAgent if is_done => drop(open.remove(agent)),
                _ => {}
            }
        }
    }
    open
}

/// The rows of a task: its root and every agent below it.
pub(crate) async fn thread_rows(shared: &HostShared, root: &ThreadId) -> Result<Vec<TaskRow>, StoreError> {
    let mut rows = Vec::new();
    for is_archived in [false, true] {
        let filter =
            TaskFilter { is_archived, root: Some(root.clone()), limit: 1_000, ..TaskFilter::default() };
        rows.extend(shared.store.list_tasks(filter).await?.tasks);
    }
    Ok(rows)
}

/// Every thread of a task that has a record.
pub(crate) async fn recorded_threads(
    shared: &HostShared,
    root: &ThreadId,
) -> Result<Vec<TaskThread>, StoreError> {
    let mut threads = vec![TaskThread::read(shared, root.clone(), None).await?];
    for row in thread_rows(shared, root).await? {
        if row.id != *root && row.next_ordinal > 0 {
            threads.push(TaskThread::read(shared, row.id, row.parent).await?);
        }
    }
    Ok(threads)
}

/// The agents that a runtime is to have in memory, those below others first: a turn that waits for an agent must find it
/// there.
pub(crate) fn agents_to_open(threads: Vec<TaskThread>, root: &ThreadId) -> Vec<TaskThread> {
    let mut waiting: BTreeMap<ThreadId, TaskThread> =
        threads.into_iter().map(|thread| (thread.id.clone(), thread)).collect();
    let mut above: Vec<(ThreadId, BTreeSet<ThreadId>)> = Vec::new();
    above.extend(waiting.remove(root).map(|thread| (thread.id, thread.agents)));
    let mut found: Vec<TaskThread> = Vec::new();
    while let Some((parent, agents)) = above.pop() {
        let is_wanted = |thread: &TaskThread| {
            thread.parent.as_ref() == Some(&parent)
                && (thread.unfinished.is_some() || agents.contains(&thread.id))
        };
        let below: Vec<ThreadId> =
            waiting.values().filter(|thread| is_wanted(thread)).map(|thread| thread.id.clone()).collect();
        for thread in below.iter().filter_map(|id| waiting.remove(id)) {
            above.push((thread.id.clone(), thread.agents.clone()));
            found.push(thread);
        }
    }
    // Whoever worked for one that is closed, and was cut off.
    found.extend(waiting.into_values().filter(|thread| thread.unfinished.is_some()));
    found.reverse();
    found
}

/// Operations of unfinished turns that are not over.
#[derive(Debug, Default)]
pub(crate) struct OpenOperations {
    pub(crate) stages: BTreeMap<OperationId, OperationStage>,
    /// Those that only wait for agents.
    pub(crate) agent_waits: BTreeSet<OperationId>,
}

/// Operations that are open. Those of a turn that has ended wait for nobody and are withdrawn.
pub(crate) async fn open_operations(
    shared: &HostShared,
    root: &ThreadId,
    threads: &[TaskThread],
) -> Result<OpenOperations, StoreError> {
    for thread in threads.iter().filter(|thread| thread.unfinished.is_none()) {
        operation_over(shared, &thread.id, None).await;
    }
    let mut open = OpenOperations::default();
    for (state, stage) in [
        (OperationRowState::Proposed, OperationStage::Proposed),
        (OperationRowState::Decided, OperationStage::Decided),
        (OperationRowState::Started, OperationStage::Started),
        (OperationRowState::Unknown, OperationStage::Unknown),
    ] {
        let filter =
            OperationFilter { thread: Some(root.clone()), state: Some(state), cursor: None, limit: 1_000 };
        let rows = shared.store.list_operations(filter).await?.0;
        let is_open = |row: &OperationRow| {
            threads.iter().any(|thread| thread.id == row.thread && thread.has_open(&row.id))
        };
        for row in rows.into_iter().filter(is_open) {
            if row.proposal["tool"] == WAIT_TOOL {
                open.agent_waits.insert(row.id.clone());
            }
            open.stages.insert(row.id, stage);
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn thread(id: &str, parent: Option<&str>, unfinished: bool, agents: &[&str]) -> TaskThread {
        TaskThread {
            folder: None,
            id: ThreadId::new(id),
            parent: parent.map(ThreadId::new),
            records: Vec::new(),
            unfinished: unfinished.then(|| TurnId::new("u1")),
            settled: BTreeSet::new(),
            agents: agents.iter().map(|agent| ThreadId::new(*agent)).collect(),
        }
    }

    fn opened(threads: Vec<TaskThread>) -> Vec<String> {
        let opened = agents_to_open(threads, &ThreadId::new("root"));
        opened.into_iter().map(|thread| thread.id.to_string()).collect()
    }

    #[test]
    fn agents_that_are_open_or_at_work_are_opened_from_below() {
        let threads = vec![
            thread("root", None, true, &["idle", "works"]),
            thread("idle", Some("root"), false, &[]),
            thread("closed", Some("root"), false, &[]),
            thread("works", Some("root"), true, &["below"]),
            thread("below", Some("works"), false, &[]),
            thread("unknown to its parent", Some("root"), true, &[]),
        ];
        let opened = opened(threads);
        assert!(!opened.contains(&"closed".to_owned()), "{opened:?}");
        assert_eq!(opened.len(), 4, "{opened:?}");
        let at = |id: &str| opened.iter().position(|opened| opened == id).expect(id);
        assert!(at("below") < at("works"), "{opened:?}");
    }

    #[test]
    fn one_that_worked_for_a_closed_one_goes_on_all_the_same() {
        let threads = vec![
            thread("root", None, false, &[]),
            thread("closed", Some("root"), false, &["works", "idle"]),
            thread("works", Some("closed"), true, &[]),
            thread("idle", Some("closed"), false, &[]),
        ];
        assert_eq!(opened(threads), ["works"]);
    }

    #[test]
    fn operations_of_the_unfinished_turn_are_open() {
        let works = thread("t", None, true, &[]);
        assert!(works.has_open(&OperationId::new("t:u1:c1")));
        assert!(!works.has_open(&OperationId::new("t:u0:c1")), "of an earlier turn");
        assert!(!thread("t", None, false, &[]).has_open(&OperationId::new("t:u1:c1")));
    }

    #[test]
    fn an_agent_is_open_until_it_is_closed() {
        let call = |ordinal: u64, tool: &str, status: &str| {
            let item = json!({
                "type": "collabAgentToolCall", "id": format!("c{ordinal}"), "tool": tool, "status": status,
                "senderThreadId": "t", "receiverThreadIds": ["a"], "prompt": null, "agentsStates": {},
                "model": null, "reasoningEffort": null,
            });
            let payload =
                json!({"ordinal": ordinal, "kind": "threadItem", "turnId": "u1", "item": item, "atMs": 1});
            StoredRecord { ordinal, payload: payload.to_string() }
        };
        let began = json!({"ordinal": 0, "kind": "turnStarted", "turnId": "u1", "atMs": 1}).to_string();
        let record = [
            StoredRecord { ordinal: 0, payload: began },
            call(1, "spawnAgent", "completed"),
            call(2, "closeAgent", "failed"),
            call(3, "closeAgent", "completed"),
            call(4, "resumeAgent", "completed"),
        ];
        for (records, open) in [(1, 0), (2, 1), (3, 1), (4, 0), (5, 1)] {
            let mut builder = HistoryBuilder::new(Some(ThreadId::new("t")));
            for record in &record[..records] {
                builder.add(entry_of(record).expect("read"));
            }
            assert_eq!(open_agents(&builder.finish()).len(), open, "after {records} records");
        }
    }
}
