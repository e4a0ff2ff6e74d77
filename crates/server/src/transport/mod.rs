//! How bytes come and go: standard input and output, websockets, Unix sockets.

mod admission;
mod listen;
mod metered;
mod newcomers;
mod stdio;
mod unix;

pub use access::{AuthError, AuthFlags, TokenHolder, WsAuth, WsAuthMode};
pub(crate) use admission::{Admission, Gatekeeper, StatusPage, UpgradeAnswer};
pub use listen::{Listen, ListenError};
pub(crate) use metered::{Allowance, Metered};
pub use newcomers::{Newcomer, Newcomers};
pub(crate) use stdio::Stdin;
pub(crate) use unix::{UnixClient, UnixPort};
