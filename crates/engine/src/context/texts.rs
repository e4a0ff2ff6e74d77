//! Fragments that are one text each.

use protocol::{CollaborationMode, ModeKind, Personality};

use super::{Fragment, Role};

/// The developer's own words, as they are.
pub(crate) struct DeveloperInstructions<'a>(pub(crate) &'a str);

impl Fragment for DeveloperInstructions<'_> {
    const ROLE: Role = Role::Developer;
    fn body(&self) -> String {
        self.0.to_owned()
    }
}

/// How a plan is worked out with the user before anything is changed.
const PLAN_MODE: &str = include_str!("plan_mode.md");

/// How to work in the chosen mode.
pub(crate) struct CollaborationText<'a>(&'a str);

impl<'a> CollaborationText<'a> {
    /// A mode without text leaves the earlier text valid.
    pub(crate) fn of(mode: Option<&'a CollaborationMode>) -> Option<Self> {
        let mode = mode?;
        let built_in = match mode.mode {
            ModeKind::Plan => PLAN_MODE,
            ModeKind::Default => "",
        };
        let text = mode.settings.developer_instructions.as_deref().unwrap_or(built_in);
        (!text.is_empty()).then_some(Self(text))
    }
}

impl Fragment for CollaborationText<'_> {
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<collaboration_mode>";
    const END: &'static str = "</collaboration_mode>";
    fn body(&self) -> String {
        self.0.to_owned()
    }
}

/// The thread goes on with another model, whose instructions differ.
pub(crate) struct ModelSwitch<'a> {
    pub(crate) instructions: &'a str,
}

impl Fragment for ModelSwitch<'_> {
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

/// How to sound.
pub(crate) struct PersonalityText(pub(crate) Personality);

impl Fragment for PersonalityText {
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

/// What the AGENTS.md files say.
pub(crate) struct ProjectInstructions<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) text: &'a str,
}

impl Fragment for ProjectInstructions<'_> {
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "# AGENTS.md instructions for ";
    const END: &'static str = "</INSTRUCTIONS>";
    fn body(&self) -> String {
        format!("{}\n\n<INSTRUCTIONS>\n{}\n", self.cwd, self.text)
    }
}

/// The user stopped the turn before this one.
pub(crate) struct TurnAborted;

impl Fragment for TurnAborted {
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<turn_aborted>";
    const END: &'static str = "</turn_aborted>";
    fn body(&self) -> String {
        "\nThe user stopped the previous turn on purpose. Commands and tools it had begun may have done part of their work, \
         and terminals it opened may still be running: look before you repeat anything.\n"
            .to_owned()
    }
}

/// A command of the user's own, with what it gave.
pub(crate) struct UserShellCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) result: &'a str,
}

impl Fragment for UserShellCommand<'_> {
    const ROLE: Role = Role::ContextualUser;
    const START: &'static str = "<user_shell_command>";
    const END: &'static str = "</user_shell_command>";
    fn body(&self) -> String {
        format!("\n<command>\n{}\n</command>\n<result>\n{}\n</result>\n", self.command, self.result)
    }
}

/// The user allowed commands that begin like this for good.
pub(crate) struct SavedPrefix<'a>(pub(crate) &'a [String]);

impl Fragment for SavedPrefix<'_> {
    const ROLE: Role = Role::Developer;
    fn body(&self) -> String {
        let words: Vec<_> =
            self.0.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
        format!("Approved command prefix saved:\n- [{}]", words.join(", "))
    }
}
