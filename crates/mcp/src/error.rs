//! Why a server gave no result.

use std::time::Duration;

/// Its text is read by the model and by users, so each says what happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The server answered with an error.
    #[error("{message} (code {code})")]
    Refused { code: i64, message: String },
    #[error("timed out after {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection is over.
    #[error("{0}")]
    Ended(String),
    #[error("the server sent a message larger than {} MiB, which was dropped", .0 / (1024 * 1024))]
    TooLarge(usize),
    /// It answered with something that is not what was asked for.
    #[error("the server's answer cannot be used: {0}")]
    Unusable(String),
}
