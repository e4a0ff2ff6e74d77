//! A thread's goal: its changes, its cost, and the turns that are started for it.

use protocol::{ThreadGoal, ThreadGoalStatus, ThreadId, TokenUsageBreakdown, TriState};

use crate::Refusal;

/// Consecutive goal turns without a tool call after which the goal is blocked. Without a limit, a model that only talks
/// would be started for ever.
pub(crate) const MAX_IDLE_TURNS: u32 = 5;

/// A requested change. Unset fields keep their value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GoalChange {
    pub objective: Option<String>,
    pub status: Option<ThreadGoalStatus>,
    pub token_budget: TriState<i64>,
}

impl GoalChange {
    /// The goal after this change. A new objective, or any change to a completed goal, starts a new goal.
    pub fn apply(
        self,
        thread_id: &ThreadId,
        before: Option<&ThreadGoal>,
        now_ms: i64,
    ) -> Result<ThreadGoal, Refusal> {
        let now = now_ms.div_euclid(1_000);
        let Self { objective, status, token_budget } = self;
        let kept = before.filter(|goal| {
            objective.as_ref().is_none_or(|objective| *objective == goal.objective && !is_reached(goal))
        });
        let mut goal = match (kept, objective) {
            (Some(goal), _) => goal.clone(),
            (None, Some(objective)) => ThreadGoal {
                thread_id: thread_id.clone(),
                objective,
                status: ThreadGoalStatus::Active,
                token_budget: None,
                tokens_used: 0,
                time_used_seconds: 0,
                created_at: now,
                updated_at: now,
            },
            (None, None) => return Err(Refusal::NoGoal),
        };
        goal.token_budget = token_budget.apply(goal.token_budget);
        goal.status = status.unwrap_or(goal.status);
        if goal.status == ThreadGoalStatus::Active && is_spent(&goal) {
            goal.status = ThreadGoalStatus::BudgetLimited;
        }
        goal.updated_at = now;
        Ok(goal)
    }
}

fn is_reached(goal: &ThreadGoal) -> bool {
    goal.status == ThreadGoalStatus::Complete
}

fn is_spent(goal: &ThreadGoal) -> bool {
    goal.token_budget.is_some_and(|budget| goal.tokens_used >= budget)
}

/// The goal of a loaded thread.
#[derive(Debug, Clone)]
pub(crate) struct Pursuit {
    pub(crate) goal: ThreadGoal,
    /// Consecutive turns without a tool call.
    pub(crate) idle_turns: u32,
    /// Time spent on it, including the fraction of a second that the goal does not show.
    used_ms: i64,
    /// Set while a turn works on it.
    since_ms: Option<i64>,
}

impl Pursuit {
    pub(crate) fn new(goal: ThreadGoal) -> Self {
        Self { used_ms: goal.time_used_seconds.saturating_mul(1_000), goal, idle_turns: 0, since_ms: None }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.goal.status == ThreadGoalStatus::Active
    }

    /// Starts counting time, unless it is running already.
    pub(crate) fn start_clock(&mut self, now_ms: i64) {
        self.since_ms.get_or_insert(now_ms);
    }

    /// Stops counting time. Returns whether it was running.
    pub(crate) fn stop_clock(&mut self, now_ms: i64) -> bool {
        let Some(since) = self.since_ms.take() else { return false };
        self.used_ms += (now_ms - since).max(0);
        self.goal.time_used_seconds = self.used_ms / 1_000;
        true
    }

    /// Adds the tokens of a response. Input that the provider had cached is not counted again.
    pub(crate) fn spend(&mut self, usage: &TokenUsageBreakdown, now_ms: i64) {
        let input = usage.input_tokens.saturating_sub(usage.cached_input_tokens).max(0);
        let spent = input.saturating_add(usage.output_tokens.max(0));
        self.goal.tokens_used = self.goal.tokens_used.saturating_add(spent);
        self.goal.updated_at = now_ms.div_euclid(1_000);
    }

