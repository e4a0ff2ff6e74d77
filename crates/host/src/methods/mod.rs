//! Methods of the host, one function per method or group of methods.

mod fork;
mod operations;
mod placements;
mod tasks;
mod threads;
mod turns;

pub use threads::{JoinReply, ThreadPageOfHost};
