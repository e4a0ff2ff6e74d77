//! The server over real pipes and sockets, with handlers of the tests' own.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod app;
mod client;
mod delivery;
mod ending;
mod fuzz;
mod handshake;
mod hostile;
mod lines;
mod order;
mod questions;
mod unix;
mod websocket;
