//! A thread's goal: what it is to reach and what it may spend on the way.

use super::prelude::*;

/// A thread's goal and what went into it so far.
#[wire]
pub struct ThreadGoal {
    pub thread_id: ThreadId,
    /// The objective, as a text for the agent.
    pub objective: String,
    pub status: ThreadGoalStatus,
    /// Null for no limit.
    pub token_budget: Option<i64>,
    pub tokens_used: i64,
    pub time_used_seconds: i64,
    /// Unix seconds.
    pub created_at: i64,
    /// Unix seconds.
    pub updated_at: i64,
}

/// The status of the goal.
#[wire]
pub enum ThreadGoalStatus {
    /// It is being worked on.
    Active,
    /// It was put aside.
    Paused,
    /// The agent cannot continue without help.
    Blocked,
    /// The account's usage limit stopped it.
    UsageLimited,
    /// `tokenBudget` is spent.
    BudgetLimited,
    /// It is reached.
    Complete,
}

/// Who changed the goal.
#[wire]
pub enum ThreadGoalMutationOrigin {
    /// The user asked for it.
    User,
    /// It happened by itself.
    Automatic,
}

/// Sets a goal or changes the one there is. An unset field keeps its value.
#[wire(omit_null)]
pub struct ThreadGoalSetParams {
    pub thread_id: ThreadId,
    pub origin: Option<ThreadGoalMutationOrigin>,
    pub objective: Option<String>,
    pub status: Option<ThreadGoalStatus>,
    /// Missing keeps the budget, null removes it.
    pub token_budget: TriState<i64>,
}

#[wire]
pub struct ThreadGoalSetResponse {
    pub goal: ThreadGoal,
}

/// Reads the goal.
#[wire]
pub struct ThreadGoalGetParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct ThreadGoalGetResponse {
    /// Null when there is none.
    pub goal: Option<ThreadGoal>,
}

/// Removes the goal.
#[wire(omit_null)]
pub struct ThreadGoalClearParams {
    pub thread_id: ThreadId,
    pub origin: Option<ThreadGoalMutationOrigin>,
}

#[wire]
pub struct ThreadGoalClearResponse {
    /// Whether there was a goal to remove.
    pub cleared: bool,
}

/// Sent when a goal is set or changes.
#[wire]
pub struct ThreadGoalUpdatedNotification {
    pub thread_id: ThreadId,
    /// The turn in which it changed; null outside any turn.
    pub turn_id: Option<TurnId>,
    pub goal: ThreadGoal,
}

/// Sent when a goal is removed.
#[wire]
pub struct ThreadGoalClearedNotification {
    pub thread_id: ThreadId,
}
