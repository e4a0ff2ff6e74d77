//! Methods of the host, one function per method or group of methods.

mod fork;
mod operations;
mod placements;
mod retention;
mod tasks;
mod threads;
mod turns;
mod usage;

pub(crate) use threads::new_task;
pub use threads::{JoinReply, ResumeManner, ThreadPageOfHost};
