//! Hooks of the user's, as far as a turn knows them: when it waits for some, and what came of them.

use protocol::HookPromptFragment;

/// Points at which a turn waits for hooks. Without any it never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HookPoints {
    /// Before a prompt is recorded.
    pub prompt: bool,
    /// Before the turn ends.
    pub stop: bool,
}

/// Why hooks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOccasion {
    /// The user said this. It is not recorded yet.
    Prompt { text: String },
    /// The model is done.
    Stop {
        /// Hooks made it go on before in this turn.
        is_repeated: bool,
        last_message: Option<String>,
    },
}

/// The joint decision of all hooks of one occasion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookVerdict {
    /// For the model to know, in the order of the hooks.
    pub contexts: Vec<String>,
    pub decision: HookDecision,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum HookDecision {
    #[default]
    Proceed,
    /// A prompt is dropped; a turn that would end goes on with these texts.
    Block(Vec<HookPromptFragment>),
    /// The turn ends.
    Stop,
}
