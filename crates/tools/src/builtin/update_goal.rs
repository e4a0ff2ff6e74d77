//! `update_goal`: reports that the thread's goal is reached, or that it is blocked.

use engine::ToolOutcome;
use protocol::ThreadGoalStatus;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

// No doc comments on the types: the model would read them as well.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// `complete` when every part of the goal is reached and checked, `blocked` when nothing can be done without help.
    #[schemars(with = "String")]
    status: ReportedStatus,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReportedStatus {
    Complete,
    Blocked,
}

/// Offered while the thread's goal is active. All other changes of a goal are up to the user.
#[derive(Debug, Clone, Copy)]
pub struct UpdateGoal;

impl BuiltinTool for UpdateGoal {
    const NAME: &'static str = "update_goal";
    const ABOUT: &'static str = "Say that this thread's goal is reached, or that you cannot go on without help. Either \
        ends the work on it, so check first. Running out of budget or time is neither.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.has_goal)
    }

    async fn call(&self, args: Args, _: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let (status, text) = match args.status {
            ReportedStatus::Complete => {
                (ThreadGoalStatus::Complete, "The goal is marked as reached. Tell the user what was done.")
            }
            ReportedStatus::Blocked => {
                (ThreadGoalStatus::Blocked, "The goal is marked as blocked. Tell the user what you need.")
            }
        };
        Ok(ToolOutcome { goal: Some(status), ..ToolOutcome::text(text) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Registry;
    use crate::testing::{call, run, step};

    #[expect(clippy::needless_pass_by_value, reason = "the callers read better")]
    fn check(arguments: Value, expected: Option<ThreadGoalStatus>) {
        let (outcome, _) = run(call(UpdateGoal::NAME, &arguments.to_string()), step());
        assert_eq!((outcome.goal, outcome.success), (expected, expected.is_some()), "{arguments}");
    }

    #[test]
    fn a_goal_is_reached_or_blocked_and_nothing_else() {
        check(json!({"status": "complete"}), Some(ThreadGoalStatus::Complete));
        check(json!({"status": "blocked"}), Some(ThreadGoalStatus::Blocked));
        check(json!({"status": "active"}), None);
        check(json!({}), None);
    }

    #[test]
    fn it_is_offered_while_there_is_a_goal() {
        for has_goal in [false, true] {
            let offer = Offer { has_goal, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            assert_eq!(specs.iter().any(|spec| spec.name == UpdateGoal::NAME), has_goal);
        }
    }
}
