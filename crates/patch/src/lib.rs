//! Owns patches: the grammar, matching, planning as a whole, applying with undo, and unified diffs. Must not know
//! threads or approvals.

mod applied;
mod boundary;
mod change;
mod commit;
#[cfg(test)]
mod commit_tests;
mod edit;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod git_section;
mod identity;
mod invocation;
mod job;
mod kernel;
mod limits;
mod names;
mod parse;
mod patch;
mod place;
mod plan;
mod plan_digest;
mod read;
mod resolve;
mod seek;
mod slot;
mod turn_diff;
mod unified;

pub use applied::{Applied, AppliedFile, FileState};
pub use boundary::Boundary;
pub use change::{ChangeKind, PlannedChange};
pub use error::{CommitError, HunkProblem, Lost, ParseError, PlanError, VerifyError};
pub use invocation::{IMPLICIT_REFUSAL, Invocation, invocation};
pub use limits::{MAX_FILE_BYTES, MAX_TOTAL_BYTES};
pub use names::shown;
pub use parse::parse;
pub use patch::{Hunk, Patch, PatchChunk, PatchLine};
pub use plan::{PatchPlan, plan, verify};
pub use turn_diff::TurnDiff;
