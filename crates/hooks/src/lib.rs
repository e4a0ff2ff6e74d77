//! Owns hooks: commands of the user's at points of a turn, from their files to what they decide. Must not know threads,
//! turns as states or the wire beyond its types: a caller says what happened and hears what came of it.

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
pub use set::{FinishedHook, HookTeller, decide};
