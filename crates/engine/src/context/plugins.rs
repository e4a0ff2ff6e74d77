//! Plugins: the list of all, and the contents of those the user mentions.

use super::neutral::{contained, value};
use super::{Fragment, Role, StepFragment};
use crate::digest::Digest;
use crate::{PluginLine, PluginText, Step};

const ABOUT: &str =
    "A plugin is a bundle of skills, MCP servers and apps for one field of work. These are installed:";

const USE: &str = "What a plugin brings is part of what you have: its skills are called after it, as `plugin:skill`, and the \
    tools of its servers say whose they are. When the user names a plugin, prefer what it brings for that task.";

/// The list of installed plugins.
pub(crate) struct PluginRoster<'a>(&'a [PluginLine]);

impl Fragment for PluginRoster<'_> {
    const NAME: &'static str = "plugins";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<plugins_instructions>";
    const END: &'static str = "</plugins_instructions>";

    fn body(&self) -> String {
        if self.0.is_empty() {
            return "\nNo plugins are installed any more.\n".to_owned();
        }
        let mut text = format!("\n## Plugins\n{ABOUT}\n");
        for PluginLine { name, description } in self.0 {
            let line = if description.is_empty() { name.clone() } else { format!("{name}: {description}") };
            text.push_str(&format!("- {}\n", contained(&line.replace(['\n', '\r'], " "))));
        }
        text.push_str(USE);
        text.push('\n');
        text
    }
}

impl<'a> StepFragment<'a> for PluginRoster<'a> {
    /// Unset if there are none.
    type State = Option<Digest>;

    fn state(step: &Step) -> Self::State {
        (!step.plugins.is_empty()).then(|| Digest::of(&*step.plugins))
    }

    fn full(step: &'a Step) -> Option<Self> {
        (!step.plugins.is_empty()).then_some(Self(&step.plugins))
    }

    fn changed(before: &Self::State, step: &'a Step) -> Option<Self> {
        let is_other = *before != Self::state(step);
        is_other.then_some(Self(&step.plugins))
    }
}

/// The contents of a plugin that the user mentioned.
pub(crate) struct PluginHint<'a>(pub(crate) &'a PluginText);

impl Fragment for PluginHint<'_> {
    const NAME: &'static str = "plugin";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<plugin>";
    const END: &'static str = "</plugin>";

    fn body(&self) -> String {
        let PluginText { name, has_skills, servers, apps } = self.0;
        let mut text = format!("\nThe user asks for the plugin `{0}`.", value(name));
        if *has_skills {
            text.push_str(&format!(" Its skills begin with `{}:`.", value(name)));
        }
        for (kind, names) in [("MCP servers", servers), ("apps", apps)] {
            if !names.is_empty() {
                let names = Vec::from_iter(names.iter().map(|name| format!("`{}`", value(name))));
                text.push_str(&format!(" Its {kind}: {}.", names.join(", ")));
            }
        }
        text.push_str(" Use what it brings where it fits the task.\n");
        text
    }
}
