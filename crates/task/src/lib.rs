//! Owns the part of a host's task that needs no I/O: the state machine, questions and their decisions as data, what was heard of
//! items and turns under way, and the stream of a client that carries a model request. Must not know runtimes, connections, the clock or how anything is stored.

mod heard;
mod incoming_stream;
mod machine;
pub mod questions;
mod unfinished_items;

pub use heard::HeardTurn;
pub use incoming_stream::{
    BatchResponder, CarriedEvent, ClientStreamError, EventKind, IncomingStream, STREAM_WINDOW, StreamAbort,
    StreamBreak, StreamNews,
};
pub use machine::{
    Generation, OperationStage, RecordFact, TaskEffect, TaskInput, TaskMachine, TaskSeed, TaskTimes,
};
pub use unfinished_items::UnfinishedItems;
