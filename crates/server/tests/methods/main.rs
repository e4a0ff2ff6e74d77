//! The methods end to end: the real server, runtime, engine and journal; only the model is a script.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod client;
mod raw_model;
mod stage;

mod account;
mod approvals;
mod catalogue;
mod command_exec;
mod compaction;
mod connections;
mod dynamic_tools;
mod initialize;
mod list;
mod manage;
mod past;
mod plan;
mod restart;
mod resume;
mod running_turn;
mod start;
mod turn_options;
mod turn_start;
