//! Owns hooks: the user's commands at points of a turn, from their files to their decisions. Must not know threads,
//! turns as states or the wire beyond its types: a caller reports an event and gets the result.

mod definition;
mod judge;
mod list;
mod payload;
mod run;
mod set;

pub use definition::{Hook, HookSet};
pub use judge::{HookEnd, HookRunOutput, JudgedRun, judge};
pub use payload::{HookFacts, HookTrigger};
pub use run::HookSite;
pub use set::{FinishedHook, HookNotifier, decide};
