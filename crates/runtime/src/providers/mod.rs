//! The providers of models, and the identity under which they are asked.

mod account_transport;
pub(crate) mod bridge;
pub(crate) mod conversations;
pub(crate) mod directory;
pub(crate) mod identity;
pub(crate) mod logins;
mod token_command;