    pub(crate) fn is_spent(&self) -> bool {
        is_spent(&self.goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(status: ThreadGoalStatus, used: i64, budget: Option<i64>) -> ThreadGoal {
        ThreadGoal {
            thread_id: ThreadId::new("t"),
            objective: "old".to_owned(),
            status,
            token_budget: budget,
            tokens_used: used,
            time_used_seconds: 3,
            created_at: 1,
            updated_at: 1,
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(before: Option<ThreadGoal>, change: GoalChange, expected: Result<(&str, &str, i64), Refusal>) {
        let after = change.apply(&ThreadId::new("t"), before.as_ref(), 9_000);
        let after = after.map(|goal| (goal.objective, format!("{:?}", goal.status), goal.tokens_used));
        let expected =
            expected.map(|(objective, status, used)| (objective.to_owned(), status.to_owned(), used));
        assert_eq!(after, expected);
    }

    fn objective(text: &str) -> GoalChange {
        GoalChange { objective: Some(text.to_owned()), ..GoalChange::default() }
    }

    #[test]
    fn a_change_keeps_the_goal_or_begins_another() {
        use ThreadGoalStatus::{Active, BudgetLimited, Complete, Paused};
        let status = |status| GoalChange { status: Some(status), ..GoalChange::default() };
        let budget = |budget| GoalChange { token_budget: TriState::Set(budget), ..status(Active) };
        check(None, GoalChange::default(), Err(Refusal::NoGoal));
        check(None, objective("new"), Ok(("new", "Active", 0)));
        check(Some(goal(Paused, 5, None)), objective("new"), Ok(("new", "Active", 0)));
        check(Some(goal(Paused, 5, None)), objective("old"), Ok(("old", "Paused", 5)));
        check(Some(goal(Complete, 5, None)), objective("old"), Ok(("old", "Active", 0)));
        check(Some(goal(Active, 5, None)), status(Paused), Ok(("old", "Paused", 5)));
        check(Some(goal(BudgetLimited, 5, Some(5))), status(Active), Ok(("old", "BudgetLimited", 5)));
        check(Some(goal(BudgetLimited, 5, Some(5))), budget(6), Ok(("old", "Active", 5)));
        check(Some(goal(Paused, 5, None)), budget(4), Ok(("old", "BudgetLimited", 5)));
    }

    /// A provider that counts without measure must not bring the count back to where there is room again.
    #[test]
    fn a_goal_stays_spent_whatever_is_counted() {
        let mut pursuit = Pursuit::new(goal(ThreadGoalStatus::Active, 5, Some(100)));
        for (input_tokens, cached_input_tokens, output_tokens) in
            [(i64::MAX, i64::MIN, i64::MAX), (i64::MIN, i64::MAX, i64::MIN), (i64::MAX, 0, i64::MAX)]
        {
            let usage = TokenUsageBreakdown {
                total_tokens: i64::MAX,
                input_tokens,
                cached_input_tokens,
                output_tokens,
                reasoning_output_tokens: 0,
                cache_write_input_tokens: None,
                is_estimated: false,
            };
            pursuit.spend(&usage, 2_000);
            assert_eq!((pursuit.goal.tokens_used, pursuit.is_spent()), (i64::MAX, true));
        }
    }

    #[test]
    fn time_and_tokens_add_up() {
        let mut pursuit = Pursuit::new(goal(ThreadGoalStatus::Active, 5, Some(100)));
        let usage = TokenUsageBreakdown {
            total_tokens: 120,
            input_tokens: 100,
            cached_input_tokens: 60,
            output_tokens: 20,
            reasoning_output_tokens: 10,
            cache_write_input_tokens: None,
            is_estimated: false,
        };
        pursuit.spend(&usage, 2_000);
        assert_eq!((pursuit.goal.tokens_used, pursuit.is_spent()), (65, false));
        pursuit.spend(&usage, 2_000);
        assert!(pursuit.is_spent());
        for (from, to) in [(0, 600), (1_000, 1_600), (2_000, 2_900)] {
            pursuit.start_clock(from);
            pursuit.start_clock(from + 100);
            pursuit.stop_clock(to);
            pursuit.stop_clock(to + 100);
        }
        assert_eq!(pursuit.goal.time_used_seconds, 5);
    }
}
