//! Child agents, as their parent hears of them.

use super::{Fragment, Role, StepFragment};
use crate::digest::Digest;
use crate::{Step, SubagentLine};

/// Which child agents are open.
pub(crate) struct SubagentRoster<'a>(&'a [SubagentLine]);

impl Fragment for SubagentRoster<'_> {
    const NAME: &'static str = "sub-agents";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<subagents>";
    const END: &'static str = "</subagents>";

    fn body(&self) -> String {
        let mut text = String::from("\n");
        for SubagentLine { id, nickname } in self.0 {
            match nickname {
                Some(nickname) => text.push_str(&format!("- {id}: {nickname}\n")),
                None => text.push_str(&format!("- {id}\n")),
            }
        }
        if self.0.is_empty() {
            text.push_str("No child agent is open.\n");
        }
        text
    }
}

impl<'a> StepFragment<'a> for SubagentRoster<'a> {
    /// Unset for none.
    type State = Option<Digest>;

    fn state(step: &Step) -> Self::State {
        (!step.subagents.is_empty()).then(|| Digest::of(&*step.subagents))
    }

    fn full(step: &'a Step) -> Option<Self> {
        (!step.subagents.is_empty()).then_some(Self(&step.subagents))
    }

    fn changed(before: &Self::State, step: &'a Step) -> Option<Self> {
        let is_other = *before != Self::state(step);
        is_other.then_some(Self(&step.subagents))
    }
}

/// A child agent came to an end, or to a halt.
pub(crate) struct SubagentNotification<'a> {
    pub(crate) id: &'a str,
    pub(crate) status: &'a serde_json::Value,
}

impl Fragment for SubagentNotification<'_> {
    const NAME: &'static str = "sub-agent notification";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<subagent_notification>";
    const END: &'static str = "</subagent_notification>";

    fn body(&self) -> String {
        format!("\n{}\n", serde_json::json!({ "agent_path": self.id, "status": self.status }))
    }
}
