//! The state machine of a turn from outside: inputs in, effects out.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod assessment;
mod children;
mod context;
mod departure;
mod goal;
mod history;
mod hooks;
mod interleavings;
mod limits;
mod nested;
mod proposals;
mod resume;
mod review;
mod support;
mod turn;
