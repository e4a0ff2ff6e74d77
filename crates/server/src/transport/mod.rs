//! How bytes come and go: standard input and output, websockets, Unix sockets.

mod admission;
mod auth;
mod jwt;
mod listen;
mod stdio;
mod unix;
mod websocket;

pub use auth::{AuthError, AuthFlags, AuthMode, WsAuth};
pub use listen::{Listen, ListenError};
pub(crate) use stdio::Stdin;
pub(crate) use unix::UnixPort;
pub(crate) use websocket::{WsPort, serve_stream};
