//! The methods end to end: the real server, runtime, engine and journal; only the model is a script.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod account;
mod agents;
mod catalogue;
mod command_exec;
mod config;
mod connection;
mod delegation;
mod environment;
mod external_agent;
mod fs;
mod fuzzy_file_search;
mod goal;
mod hooks;
mod legacy;
mod mcp;
mod plugin;
mod realtime;
mod review;
mod server_status;
mod skills;
mod thread;
mod turn;
