//! A deterministic simulation of the task's state machine among several replicas: a store that is slow, stale or away, a
//! database clock that jumps, replicas and runtimes that are killed or stopped in any moment, and clients that say things
//! twice. Effects are counted outside. A run is reproducible by its number:
//!
//!     OARLOCK_SCHEDULES==4711 cargo nextest run -p oarlock-host schedules_of_several_replicas
//!
//! The driver and the store are short models of the real ones; the state machine is the real one.

mod random;
mod runtimes;
mod store;
mod world;

use protocol::{OperationId, ThreadId, TurnId};

use world::World;

const ROOT: &str = "t";
/// Operations of one turn, at most.
const OPS: u32 = 3;

/// A decision about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulatedDecision {
    Approve,
    Retry,
    Reject,
}

fn thread_id() -> ThreadId {
    ThreadId::new(ROOT)
}

fn turn_id(turn: u32) -> TurnId {
    TurnId::new(format!("u{turn}"))
}

/// Operations go by number: ten for each turn.
fn operation_id(op: u32) -> OperationId {
    OperationId::new(format!("{ROOT}:u{}:c{}", op / 10, op % 10))
}

fn op_number(operation: &OperationId) -> u32 {
    let mut parts = operation.as_str().split(':').skip(1).map(|part| part[1..].parse::<u32>().unwrap_or(0));
    parts.next().unwrap_or(0) * 10 + parts.next().unwrap_or(0)
}

/// Each schedule by its number. `OARLOCK_SCHEDULES` says how many, or which one: `=4711`.
#[test]
fn schedules_of_several_replicas_keep_the_promises() {
    let wanted = std::env::var("OARLOCK_SCHEDULES").unwrap_or_else(|_| "300".to_owned());
    let number = |word: &str| word.parse::<u64>().expect("OARLOCK_SCHEDULES is a number or =NUMBER");
    let seeds = match wanted.strip_prefix('=') {
        Some(one) => number(one)..number(one) + 1,
        None => 0..number(&wanted),
    };
    for seed in seeds {
        World::new(seed).run();
    }
}
