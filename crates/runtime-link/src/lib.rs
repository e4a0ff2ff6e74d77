//! Owns the host's end of a runtime's pipes: its requests with their answers, and runtimes that work for one client each.
//! Must not know tasks or placements: it is given pipes, and a way to end what is behind them.

mod client_runtime;
mod link;

pub use client_runtime::{BoxFuture, ClientRuntime, ClientRuntimes, RuntimeClient, RuntimePipes};
pub use link::{LinkAnswer, OrderedAnswer, RuntimeLink};
