//! Commands that a client runs outside any thread: they belong to its connection and end with it.

mod client;
mod command;
mod error;
mod input;
mod output;
mod place;
mod request;
mod run;

pub use client::ClientCommands;
pub use error::CommandExecError;
pub use output::DeltaSink;
