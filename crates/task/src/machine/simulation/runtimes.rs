//! A runtime of the simulation: what it does next follows from its records and the decisions it was given.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::store::Rec;
use super::{OPS, SimulatedDecision as Decision};

#[derive(Debug)]
pub(super) struct SimulatedRuntime {
    pub(super) replica: usize,
    pub(super) driver: u64,
    pub(super) generation: u64,
    /// The tools that it was opened with.
    pub(super) tools: u64,
    pub(super) epoch: u64,
    pub(super) is_alive: bool,
    pub(super) is_paused: bool,
    pub(super) records: Vec<Rec>,
    /// Decisions that it was opened with, or that answered its questions.
    pub(super) resolved: BTreeMap<u32, Decision>,
    pub(super) inputs: VecDeque<String>,
    /// Effects that it has carried out itself.
    pub(super) done: BTreeSet<u32>,
    /// An append or a question is under way.
    pub(super) is_waiting: bool,
}

/// The next thing that a runtime does.
#[derive(Debug, PartialEq)]
pub(super) enum NextStep {
    Append(Rec),
    Ask(u32),
    Nothing,
}

fn last_of(records: &[Rec], wanted: u32) -> Option<&Rec> {
    records.iter().rev().find(|rec| match rec {
        Rec::Proposed(op)
        | Rec::Decided(op, _)
        | Rec::Started(op, _)
        | Rec::Finished(op)
        | Rec::ToldUnknown(op) => *op == wanted,
        Rec::TurnStarted(..) | Rec::Steered(_) | Rec::TurnEnded(_) => false,
    })
}

fn attempts_of(records: &[Rec], wanted: u32) -> u32 {
    let started = records.iter().filter(|rec| matches!(rec, Rec::Started(op, _) if *op == wanted));
    u32::try_from(started.count()).unwrap_or(u32::MAX)
}

impl SimulatedRuntime {
    fn turn(&self) -> Option<u32> {
        self.records.iter().rev().find_map(|rec| match rec {
            Rec::TurnStarted(turn, _) => Some(Some(*turn)),
            Rec::TurnEnded(_) => Some(None),
            _ => None,
        })?
    }

    pub(super) fn next_step(&mut self) -> NextStep {
        let Some(turn) = self.turn() else {
            let Some(input) = self.inputs.pop_front() else { return NextStep::Nothing };
            let turns = self.records.iter().filter(|rec| matches!(rec, Rec::TurnStarted(..))).count();
            return NextStep::Append(Rec::TurnStarted(u32::try_from(turns + 1).unwrap_or(0), input));
        };
        if let Some(input) = self.inputs.pop_front() {
            return NextStep::Append(Rec::Steered(input));
        }
        // As many operations as the number of the turn says.
        for op in (0..turn % (OPS + 1)).map(|number| turn * 10 + number) {
            let rec = match last_of(&self.records, op) {
                None => Rec::Proposed(op),
                Some(Rec::Proposed(_)) => match self.resolved.get(&op) {
                    Some(decision) => Rec::Decided(op, *decision),
                    None => return NextStep::Ask(op),
                },
                Some(Rec::Decided(_, Decision::Reject) | Rec::Finished(_) | Rec::ToldUnknown(_)) => continue,
                Some(Rec::Decided(..)) => Rec::Started(op, attempts_of(&self.records, op) + 1),
                Some(Rec::Started(..)) if self.done.contains(&op) => Rec::Finished(op),
                // Begun by an earlier runtime: decided anew, or the model is told that nobody knows.
                Some(Rec::Started(..)) => match self.resolved.get(&op).copied() {
                    Some(decision @ (Decision::Retry | Decision::Reject)) => Rec::Decided(op, decision),
                    _ => Rec::ToldUnknown(op),
                },
                Some(Rec::TurnStarted(..) | Rec::Steered(_) | Rec::TurnEnded(_)) => continue,
            };
            return NextStep::Append(rec);
        }
        NextStep::Append(Rec::TurnEnded(turn))
    }
}
