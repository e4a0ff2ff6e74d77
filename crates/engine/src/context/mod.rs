//! Text for the model that neither the user nor the model wrote: typed fragments, assembled by two builders. No other
//! code makes such messages.

mod additional;
mod environment;
mod fragment;
mod hooks;
mod instructions;
mod markers;
mod modes;
mod neutral;
mod permissions;
mod plugins;
mod records;
mod skills;
mod subagents;
mod tasks;

use protocol::{ContentItem, ItemId, ReasoningEffort, ResponseItem, TurnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Step;

pub(crate) use additional::AdditionalStore;
pub(crate) use environment::Environment;
pub use fragment::FragmentText;
pub(crate) use fragment::{Envelopes, Fragment, Role, StepFragment, alone};
pub(crate) use hooks::{HookContext, HookPrompt, hook_prompt};
pub(crate) use instructions::{DeveloperInstructions, MemoryGuidance, ProjectInstructions};
pub use markers::fragments_of;
pub(crate) use markers::looks_contextual;
pub(crate) use modes::{CollaborationText, ModelSwitch, PersonalityText};
pub(crate) use permissions::PermissionInstructions;
pub(crate) use plugins::{PluginHint, PluginRoster};
pub(crate) use records::{RuntimeWarning, SavedImage, SavedPrefix, TurnAborted, UserShellCommand};
pub(crate) use skills::{SkillBody, SkillList};
pub(crate) use subagents::{SubagentNotification, SubagentRoster};
pub(crate) use tasks::{GoalBudgetSpent, GoalContext, ReviewOutcome};

type StateOf<'a, F> = <F as StepFragment<'a>>::State;

/// The state that the last context was made from; stored with each turn, so that a later request sends only changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Baseline {
    #[serde(default)]
    effort: Option<ReasoningEffort>,
    #[serde(flatten)]
    model: StateOf<'static, ModelSwitch<'static>>,
    #[serde(flatten, deserialize_with = "protocol::from_members")]
    permissions: StateOf<'static, PermissionInstructions<'static>>,
    collaboration_mode: StateOf<'static, CollaborationText<'static>>,
    #[serde(default)]
    personality: StateOf<'static, PersonalityText>,
    #[serde(flatten)]
    environment: StateOf<'static, Environment<'static>>,
    #[serde(default)]
    project_instructions: StateOf<'static, ProjectInstructions<'static>>,
    #[serde(default)]
    skills: StateOf<'static, SkillList<'static>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plugins: StateOf<'static, PluginRoster<'static>>,
}

impl Baseline {
    pub(crate) fn of(step: &Step) -> Self {
        Self {
            effort: step.effort,
            model: ModelSwitch::state(step),
            permissions: PermissionInstructions::state(step),
            collaboration_mode: CollaborationText::state(step),
            personality: PersonalityText::state(step),
            environment: Environment::state(step),
            project_instructions: ProjectInstructions::state(step),
            skills: SkillList::state(step),
            plugins: PluginRoster::state(step),
        }
    }

    /// The model was notified of a prefix that was just approved.
    pub(crate) fn learn_prefix(&mut self, prefix: &[String]) {
        self.permissions.learn(prefix);
    }
}

/// The full context, for a model that has none yet.
pub(crate) fn initial(step: &Step) -> Envelopes {
    let mut envelopes = Envelopes::default();
    envelopes.full::<PermissionInstructions<'_>>(step);
    envelopes.push(step.developer_instructions.as_deref().map(DeveloperInstructions));
    envelopes.push(step.memories.as_deref().map(MemoryGuidance));
    envelopes.full::<CollaborationText<'_>>(step);
    envelopes.full::<PersonalityText>(step);
    envelopes.full::<SkillList<'_>>(step);
    envelopes.full::<PluginRoster<'_>>(step);
    envelopes.push(SubagentRoster::of(step));
    envelopes.full::<ProjectInstructions<'_>>(step);
    envelopes.full::<Environment<'_>>(step);
    envelopes
}

/// Changes since the baseline.
pub(crate) fn update(before: &Baseline, step: &Step) -> Envelopes {
    let mut envelopes = Envelopes::default();
    envelopes.changed::<ModelSwitch<'_>>(&before.model, step);
    envelopes.changed::<PermissionInstructions<'_>>(&before.permissions, step);
    envelopes.changed::<CollaborationText<'_>>(&before.collaboration_mode, step);
    // The other model's instructions include the personality.
    if before.model == ModelSwitch::state(step) {
        envelopes.changed::<PersonalityText>(&before.personality, step);
    }
    envelopes.changed::<SkillList<'_>>(&before.skills, step);
    envelopes.changed::<PluginRoster<'_>>(&before.plugins, step);
    envelopes.changed::<ProjectInstructions<'_>>(&before.project_instructions, step);
    envelopes.changed::<Environment<'_>>(&before.environment, step);
    envelopes
}

/// The fragments of the next request, given those of `before`.
pub fn describe(before: Option<&Value>, step: &Step) -> Vec<FragmentText> {
    let before = before.and_then(|before| Baseline::deserialize(before).ok());
    let envelopes = match &before {
        None => initial(step),
        Some(before) => update(before, step),
    };
    envelopes.into_fragments()
}

/// A child agent's status, for its parent's model. The child's last turn is for the record; requests leave it out.
pub fn subagent_notification(id: &str, turn_id: Option<&TurnId>, status: &Value) -> ResponseItem {
    let mut told = alone(&SubagentNotification { id, status });
    if let ResponseItem::Message { id, .. } = &mut told {
        *id = turn_id.map(ToString::to_string);
    }
    told
}

/// The marker of an interrupted turn.
pub fn turn_aborted() -> ResponseItem {
    alone(&TurnAborted { by_user: true })
}

/// Like [`turn_aborted`], for a process that stopped during the turn.
pub(crate) fn turn_cut_off() -> ResponseItem {
    alone(&TurnAborted { by_user: false })
}

/// An assistant message that did not come from the model's stream.
pub(crate) fn agent_message(text: String) -> ResponseItem {
    fragment::message("assistant", vec![ContentItem::OutputText { text }])
}

/// Instructions in their own message.
pub(crate) fn developer_message(text: &str) -> ResponseItem {
    fragment::message("developer", vec![ContentItem::InputText { text: text.to_owned() }])
}

/// A user message. One that could be mistaken for context carries its item's id, which identifies it as the user's,
/// also after a restart.
pub(crate) fn user_message(id: Option<&ItemId>, content: Vec<ContentItem>) -> ResponseItem {
    let id = id.filter(|_| looks_contextual(&content)).map(ToString::to_string);
    ResponseItem::Message { id, role: "user".to_owned(), content, end_turn: None, phase: None }
}
