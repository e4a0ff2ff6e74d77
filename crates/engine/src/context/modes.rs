//! The model's working mode and personality, and the switch to another model.

use protocol::{CollaborationMode, ModeKind, Personality};
use serde::{Deserialize, Serialize};

use super::{Fragment, Role, StepFragment};
use crate::Step;

/// Instructions to work out a plan with the user before any change.
const PLAN_MODE: &str = include_str!("plan_mode.md");
/// Instructions for normal work. Without them, another mode's instructions would stay in force.
const DEFAULT_MODE: &str = include_str!("default_mode.md");

/// Instructions of the chosen mode.
pub(crate) struct CollaborationText<'a>(&'a str);

impl Fragment for CollaborationText<'_> {
    const NAME: &'static str = "collaboration mode";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<collaboration_mode>";
    const END: &'static str = "</collaboration_mode>";

    fn body(&self) -> String {
        self.0.to_owned()
    }
}

impl<'a> StepFragment<'a> for CollaborationText<'a> {
    type State = Option<CollaborationMode>;

    fn state(step: &Step) -> Self::State {
        step.collaboration_mode.clone()
    }

    /// A mode without text leaves the earlier text in force.
    fn full(step: &'a Step) -> Option<Self> {
        let mode = step.collaboration_mode.as_ref()?;
        let built_in = match mode.mode {
            ModeKind::Plan => PLAN_MODE,
            ModeKind::Default => DEFAULT_MODE,
        };
        let text = mode.settings.developer_instructions.as_deref().unwrap_or(built_in);
        (!text.is_empty()).then_some(Self(text))
    }
}

/// The thread continues with another model, whose instructions differ.
pub(crate) struct ModelSwitch<'a> {
    instructions: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelState {
    model: String,
}

impl Fragment for ModelSwitch<'_> {
    const NAME: &'static str = "model switch";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<model_switch>";
    const END: &'static str = "</model_switch>";

    fn body(&self) -> String {
        format!(
            "\nAnother model worked on this thread before you. Go on from where it stopped, by these instructions:\n\n{}\n",
            self.instructions
        )
    }
}

impl<'a> StepFragment<'a> for ModelSwitch<'a> {
    type State = ModelState;

    fn state(step: &Step) -> ModelState {
        ModelState { model: step.model.slug.clone() }
    }

    /// There is no switch for the first model.
    fn full(_: &'a Step) -> Option<Self> {
        None
    }

    fn changed(before: &ModelState, step: &'a Step) -> Option<Self> {
        let is_other = *before != Self::state(step);
        is_other.then_some(Self { instructions: &step.base_instructions })
    }
}

/// The personality.
pub(crate) struct PersonalityText(Personality);

impl Fragment for PersonalityText {
    const NAME: &'static str = "personality";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<personality_spec>";
    const END: &'static str = "</personality_spec>";

    fn body(&self) -> String {
        let text = match self.0 {
            Personality::None => "Use a neutral tone from now on.",
            Personality::Friendly => "From now on be warm and encouraging, and explain as you go.",
            Personality::Pragmatic => "From now on be brief and to the point.",
        };
        format!(" {text} ")
    }
}

impl<'a> StepFragment<'a> for PersonalityText {
    type State = Option<Personality>;

    fn state(step: &Step) -> Self::State {
        step.personality
    }

    fn full(step: &'a Step) -> Option<Self> {
        step.personality
            .filter(|personality| !step.personality_is_baked && *personality != Personality::None)
            .map(Self)
    }

    fn changed(before: &Self::State, step: &'a Step) -> Option<Self> {
        let is_other = *before != step.personality;
        step.personality.filter(|_| is_other).map(Self)
    }
}
