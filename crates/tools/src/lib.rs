//! Owns the built-in tools, one file each with spec, prompt section, handler and tests, and the registry of them.
//! Must not know who asked, nor how calls are scheduled.

mod error;
mod registry;
mod schema;
mod tool;
mod update_plan;

#[cfg(test)]
mod testing;

pub use error::ToolError;
pub use registry::{Offer, Registry};
pub use tool::{BoxFuture, Caller, Sink, Tool, ToolCx};
pub use update_plan::UpdatePlan;
