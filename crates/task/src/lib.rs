//! Owns the part of a host's task that needs no I/O: the state machine, questions and their decisions as data, and what was heard of
//! items and turns under way. Must not know runtimes, connections, the clock or how anything is stored.

mod heard;
mod machine;
pub mod questions;
mod unfinished_items;

pub use heard::HeardTurn;
pub use machine::{
    Generation, OperationStage, RecordFact, TaskEffect, TaskInput, TaskMachine, TaskSeed, TaskTimes,
};
pub use unfinished_items::UnfinishedItems;
