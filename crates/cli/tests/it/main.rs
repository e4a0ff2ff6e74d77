//! The binary as people and programs meet it: its words, its files and its exit codes.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod commands;
mod debug;
mod demo;
mod exec;
mod failures;
mod policy;
mod recorder;
mod requests;
mod resume;
mod safety;
mod sandbox;
mod strange;
mod support;
mod work;
