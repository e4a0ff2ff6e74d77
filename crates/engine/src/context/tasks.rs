//! Fragments about work that the user's message did not start: goals and reviews.

use protocol::ThreadGoal;

use super::neutral::contained_in;
use super::{Fragment, Role};

/// The task of a turn that was started for the thread's goal.
pub(crate) struct GoalContext<'a>(pub(crate) &'a ThreadGoal);

impl Fragment for GoalContext<'_> {
    const NAME: &'static str = "goal";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<goal_context>";
    const END: &'static str = "</goal_context>";

    fn body(&self) -> String {
        let ThreadGoal { objective, token_budget, tokens_used, time_used_seconds, .. } = self.0;
        let objective = contained_in(&["goal_context", "objective"], objective);
        let left = match token_budget {
            Some(budget) => format!("{tokens_used} of {budget} tokens"),
            None => format!("{tokens_used} tokens, without a limit"),
        };
        format!(
            "\nThis thread has a goal. Nobody typed this message: you are asked to go on by yourself until the goal is \
             reached.\n<objective>\n{objective}\n</objective>\nUsed so far: {left}, {time_used_seconds} seconds.\nWork \
             on the next step that brings the goal closer; do not repeat what is done. Before you call it reached, check \
             every part of the objective against the files, commands and outputs as they are now: what you meant to do \
             is no proof. When all of it holds, call update_goal with status `complete`. When nothing can be done without \
             help, call it with status `blocked` and say what you need.\n"
        )
    }
}

/// The goal's budget is used up while a turn works on it.
pub(crate) struct GoalBudgetSpent<'a>(pub(crate) &'a ThreadGoal);

impl Fragment for GoalBudgetSpent<'_> {
    const NAME: &'static str = "goal budget";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<goal_budget>";
    const END: &'static str = "</goal_budget>";

    fn body(&self) -> String {
        let ThreadGoal { tokens_used, token_budget, .. } = self.0;
        let budget = token_budget.unwrap_or_default();
        format!(
            "\nThe token budget of the goal is spent ({tokens_used} of {budget}). Begin nothing new: say in a few words \
             what is done, what is left and what comes next, and end this turn.\n"
        )
    }
}

/// The result of a review that the user requested.
pub(crate) struct ReviewOutcome<'a> {
    pub(crate) hint: &'a str,
    /// Unset if the review was stopped.
    pub(crate) result: Option<&'a str>,
}

impl Fragment for ReviewOutcome<'_> {
    const NAME: &'static str = "review outcome";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<user_action>";
    const END: &'static str = "</user_action>";

    fn body(&self) -> String {
        let inside = |text: &str| contained_in(&["user_action", "action", "results", "context"], text);
        let hint = inside(self.hint);
        let (context, results) = match self.result {
            Some(result) => (
                "The user had a separate reviewer look at this and may refer to its findings from here on.",
                inside(result),
            ),
            None => ("The user began a review and it was stopped before it had a result.", "none".to_owned()),
        };
        format!(
            "\n<context>{context} Reviewed: {hint}</context>\n<action>review</action>\n<results>\n{results}\n</results>\n"
        )
    }
}
