//! One handler per method: typed params in, one call into the runtime, typed answer out.

pub(crate) mod account;
pub(crate) mod catalogue;
pub(crate) mod command_exec;
pub(crate) mod config;
pub(crate) mod delegation;
pub(crate) mod environment;
pub(crate) mod external_agent;
pub(crate) mod fs;
pub(crate) mod fuzzy_file_search;
pub(crate) mod goal;
pub(crate) mod legacy;
pub(crate) mod mcp;
pub(crate) mod plugin;
pub(crate) mod realtime;
pub(crate) mod review;
pub(crate) mod server_status;
pub(crate) mod skills;
pub(crate) mod thread;
pub(crate) mod thread_open;
pub(crate) mod turn;
pub(crate) mod windows;
