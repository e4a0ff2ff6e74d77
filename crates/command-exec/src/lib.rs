//! Owns the commands that run for a client outside any thread: its own, which end with its connection, and git. Must
//! not know threads or the server.

mod client;
mod command;
mod error;
mod git_diff;
mod input;
mod order;
mod output;
mod request;
mod run;
mod sandboxed_git;

pub use client::ClientCommands;
pub use error::CommandExecError;
pub use git_diff::git_diff_to_remote;
pub use order::CommandSettings;
pub use output::DeltaSink;
