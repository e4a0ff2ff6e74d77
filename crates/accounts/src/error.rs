//! Errors of a login. No message contains a token, a code or text of the issuer.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountLoginError {
    #[error("the login issuer cannot be reached: {0}. Check the network, then try again.")]
    Unreachable(String),
    #[error("the login issuer answered with status {0}. Try to log in again.")]
    Status(u16),
    #[error("the answer of the login issuer lacks {0}. Try to log in again.")]
    Incomplete(&'static str),
    #[error("the login was refused: {0}")]
    Refused(String),
    #[error("the port for the browser's return cannot be opened: {0}. End the other login, then try again.")]
    NoPort(String),
    #[error("Login timed out")]
    TimedOut,
    #[error("Your login has expired and cannot be renewed. Log in again.")]
    Expired,
    #[error("this system gives no random numbers")]
    NoRandomness,
}

impl AccountLoginError {
    /// Whether only a new login helps.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Expired)
    }
}
