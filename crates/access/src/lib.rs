//! Owns the question who may connect to a server: tokens and the files they are in, signed tokens, which process is behind
//! a local connection, and the challenge by which hosts know each other. Must not know transports, methods or threads.

mod auth;
mod challenge;
mod jwt;
pub mod origin;
mod proc_net;
mod tokens;

pub use auth::{AuthError, AuthFlags, WsAuth, WsAuthMode};
pub use challenge::{PeerCaller, PeerSecret, accept, connect};
pub use origin::{Origin, PortAudience};
pub use proc_net::foreign_server;
pub use tokens::TokenHolder;
