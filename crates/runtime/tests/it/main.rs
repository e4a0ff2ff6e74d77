//! Tests of threads and the runtime through their public interface.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod describe_prompt;
mod environments;
mod hanging_disk;
mod replay;
mod starting_tools;
mod support;
mod thread;
mod thread_stage;
