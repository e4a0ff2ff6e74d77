//! Errors of tool calls.

use engine::{ToolCall, ToolOutcome, ToolPayload};

/// The model reads the text, so each error says what to do differently.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("unsupported call: {0}")]
    UnknownFunction(String),
    #[error("unsupported custom tool call: {0}")]
    UnknownCustom(String),
    #[error("failed to parse function arguments: {0}")]
    BadArguments(#[from] serde_json::Error),
    /// Called with free text although it takes JSON.
    #[error("{0} takes a JSON object that fits its parameters, not free text")]
    NotJson(&'static str),
    /// Not allowed in the current state.
    #[error("{0}")]
    Refused(String),
    /// Tried and failed.
    #[error("{0}")]
    Failed(String),
}

impl ToolError {
    pub(crate) fn unknown(call: &ToolCall) -> Self {
        match call.payload {
            ToolPayload::Function { .. } | ToolPayload::Search { .. } => {
                Self::UnknownFunction(call.name.clone())
            }
            ToolPayload::Custom { .. } => Self::UnknownCustom(call.name.clone()),
        }
    }
}

/// The model gets every error as the result of its call.
impl From<ToolError> for ToolOutcome {
    fn from(error: ToolError) -> Self {
        Self::failure(error.to_string())
    }
}
