//! The instructions of developers and AGENTS.md files.

use super::neutral::{contained, value};
use super::{Fragment, Role, StepFragment};
use crate::Step;
use crate::digest::Digest;

/// The developer's instructions, unchanged.
pub(crate) struct DeveloperInstructions<'a>(pub(crate) &'a str);

impl Fragment for DeveloperInstructions<'_> {
    const NAME: &'static str = "developer instructions";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        self.0.to_owned()
    }
}

/// Notes from earlier threads. Sent once, at the start of a thread.
pub(crate) struct MemoryGuidance<'a>(pub(crate) &'a str);

impl Fragment for MemoryGuidance<'_> {
    const NAME: &'static str = "memories";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        contained(self.0)
    }
}

/// The text of the AGENTS.md files.
pub(crate) struct ProjectInstructions<'a> {
    cwd: &'a str,
    text: &'a str,
}

/// Sent when earlier instructions no longer apply.
const GONE: &str = "There are no instructions for this folder any more; those given earlier no longer hold.";

impl Fragment for ProjectInstructions<'_> {
    const NAME: &'static str = "AGENTS.md";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "# AGENTS.md instructions for ";
    const END: &'static str = "</INSTRUCTIONS>";

    fn body(&self) -> String {
        format!("{}\n\n<INSTRUCTIONS>\n{}\n", value(self.cwd), contained(self.text))
    }
}

impl<'a> StepFragment<'a> for ProjectInstructions<'a> {
    type State = Option<Digest>;

    fn state(step: &Step) -> Option<Digest> {
        step.project_instructions.as_deref().map(Digest::of)
    }

    fn full(step: &'a Step) -> Option<Self> {
        step.project_instructions.as_deref().map(|text| Self { cwd: &step.cwd, text })
    }

    fn changed(before: &Option<Digest>, step: &'a Step) -> Option<Self> {
        match (before, Self::state(step)) {
            (before, now) if *before == now => None,
            (Some(_), None) => Some(Self { cwd: &step.cwd, text: GONE }),
            _ => Self::full(step),
        }
    }
}
