//! Checks and generators of the workspace. `cargo xtask check` is the part of `scripts/test` that looks at the
//! tree instead of running it; each check is also a test, so `cargo test -p xtask` names the one that broke.

mod generated;
mod layers;
mod licences;
mod method_page;
mod rust_functions;
mod schema_score;
mod sizes;
mod words;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

/// What is wrong with the tree, a sentence each; nothing when all is well.
type Problems = Vec<String>;

type Check = fn() -> Result<Problems>;

/// Every check of the tree. A new one is a file, a line here and a test beside it.
const CHECKS: &[(&str, Check)] = &[
    ("layers", layers::check),
    ("generated files", generated::check),
    ("licences", licences::check),
    ("words", words::check),
    ("sizes", sizes::check),
];

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Checks and generators of the workspace.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the files that are derived from the protocol crate.
    Generate,
    /// Check the tree: layers, generated files, licences, words, sizes.
    Check,
    /// Print how many packages the binary needs, and the largest functions.
    Sizes,
    /// Compare exported JSON Schemas with a reference; fails on a difference docs/differences.md does not list.
    SchemaScore(schema_score::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Generate => generated::write(),
        Command::Check => check(),
        Command::Sizes => sizes::print(),
        Command::SchemaScore(options) => schema_score::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<()> {
    let mut broken = Vec::new();
    for (name, check) in CHECKS {
        let problems = check()?;
        println!("{name}: {}", if problems.is_empty() { "ok" } else { "broken" });
        for problem in &problems {
            println!("  {problem}");
        }
        if !problems.is_empty() {
            broken.push(*name);
        }
    }
    sizes::print()?;
    if !broken.is_empty() {
        bail!("broken: {}", broken.join(", "));
    }
    Ok(())
}
