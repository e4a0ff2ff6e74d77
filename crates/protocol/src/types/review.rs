//! Reviews of changes by the agent.

use super::prelude::*;

/// Where a review runs.
#[wire]
pub enum ReviewDelivery {
    /// As a turn of the thread.
    Inline,
    /// In a new thread with a copy of the history.
    Detached,
}

/// The target of a review.
#[wire(tag = "type")]
pub enum ReviewTarget {
    /// Staged, unstaged and untracked files.
    UncommittedChanges,
    /// The changes since the branch.
    BaseBranch { branch: String },
    /// One commit.
    Commit {
        sha: String,
        /// Its subject, for display.
        title: Option<String>,
    },
    /// Whatever the instructions say.
    Custom { instructions: String },
}

/// Starts a review. An inline one interrupts the turn that runs.
#[wire(omit_null)]
pub struct ReviewStartParams {
    pub thread_id: ThreadId,
    pub target: ReviewTarget,
    /// `inline` when unset.
    pub delivery: Option<ReviewDelivery>,
}

#[wire]
pub struct ReviewStartResponse {
    /// Contains one user message that describes the subject of the review.
    pub turn: Turn,
    /// The thread itself, or the new one of a detached review.
    pub review_thread_id: ThreadId,
}
