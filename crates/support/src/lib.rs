//! Owns small pieces of code that several crates need: a responder that is called once, blocking work, reading
//! untrusted files, git addresses without logins, the clock, randomness for ids, and the kill points of tests. Must not
//! know anything of the product.

mod blocking;
mod clock;
mod entropy;
mod git_address;
mod kill_points;
mod plain_file;
mod responder;

pub use blocking::{Panicked, blocking, off_worker};
pub use clock::{Clock, SystemClock};
pub use entropy::entropy;
pub use git_address::GitAddress;
#[cfg(debug_assertions)]
pub use kill_points::reach_kill_point;
pub use plain_file::{PlainFile, read_plain};
pub use responder::Responder;
