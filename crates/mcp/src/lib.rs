//! Owns connections to MCP servers: their tools as a `ToolSource`, their resources, questions and logins. Must not know
//! turns, nor the clients.

mod answer;
mod approval;
mod call;
mod descriptions;
mod error;
mod http_wire;
mod inbound;
mod names;
mod oauth;
mod peer;
mod required;
mod resources;
mod schema;
mod server;
mod services;
mod source;
mod status;
mod stdio;
mod tool;
mod wire;

pub use error::McpError;
pub use inbound::McpHost;
pub use oauth::{BegunLogin, LoginError, LoginOptions, McpLogins};
pub use required::{MissingServers, RequiredServers};
pub use services::McpServices;
pub use source::McpSource;
pub use status::server_statuses;
