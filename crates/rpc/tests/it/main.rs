//! Lines in and out: parsing, queueing and writing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod burst;
mod hostile_lines;
mod mutated_lines;
mod outbox;
mod producers;
mod writer;
