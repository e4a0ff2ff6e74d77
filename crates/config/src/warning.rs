//! What is wrong with the configuration without stopping the work.

use std::path::PathBuf;

use protocol::{ConfigWarningNotification, TextRange};

/// One thing to tell the user, with its place where it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigWarning {
    pub summary: String,
    pub details: Option<String>,
    /// The file in question.
    pub path: Option<PathBuf>,
    /// The place in that file.
    pub range: Option<TextRange>,
}

impl ConfigWarning {
    pub(crate) fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), details: None, path: None, range: None }
    }

    pub(crate) fn with_details(summary: impl Into<String>, details: impl Into<String>) -> Self {
        Self { details: Some(details.into()), ..Self::new(summary) }
    }
}

impl From<ConfigWarning> for ConfigWarningNotification {
    fn from(warning: ConfigWarning) -> Self {
        Self {
            summary: warning.summary,
            details: warning.details,
            path: warning.path.map(|path| path.to_string_lossy().into_owned()),
            range: warning.range,
        }
    }
}
