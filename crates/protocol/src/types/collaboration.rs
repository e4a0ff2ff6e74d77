//! Collaboration modes: planning together first, or doing the work at once.

use super::prelude::*;

/// A mode with its settings. Wins over `model` and `effort` of the same request.
#[wire]
pub struct CollaborationMode {
    pub mode: ModeKind,
    pub settings: Settings,
}

/// How the agent treats a prompt.
#[wire]
pub enum ModeKind {
    /// Work out a plan and propose it as a plan item; questions to the user are allowed.
    Plan,
    /// Do the work. Older clients have other names for it.
    #[serde(alias = "code", alias = "pair_programming", alias = "execute", alias = "custom")]
    Default,
}

/// The settings of a mode. Field names are snake_case.
#[wire(snake_case)]
pub struct Settings {
    pub model: String,
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Null uses the built-in text of the mode.
    pub developer_instructions: Option<String>,
}

/// Lists the built-in modes.
#[wire]
pub struct CollaborationModeListParams {}

/// A preset. Null leaves that choice as it is. Field names are snake_case.
#[wire(snake_case)]
pub struct CollaborationModeMask {
    /// For display.
    pub name: String,
    pub mode: Option<ModeKind>,
    pub model: Option<String>,
    pub reasoning_effort: Option<ReasoningEffort>,
}

#[wire]
pub struct CollaborationModeListResponse {
    pub data: Vec<CollaborationModeMask>,
}
