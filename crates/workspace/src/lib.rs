//! Owns the one reader: how a file is opened and read on behalf of a thread, so that nothing outside the project, outside
//! the readable roots or hidden is read, nothing blocks and nothing is read without a bound.
//! Must not know configuration, sandboxes or what the files are read for: callers hand in plain paths.

mod access;
mod error;
pub mod fuzzing;
mod list;
mod open;
mod reader;
mod within;

pub use access::Access;
pub use error::{Problem, ReadError};
pub use list::{Entry, Kind, Listing};
pub use reader::{Found, Opened, Reader};
pub use within::{READ_LIMIT, within};
