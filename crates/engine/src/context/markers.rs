//! How context under the user's role is distinguished from user messages, in histories without that information.

use protocol::{ContentItem, ResponseItem};

use super::{
    CollaborationText, Environment, Fragment, FragmentText, GoalBudgetSpent, GoalContext, HookPrompt,
    ModelSwitch, PermissionInstructions, PersonalityText, PluginHint, PluginRoster, ProjectInstructions,
    ReviewOutcome, Role, RuntimeWarning, SavedImage, SavedPrefix, SkillBody, SkillList, SubagentNotification,
    SubagentRoster, TurnAborted, UserShellCommand,
};
use crate::compaction::SUMMARY_PREFIX;
use crate::history::is_user_turn;

/// A fragment's name, start marker and end marker.
type FragmentMarker = (&'static str, &'static str, &'static str);

const fn marker<F: Fragment>() -> FragmentMarker {
    (F::NAME, F::START, F::END)
}

/// All contextual-user fragments, past and present.
const CONTEXTUAL_USER: &[FragmentMarker] = &[
    marker::<ProjectInstructions<'_>>(),
    marker::<Environment<'_>>(),
    marker::<SkillBody<'_>>(),
    marker::<UserShellCommand<'_>>(),
    marker::<TurnAborted>(),
    marker::<RuntimeWarning<'_>>(),
    marker::<GoalContext<'_>>(),
    marker::<GoalBudgetSpent<'_>>(),
    marker::<ReviewOutcome<'_>>(),
    ("summary", SUMMARY_PREFIX, ""),
    ("sub-agent notification", "<subagent_notification>", "</subagent_notification>"),
    marker::<HookPrompt<'_>>(),
];

/// Developer fragments with markers. Their role already marks them as context, so these only give names.
const DEVELOPER: &[FragmentMarker] = &[
    marker::<PermissionInstructions<'_>>(),
    marker::<CollaborationText<'_>>(),
    marker::<ModelSwitch<'_>>(),
    marker::<PersonalityText>(),
    marker::<SkillList<'_>>(),
    marker::<PluginRoster<'_>>(),
    marker::<PluginHint<'_>>(),
    marker::<SubagentRoster<'_>>(),
    marker::<SubagentNotification<'_>>(),
    (SavedPrefix::NAME, "Approved command prefix saved:", ""),
    (SavedImage::NAME, "The image was saved to", ""),
];

fn known(markers: &[FragmentMarker], text: &str) -> Option<&'static str> {
    let marked = |(_, start, end): &&FragmentMarker| begins(text, start) && ends(text, end);
    markers.iter().find(marked).map(|(name, ..)| *name)
}

/// The fragments in a message of the history; none if it is not context.
pub fn fragments_of(item: &ResponseItem) -> Vec<FragmentText> {
    let ResponseItem::Message { role, content, .. } = item else { return Vec::new() };
    let (markers, role, other) = match role.as_str() {
        "developer" => (DEVELOPER, Role::Developer, "developer text"),
        "user" if !is_user_turn(item) => (CONTEXTUAL_USER, Role::ContextualUser, "additional context"),
        _ => return Vec::new(),
    };
    let texts = content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } => Some(text),
        _ => None,
    });
    let named = |text: &String| FragmentText {
        name: known(markers, text.trim()).unwrap_or(other),
        role: role.word(),
        text: text.clone(),
    };
    texts.map(named).collect()
}

/// Whether the markers say that a program wrote this.
pub(crate) fn looks_contextual(content: &[ContentItem]) -> bool {
    content.iter().any(|part| match part {
        ContentItem::InputText { text } => {
            let text = text.trim();
            known(CONTEXTUAL_USER, text).is_some() || is_external(text)
        }
        _ => false,
    })
}

fn begins(text: &str, start: &str) -> bool {
    text.as_bytes().get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

fn ends(text: &str, end: &str) -> bool {
    let at = text.len().checked_sub(end.len());
    at.is_some_and(|at| text.as_bytes()[at..].eq_ignore_ascii_case(end.as_bytes()))
}

/// `<external_KEY>…</external_KEY>`, with the same key at both ends.
fn is_external(text: &str) -> bool {
    const START: &str = "<external_";
    if !begins(text, START) {
        return false;
    }
    let key = text[START.len()..].split_once('>').map(|(key, _)| key);
    key.is_some_and(|key| ends(text, &format!("</external_{key}>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_distinguish_context_from_user_messages() {
        for (text, contextual) in [
            ("<environment_context>\n</environment_context>", true),
            ("  <TURN_ABORTED>x</TURN_ABORTED> ", true),
            ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nhi\n</INSTRUCTIONS>", true),
            ("<external_browser>x</external_browser>", true),
            ("<EXTERNAL_browser>x</external_BROWSER>", true),
            ("<external_browser>x</external_other>", false),
            ("<external_", false),
            ("<environment_context> is a tag", false),
            ("Warning: the disk is full", false),
            ("<runtime_warning>Warning: x</runtime_warning>", true),
            ("hello", false),
            ("", false),
            ("é", false),
        ] {
            assert_eq!(
                looks_contextual(&[ContentItem::InputText { text: text.into() }]),
                contextual,
                "{text}"
            );
        }
    }
}
