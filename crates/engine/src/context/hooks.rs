//! Output of the user's hooks for the model.

use protocol::{ContentItem, HookPromptFragment, ResponseItem};

use super::fragment::message;
use super::neutral::contained;
use super::{Fragment, Role};

/// Context from a hook for the model.
pub(crate) struct HookContext<'a>(pub(crate) &'a str);

impl Fragment for HookContext<'_> {
    const NAME: &'static str = "hook context";
    const ROLE: Role = Role::Developer;

    fn body(&self) -> String {
        contained(self.0)
    }
}

/// A hook's prompt that continues the turn instead of ending it.
pub(crate) struct HookPrompt<'a>(&'a HookPromptFragment);

impl Fragment for HookPrompt<'_> {
    const NAME: &'static str = "hook prompt";
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<hook_prompt";
    const END: &'static str = "</hook_prompt>";

    fn body(&self) -> String {
        let id = self.0.hook_run_id.replace('&', "&amp;").replace('"', "&quot;").replace(['<', '>'], "");
        format!(" hook_run_id=\"{id}\">{}", contained(&self.0.text))
    }
}

/// One message with the prompts of all hooks that continue the turn.
pub(crate) fn hook_prompt(fragments: &[HookPromptFragment]) -> ResponseItem {
    let parts = fragments.iter().map(|part| ContentItem::InputText { text: HookPrompt(part).render() });
    message(HookPrompt::ROLE.word(), parts.collect())
}
