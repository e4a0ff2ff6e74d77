//! The methods of the runtime, one file per noun of the protocol. Each takes typed params and returns a typed response.

mod account;
mod catalogue;
mod command_exec;
mod config;
mod conversation_summary;
pub(crate) mod debug_prompt;
mod delegation;
pub(crate) mod environment;
mod external_agent;
mod feedback;
pub(crate) mod fs;
pub(crate) mod fuzzy_file_search;
mod git_diff;
mod goal;
pub(crate) mod manage;
mod mcp;
mod plugin;
pub(crate) mod prompt_pieces;
mod realtime;
mod records;
mod review;
pub(crate) mod server_status;
mod skills;
pub(crate) mod thread;
mod thread_open;
pub(crate) mod thread_pages;
pub(crate) mod turn;

pub(crate) use mcp::{mcp_source, start_required_mcp_servers};
pub(crate) use skills::notify_skills_changed;
