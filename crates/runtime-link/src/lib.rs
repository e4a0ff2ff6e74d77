//! Owns the host's end of a runtime: how one on this machine is started and ended, its requests with their answers, and runtimes that
//! work for one client each. Must not know what tasks do.

mod client_runtime;
mod launcher;
mod link;
mod local_process;

pub use client_runtime::{BoxFuture, ClientRuntime, ClientRuntimes, RuntimeClient, RuntimePipes};
pub use launcher::{LaunchRequest, LocalLauncher, RuntimeEnd, RuntimeLauncher, RuntimeProcess};
pub use link::{LinkAnswer, OrderedAnswer, RuntimeLink};
