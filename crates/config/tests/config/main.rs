//! Configuration as its users see it: files and requests in, values out.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod credentials;
mod doubtful_keys;
mod errors;
mod home;
mod layers;
mod off_limits;
mod providers;
mod read;
mod requirements;
mod review;
mod roles;
mod skills;
mod support;
mod trust;
mod values;
mod write;
