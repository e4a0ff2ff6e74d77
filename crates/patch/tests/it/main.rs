//! Patches from outside: how they are read, and what they do to files.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod command_lines;
mod edits;
mod effects;
mod fuzz;
mod grammar;
mod paths;
mod properties;
mod race;
