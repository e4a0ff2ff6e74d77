//! Why a login failed.

use std::time::Duration;

/// The user reads the text, so it says what happened and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    #[error("OAuth login is only supported for streamable HTTP servers.")]
    NotHttp,
    #[error(
        "the server has a token or an Authorization header in its configuration; take that out to log in"
    )]
    HasToken,
    #[error("the server's address is {0}, where a token could be read on its way; a login needs https")]
    Insecure(String),
    /// Neither its response nor its metadata names an authorization server.
    #[error("the server offers no login: {0}")]
    NotOffered(String),
    /// The server or its metadata names an address that is not allowed.
    #[error("the {subject} names {url}, {problem}")]
    Address { subject: &'static str, url: String, problem: &'static str },
    #[error("{url}: {problem}")]
    Metadata { url: String, problem: String },
    #[error("{url} did not register this program: {problem}")]
    Registration { url: String, problem: String },
    /// The authorization server refused, with this message.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    #[error("the page that the browser came back with is of another authorization server")]
    OtherIssuer,
    #[error("nobody logged in within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("another login to this server was started")]
    Replaced,
    #[error("too many logins are open; finish one of them first")]
    TooMany,
    #[error("timeoutSecs must be at least 1")]
    NoTime,
    #[error("no port to come back to can be opened: {0}")]
    Listener(String),
    #[error("the tokens could not be stored: {0}")]
    Store(String),
}
