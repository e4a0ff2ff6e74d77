//! Owns the app-server: transports, connections, subscriptions, routes and one handler per method. Must not know how
//! turns work.

mod app;
mod handlers;
mod handshake;
mod hub;
mod lanes;
mod listener;
mod options;
mod reply;
mod router;
mod routes;
mod serve;
mod server;
mod session;
mod signals;
mod transport;
mod user_agent;
mod wire_error;

pub use app::{App, Application};
pub use hub::{AskError, Caller, ConnectionId, Hub, HubAudience, Leave, Target};
pub use listener::Listener;
pub use options::ServerOptions;
pub use reply::Reply;
pub use router::Router;
pub use routes::routes;
pub use serve::{ExitReason, Pipes, ServeError, serve, serve_listener, serve_pipes};
pub use signals::Signals;
pub use transport::{AuthError, AuthFlags, AuthMode, Listen, ListenError, Newcomer, Newcomers, WsAuth};
pub use user_agent::PROTOCOL_LEVEL;
pub use wire_error::WireError;
