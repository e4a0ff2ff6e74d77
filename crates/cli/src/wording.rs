//! Errors and warnings as one line of text.

use protocol::{ConfigWarningNotification, TurnError};
use runtime::config::SettingWarning;

/// The message, with what lies behind it.
pub(crate) fn error_text(error: &TurnError) -> String {
    with_details(&error.message, error.additional_details.as_deref())
}

pub(crate) fn warning_text(warning: &SettingWarning) -> String {
    let ConfigWarningNotification { summary, details, .. } = warning.clone().into();
    with_details(&summary, details.as_deref())
}

pub(crate) fn with_details(message: &str, details: Option<&str>) -> String {
    match details.filter(|details| !details.trim().is_empty()) {
        Some(details) => format!("{message} ({details})"),
        None => message.to_owned(),
    }
}
