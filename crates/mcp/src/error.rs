//! Why a server gave no result.

use std::time::Duration;

/// The model and the user read the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The server answered with an error.
    #[error("{message} (code {code})")]
    Refused { code: i64, message: String },
    #[error("timed out after {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The connection has ended.
    #[error("{0}")]
    Ended(String),
    #[error("the server sent a message larger than {} MiB, which was dropped", .0 / (1024 * 1024))]
    TooLarge(usize),
    /// The response does not fit the request.
    #[error("the server's answer cannot be used: {0}")]
    Unusable(String),
}
