//! Child agents, for their parent's model.

use super::neutral::{contained, contained_json};
use super::{Fragment, Role};
use crate::{Step, SubagentLine};

/// The list of open child agents.
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
                Some(nickname) => text.push_str(&format!("- {id}: {}\n", contained(nickname))),
                None => text.push_str(&format!("- {id}\n")),
            }
        }
        text
    }
}

impl<'a> SubagentRoster<'a> {
    /// For a model without earlier context. Later changes come from the tools that open and close agents.
    pub(crate) fn of(step: &'a Step) -> Option<Self> {
        (!step.subagents.is_empty()).then_some(Self(&step.subagents))
    }
}

/// A child agent ended or stopped.
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
        let told = serde_json::json!({ "agent_path": self.id, "status": self.status });
        format!("\n{}\n", contained_json(&told.to_string()))
    }
}
