//! Owns the built-in tools, one file each with spec, prompt section, handler and tests, and their registry. Must not
//! know the client, nor how calls are scheduled.

mod agents;
mod bench;
mod bm25;
mod builtin;
mod call_scope;
mod child_agents;
mod digest;
mod error;
mod exec;
mod files;
mod offer;
mod recent_offers;
mod registry;
mod remote;
mod schema;
mod source;
mod tool;
mod tool_state;
mod turn_diffs;
mod whole_numbers;

#[cfg(test)]
mod fake_agents;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod testing;

pub use bench::{Bench, BenchOptions};
pub use builtin::*;
pub use call_scope::{CallScope, ScopeHold};
pub use child_agents::{AgentStatus, ChildAgents, SpawnOrder, Spawned};
pub use error::ToolError;
pub use exec::environment_outside;
pub use files::access::roots_of;
pub use offer::{Offer, PatchForm, ShellForm, Standing};
pub use registry::Registry;
pub use remote::client_environment;
pub use tool::{BoxFuture, BuiltinTool, Caller, Sink, ToolCx, ToolSource};
