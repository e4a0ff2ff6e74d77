//! Real commands, started like the server starts them.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod basics;
mod capture;
mod descriptors;
mod ending;
mod errors;
mod flood;
mod many;
mod support;
mod terminal;
