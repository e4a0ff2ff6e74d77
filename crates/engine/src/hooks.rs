//! The user's hooks as the engine sees them: when a turn waits for them, and their verdict.

use protocol::HookPromptFragment;

/// Points at which a turn waits for hooks.
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
    /// The user sent this prompt. It is not recorded yet.
    Prompt { text: String },
    /// The model finished its work.
    Stop {
        /// Hooks already continued this turn before.
        is_repeated: bool,
        last_message: Option<String>,
    },
}

/// The joint decision of all hooks of one occasion.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HookVerdict {
    /// Context for the model, in the order of the hooks.
    pub contexts: Vec<String>,
    pub decision: HookDecision,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub enum HookDecision {
    #[default]
    Proceed,
    /// Drops a prompt; continues a turn that would end, with these texts as prompt.
    Block(Vec<HookPromptFragment>),
    /// The turn ends.
    Stop,
}
