//! The crate from outside: against raw sockets on the loopback interface, and the offline model in a loop of fake tools.

// A helper that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod http;
mod offline;
mod refusals;
mod script;
mod secrets;
mod serve;
mod support;
mod tls;
mod translator;
/// The checks that vendors make, as the mock servers of the test kit make them.
#[path = "../../../testkit/src/vendor_rules.rs"]
mod vendor;
mod wires;
