//! The crate from outside: golden streams and requests, properties over generated conversations.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic"
)]

mod fuzz;
mod properties;
mod requests;
mod rules;
mod streams;
mod support;
/// The checks that vendors make, as the mock servers of the test kit make them.
#[path = "../../../testkit/src/vendor_rules.rs"]
mod vendor;
