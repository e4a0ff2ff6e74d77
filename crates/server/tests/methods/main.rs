//! The methods end to end: the real server, runtime, engine and journal; only the model is a script.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod client;
mod paced_model;
mod raw_model;
mod routed_model;
mod stage;

mod account;
mod additional_context;
mod agents;
mod approvals;
mod catalogue;
mod command_exec;
mod commands;
mod compaction;
mod connections;
mod delegation;
mod departures;
mod dynamic_tools;
mod environments;
mod external_agent;
mod host_record;
mod initialize;
mod instructions;
mod list;
mod manage;
mod past;
mod plan;
mod reading;
mod restart;
mod resume;
mod running_turn;
mod sdk_delegation;
mod settings;
mod skills;
mod start;
mod stop;
mod take_up;
mod tool_set;
mod turn_options;
mod turn_start;
