//! Owns the app-server and the face of the host: connections, subscriptions, routes and one handler per method. Must not know how
//! turns work.

mod app;
mod application;
mod handlers;
mod handshake;
mod host_face;
mod hub;
mod lanes;
mod listener;
mod metrics;
mod options;
mod peers;
mod reply;
mod roles;
mod router;
mod routes;
mod serve;
mod server;
mod session;
mod signals;
mod user_agent;
mod websocket;
mod wire_error;

pub use app::App;
pub use application::ServerApplication;
pub use host_face::{HostApp, HubClients, host_routes};
pub use hub::{AskError, AskTarget, ConnectionId, Hub, HubAudience, Leave, Requester};
pub use listener::ServerListener;
pub use metrics::MetricsText;
pub use options::ServerOptions;
pub use peers::{PEER_SCHEME, PeerPort, PeerSecret};
pub use reply::MethodReply;
pub use roles::ClientRole;
pub use router::Router;
pub use routes::routes;
pub use serve::{ExitReason, Pipes, open_listener, serve, serve_listener, serve_pipes};
pub use signals::StopSignals;
#[doc(hidden)]
pub use transport::fuzzing;
pub use transport::{
    AuthError, AuthFlags, Listen, ListenError, Newcomer, Newcomers, ServeError, TokenHolder, WsAuth,
    WsAuthMode,
};
pub use user_agent::PROTOCOL_LEVEL;
pub use wire_error::WireError;
