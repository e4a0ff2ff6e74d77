//! Tests of the policy crate, one module per subject.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod actions;
mod bash;
mod bypass;
mod commands;
mod danger;
mod display;
mod git;
mod matrix;
mod rules;
mod safe;
mod session;
mod support;
mod trust;

/// A command line in the form of the exec tool.
fn shell(script: &str) -> Vec<String> {
    words(&["/bin/bash", "-lc", script])
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
