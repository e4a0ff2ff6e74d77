//! The store of the simulation: one task with its records, operations, inbox and leases, as the real one keeps them.

use std::collections::BTreeMap;

use super::super::{OperationStage, RecordFact, TaskSeed};
use super::{SimulatedDecision as Decision, operation_id, thread_id, turn_id};
use store::TaskState;

/// An operation's row: how far it is, and the decision about each attempt.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct OpRow {
    pub(super) stage: Option<OperationStage>,
    pub(super) is_over: bool,
    pub(super) attempt: u32,
    pub(super) decisions: BTreeMap<u32, Decision>,
}

/// A record, as far as the simulation cares. Turns and operations go by number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rec {
    TurnStarted(u32, String),
    /// Input that joined a turn.
    Steered(String),
    Proposed(u32),
    Decided(u32, Decision),
    Started(u32, u32),
    Finished(u32),
    /// The model was told that the outcome is unknown.
    ToldUnknown(u32),
    TurnEnded(u32),
}

#[derive(Debug, Clone, Default)]
pub(super) struct StoredTask {
    pub(super) records: Vec<Rec>,
    pub(super) ops: BTreeMap<u32, OpRow>,
    /// Inputs with the turn they led to, once they are taken.
    pub(super) inbox: Vec<(String, bool)>,
    pub(super) state: Option<TaskState>,
    pub(super) owner: Option<(usize, u64)>,
    pub(super) epoch: u64,
    /// Counts the changes of its tools.
    pub(super) tools: u64,
    /// The runtime that an owner started last.
    pub(super) runtime: Option<usize>,
}

/// Why the store refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Fenced,
    Ordinal,
    AlreadyDecided,
    NotOpen,
}

impl StoredTask {
    pub(super) fn append(&mut self, epoch: u64, from: usize, rec: Rec) -> Result<(), Refusal> {
        if epoch != self.epoch {
            return Err(Refusal::Fenced);
        }
        if from != self.records.len() {
            return Err(Refusal::Ordinal);
        }
        match &rec {
            Rec::Proposed(op) => {
                let row = self.ops.entry(*op).or_default();
                if row.stage.is_none() && !row.is_over {
                    row.stage = Some(OperationStage::Proposed);
                }
            }
            Rec::Decided(op, decision) => {
                let row = self.ops.entry(*op).or_default();
                row.stage = Some(OperationStage::Decided);
                row.is_over = *decision == Decision::Reject;
            }
            Rec::Started(op, attempt) => {
                let row = self.ops.entry(*op).or_default();
                (row.stage, row.attempt) = (Some(OperationStage::Started), *attempt);
            }
            Rec::Finished(op) | Rec::ToldUnknown(op) => self.ops.entry(*op).or_default().is_over = true,
            Rec::TurnStarted(..) | Rec::Steered(_) | Rec::TurnEnded(_) => {}
        }
        self.records.push(rec);
        Ok(())
    }

    /// The first decision about an attempt counts.
    pub(super) fn decide(&mut self, op: u32, decision: Decision) -> Result<u32, Refusal> {
        let row = self.ops.get_mut(&op).ok_or(Refusal::NotOpen)?;
        if row.decisions.contains_key(&row.attempt) {
            return Err(Refusal::AlreadyDecided);
        }
        match row.stage {
            Some(OperationStage::Proposed | OperationStage::Unknown) if !row.is_over => {
                row.stage = Some(OperationStage::Decided);
                row.decisions.insert(row.attempt, decision);
                Ok(row.attempt)
            }
            _ => Err(Refusal::NotOpen),
        }
    }

    /// Marks started operations that never finished as unknown.
    pub(super) fn lose_started(&mut self, epoch: u64) -> Result<Vec<u32>, Refusal> {
        if epoch != self.epoch {
            return Err(Refusal::Fenced);
        }
        let mut lost = Vec::new();
        for (op, row) in &mut self.ops {
            if row.stage == Some(OperationStage::Started) && !row.is_over {
                row.stage = Some(OperationStage::Unknown);
                lost.push(*op);
            }
        }
        Ok(lost)
    }

    pub(super) fn unfinished_turn(&self) -> Option<u32> {
        self.records.iter().rev().find_map(|rec| match rec {
            Rec::TurnStarted(turn, _) => Some(Some(*turn)),
            Rec::TurnEnded(_) => Some(None),
            _ => None,
        })?
    }

    pub(super) fn has_input(&self, input: &str) -> bool {
        self.records
            .iter()
            .any(|rec| matches!(rec, Rec::TurnStarted(_, id) | Rec::Steered(id) if id == input))
    }

    /// Whether the task goes on without anybody asking: the same condition as `HAS_WORK` of the store.
    pub(super) fn has_work(&self) -> bool {
        matches!(self.state, Some(TaskState::Running | TaskState::Queued))
            || !self.waiting_inputs().is_empty()
            || self.ops.values().any(|row| row.stage == Some(OperationStage::Decided) && !row.is_over)
    }

    pub(super) fn waiting_inputs(&self) -> Vec<String> {
        self.inbox.iter().filter(|(_, is_taken)| !is_taken).map(|(id, _)| id.clone()).collect()
    }

    /// The task as a driver loads it.
    pub(super) fn seed(&self) -> TaskSeed {
        let turn = self.unfinished_turn();
        let is_of_turn = |op: &u32| turn == Some(op / 10);
        let open = self.ops.iter().filter(|(op, row)| is_of_turn(op) && !row.is_over);
        TaskSeed {
            state: match self.state.unwrap_or(TaskState::Creating) {
                TaskState::Creating if !self.records.is_empty() => TaskState::Idle,
                state => state,
            },
            turns: turn.map(|turn| (thread_id(), turn_id(turn))).into_iter().collect(),
            operations: open.filter_map(|(op, row)| Some((operation_id(*op), row.stage?))).collect(),
            agent_waits: Default::default(),
            inputs: self.waiting_inputs(),
        }
    }
}

/// The fact about a record that the task is told.
pub(super) fn fact_of(rec: &Rec) -> RecordFact {
    let operation = |op: &u32, stage| RecordFact::Operation { operation: operation_id(*op), stage };
    match rec {
        Rec::TurnStarted(turn, _) => RecordFact::TurnStarted { thread: thread_id(), turn: turn_id(*turn) },
        Rec::TurnEnded(turn) => RecordFact::TurnEnded { thread: thread_id(), turn: turn_id(*turn) },
        Rec::Steered(_) => RecordFact::Other,
        Rec::Proposed(op) => operation(op, Some(OperationStage::Proposed)),
        Rec::Decided(op, Decision::Reject) => operation(op, None),
        Rec::Decided(op, _) => operation(op, Some(OperationStage::Decided)),
        Rec::Started(op, _) => operation(op, Some(OperationStage::Started)),
        Rec::Finished(op) | Rec::ToldUnknown(op) => operation(op, None),
    }
}
