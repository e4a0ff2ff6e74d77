//! Methods of the host, one function per method or group of methods.

mod audit;
mod fork;
mod operations;
mod placed;
mod placements;
mod records;
mod retention;
mod streams;
mod tasks;
mod threads;
mod turns;
mod usage;

pub use threads::{JoinReply, ResumeManner, ThreadPageOfHost};
pub(crate) use threads::{new_task, not_started};
