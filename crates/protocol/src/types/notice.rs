//! Notices: errors, warnings and deprecations for the client, and feedback the other way.

use super::prelude::*;

/// Saves feedback as a folder on the server's machine, without credentials. Fails where config forbids it.
#[wire(omit_null)]
pub struct FeedbackUploadParams {
    /// The kind of feedback.
    pub classification: String,
    /// The user's text.
    pub reason: Option<String>,
    /// The thread it is about.
    pub thread_id: Option<ThreadId>,
    pub include_logs: bool,
    /// Paths of more files to put in, at most 16. Only with `includeLogs`.
    pub extra_log_files: Option<Vec<String>>,
}

#[wire(omit_null)]
pub struct FeedbackUploadResponse {
    /// The id the feedback is filed under.
    pub thread_id: ThreadId,
    /// The folder that holds it.
    pub path: Option<String>,
}

/// Sent when something goes wrong in a turn.
#[wire]
pub struct ErrorNotification {
    pub error: TurnError,
    /// True when the server tries again and the turn goes on. False when the turn fails; `turn/completed`
    /// repeats the error.
    pub will_retry: bool,
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
}

/// Sent when something in use will go away.
#[wire]
pub struct DeprecationNoticeNotification {
    pub summary: String,
    /// Advice on how to handle it.
    pub details: Option<String>,
}

/// A place in a text file. Both count from 1.
#[wire]
pub struct TextPosition {
    pub line: u64,
    pub column: u64,
}

/// A piece of a text file.
#[wire]
pub struct TextRange {
    pub start: TextPosition,
    pub end: TextPosition,
}

/// Sent to a connection right after `initialize`, once for each thing that is wrong with the configuration.
#[wire]
pub struct ConfigWarningNotification {
    pub summary: String,
    pub details: Option<String>,
    /// The file in question.
    #[omit]
    pub path: Option<String>,
    /// The place in that file.
    #[omit]
    pub range: Option<TextRange>,
}
