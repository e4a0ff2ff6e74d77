//! Owns the commands that a client runs outside any thread: they belong to its connection and end with it.
//! Must not know threads or the server.

mod client;
mod command;
mod error;
mod input;
mod order;
mod output;
mod request;
mod run;

pub use client::ClientCommands;
pub use error::CommandExecError;
pub use order::CommandSettings;
pub use output::DeltaSink;
