//! Logins to servers by OAuth 2.1: finding the authorization server, registration, PKCE, the way back over a port of this
//! machine, tokens that are stored and renewed.

mod access;
mod address;
mod challenge;
mod discovery;
mod error;
mod fetch;
mod login;
mod redirect;
mod store;
mod tokens;
mod url;

pub(crate) use access::ServerAccess;
pub(crate) use challenge::Challenge;
pub use error::LoginError;
pub(crate) use login::has_token;
pub use login::{BegunLogin, LoginOptions, McpLogins};
