//! Owns peers that follow a script, for tests and measurements alone: a host that carries model requests over JSON-RPC.
//! Must not know how a server works, only what it says.
#![allow(clippy::expect_used, reason = "a peer of a test panics where the test must fail")]

mod host;
mod outgoing;
mod script;

pub use host::{Counts, Refused, ScriptedHost};
pub use script::{Answer, Ending, Manners, text_response};
