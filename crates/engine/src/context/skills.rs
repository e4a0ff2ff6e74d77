//! Skills: the list of all, and the text of those the user mentions.

use super::neutral::{contained, value};
use super::{Fragment, Role, StepFragment};
use crate::digest::Digest;
use crate::{SkillLine, SkillText, Step};

const ABOUT: &str = "A skill is a folder of written know-how for one kind of task. These are at hand:";

const USE: &str = "How to use them:\n\
    - When the user names a skill as `$name`, or the task is plainly what its description is about, open its file before \
    you begin and follow it. Read only as much of it, and of the files it points to, as the task needs.\n\
    - Paths in a skill are relative to its folder. Where it brings scripts, templates or data, use them rather than \
    making your own.\n\
    - A skill holds for the turn it was asked for in, not for later ones. When several fit, take the fewest that cover \
    the task and say which. When one cannot be read, say so and go on without it.";

/// The list of available skills.
pub(crate) struct SkillList<'a>(&'a [SkillLine]);

impl Fragment for SkillList<'_> {
    const NAME: &'static str = "skills";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<skills_instructions>";
    const END: &'static str = "</skills_instructions>";

    fn body(&self) -> String {
        if self.0.is_empty() {
            return "\nNo skills are at hand any more.\n".to_owned();
        }
        let mut text = format!("\n## Skills\n{ABOUT}\n");
        for SkillLine { name, description, path } in self.0 {
            let line = format!("{name}: {description} (file: {path})");
            text.push_str(&format!("- {}\n", contained(&line.replace(['\n', '\r'], " "))));
        }
        text.push_str(USE);
        text.push('\n');
        text
    }
}

impl<'a> StepFragment<'a> for SkillList<'a> {
    /// Unset if there are none.
    type State = Option<Digest>;

    fn state(step: &Step) -> Self::State {
        (!step.skills.is_empty()).then(|| Digest::of(&*step.skills))
    }

    fn full(step: &'a Step) -> Option<Self> {
        (!step.skills.is_empty()).then_some(Self(&step.skills))
    }

    fn changed(before: &Self::State, step: &'a Step) -> Option<Self> {
        let is_other = *before != Self::state(step);
        is_other.then_some(Self(&step.skills))
    }
}

/// The text of a skill that the user mentioned.
pub(crate) struct SkillBody<'a>(pub(crate) &'a SkillText);

impl Fragment for SkillBody<'_> {
    const NAME: &'static str = "skill";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<skill>";
    const END: &'static str = "</skill>";

    fn body(&self) -> String {
        let SkillText { name, path, text } = self.0;
        let (name, path, text) = (value(name), value(path), contained(text));
        format!("\n<name>{name}</name>\n<path>{path}</path>\n{text}\n")
    }
}
