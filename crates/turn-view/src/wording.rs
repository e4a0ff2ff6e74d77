//! Errors and warnings as one line of text.

use protocol::{McpServerStartupState, McpServerStatusUpdatedNotification, TurnError};

/// The message, with what lies behind it.
pub fn error_text(error: &TurnError) -> String {
    with_details(&error.message, error.additional_details.as_deref())
}

pub fn with_details(message: &str, details: Option<&str>) -> String {
    match details.filter(|details| !details.trim().is_empty()) {
        Some(details) => format!("{message} ({details})"),
        None => message.to_owned(),
    }
}

/// A server whose tools are missing.
pub(crate) fn missing_server(told: &McpServerStatusUpdatedNotification) -> Option<String> {
    let has_failed = told.status == McpServerStartupState::Failed;
    let why = told.error.clone().filter(|why| !why.trim().is_empty());
    has_failed.then(|| why.unwrap_or_else(|| format!("the MCP server `{}` did not start", told.name)))
}
