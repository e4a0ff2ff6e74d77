//! Owns how clients connect: standard input and output, Unix sockets, the admission of websockets, and the pages of their port. Must not
//! know what is said over a connection.

mod admission;
#[doc(hidden)]
pub mod fuzzing;
pub mod http_pages;
mod listen;
mod metered;
mod newcomers;
mod serve_error;
mod stdio;
mod unix;

pub use access::{AuthError, AuthFlags, TokenHolder, WsAuth, WsAuthMode};
pub use admission::{Admission, Gatekeeper, StatusPage, UpgradeAnswer};
pub use listen::{Listen, ListenError};
pub use metered::{Allowance, Metered};
pub use newcomers::{Newcomer, Newcomers};
pub use serve_error::ServeError;
pub use stdio::Stdin;
pub use unix::{UnixClient, UnixPort};
