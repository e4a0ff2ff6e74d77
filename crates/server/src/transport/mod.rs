//! How bytes come and go: standard input and output, websockets, Unix sockets.

mod admission;
mod auth;
mod jwt;
mod listen;
mod metered;
mod newcomers;
mod origin;
mod proc_net;
mod stdio;
mod unix;
mod websocket;

pub use auth::{AuthError, AuthFlags, AuthMode, WsAuth};
pub use listen::{Listen, ListenError};
pub use newcomers::{Newcomer, Newcomers};
pub(crate) use stdio::Stdin;
pub(crate) use unix::{UnixClient, UnixPort};
pub(crate) use websocket::{Entrance, WsPort, serve_stream};
