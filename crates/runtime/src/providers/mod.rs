//! Model providers, and the credentials for their requests.

mod account_transport;
pub(crate) mod bridge;
pub(crate) mod conversations;
pub(crate) mod directory;
pub(crate) mod identity;
pub(crate) mod logins;
mod token_command;
