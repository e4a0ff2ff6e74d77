//! How bytes come and go: standard input and output, websockets, Unix sockets.

mod admission;
mod auth;
mod jwt;
mod listen;
mod metered;
mod newcomers;
pub(crate) mod origin;
mod proc_net;
mod stdio;
mod unix;

pub(crate) use admission::{Admission, Gatekeeper, UpgradeAnswer};
pub use auth::{AuthError, AuthFlags, WsAuth, WsAuthMode};
pub use listen::{Listen, ListenError};
pub(crate) use metered::{Allowance, Metered};
pub use newcomers::{Newcomer, Newcomers};
pub(crate) use origin::Origin;
pub(crate) use stdio::Stdin;
pub(crate) use unix::{UnixClient, UnixPort};
