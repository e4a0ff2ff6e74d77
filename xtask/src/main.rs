//! Checks and generators of the workspace. `cargo xtask check` is the part of `scripts/test` that looks at the
//! tree instead of running it; each check is also a test, so `cargo test -p xtask` names the one that broke.

mod book;
mod carried_out;
mod code_map;
mod crate_sizes;
mod error_codes;
mod folder_sizes;
mod generated;
mod known;
mod layers;
mod licences;
mod method_page;
mod module_cycles;
mod one_way;
mod picture;
mod recipes;
mod runtime_methods;
mod rust_functions;
mod rust_source;
mod schema_score;
mod sizes;
mod type_names;
mod wording;
mod words;
mod workspace;

use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

/// The problems of the tree, a sentence each; none when all is well.
type Problems = Vec<String>;

type Check = fn() -> Result<Problems>;

/// Every check of the tree. A new one is a file, a line here and a test beside it.
const CHECKS: &[(&str, Check)] = &[
    ("layers", layers::check),
    ("generated files", generated::check),
    ("licences", licences::check),
    ("words", words::check),
    ("sizes", sizes::check),
    ("type names", type_names::check),
    ("module cycles", module_cycles::check),
    ("methods of the runtime", runtime_methods::check),
    ("folders", folder_sizes::check),
    ("crates", crate_sizes::check),
    ("recipes", recipes::check),
    ("error codes", error_codes::check),
    ("book", book::check),
    ("one way", one_way::check),
];

/// The lists of what still breaks a rule, each with the function that takes out what no longer does.
const LISTS: &[fn() -> Result<()>] =
    &[type_names::shrink, module_cycles::shrink, runtime_methods::shrink, folder_sizes::shrink];

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
    /// Check the tree: layers, generated files, licences, words, sizes, names, modules, folders, crates, recipes, codes of
    /// errors, the book.
    Check,
    /// Take out of the lists in xtask/known what no longer breaks a rule. Nothing is ever added.
    Shrink,
    /// Print the type names that more than one type has, and where each is declared.
    TypeNames,
    /// Print the dependency cycles between the top modules of each crate, and the lines that make them.
    ModuleCycles,
    /// Print how many packages the binary needs, and the largest functions.
    Sizes,
    /// Print how many comments and names are not in plain words.
    Wording {
        /// Also print every place.
        #[arg(long)]
        places: bool,
    },
    /// Compare exported JSON Schemas with a reference; fails on a difference docs/differences.md does not list.
    SchemaScore(schema_score::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Generate => generated::write(),
        Command::Check => check(),
        Command::Shrink => LISTS.iter().try_for_each(|shrink| shrink()),
        Command::TypeNames => type_names::print(),
        Command::ModuleCycles => module_cycles::print(),
        Command::Sizes => sizes::text().map(|text| print!("{text}")),
        Command::Wording { places } => wording::print(places),
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

/// Runs all checks beside each other; most of them wait for cargo or read the same files.
fn check() -> Result<()> {
    let (results, sizes) = thread::scope(|scope| {
        let checks: Vec<_> = CHECKS.iter().map(|(_, check)| scope.spawn(check)).collect();
        let sizes = scope.spawn(sizes::text);
        (checks.into_iter().map(ended).collect::<Vec<_>>(), ended(sizes))
    });
    let mut broken = Vec::new();
    for ((name, _), problems) in CHECKS.iter().zip(results) {
        let problems = problems.with_context(|| format!("the check `{name}` could not run"))?;
        println!("{name}: {}", if problems.is_empty() { "ok" } else { "broken" });
        for problem in &problems {
            println!("  {problem}");
        }
        if !problems.is_empty() {
            broken.push(*name);
        }
    }
    print!("{}", sizes?);
    if !broken.is_empty() {
        bail!("broken: {}", broken.join(", "));
    }
    Ok(())
}

fn ended<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| bail!("it panicked"))
}
