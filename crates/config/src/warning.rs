//! Problems of the configuration that do not prevent use.

use std::path::PathBuf;

use protocol::{ConfigWarningNotification, DeprecationNoticeNotification, TextRange};

/// A message for the user, with its position if known.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingWarning {
    pub summary: String,
    pub details: Option<String>,
    /// The file in question.
    pub path: Option<PathBuf>,
    /// The place in that file.
    pub range: Option<TextRange>,
}

impl SettingWarning {
    pub(crate) fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), details: None, path: None, range: None }
    }

    pub(crate) fn with_details(summary: impl Into<String>, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..Self::new(summary) }
    }
}

impl From<SettingWarning> for ConfigWarningNotification {
    fn from(warning: SettingWarning) -> Self {
        Self {
            summary: warning.summary,
            details: warning.details,
            path: warning.path.map(|path| path.to_string_lossy().into_owned()),
            range: warning.range,
        }
    }
}

/// A deprecated form of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecation {
    pub summary: String,
    /// How to replace it.
    pub details: String,
}

impl From<Deprecation> for DeprecationNoticeNotification {
    fn from(deprecation: Deprecation) -> Self {
        Self { summary: deprecation.summary, details: Some(deprecation.details) }
    }
}
