//! Compares app-servers in one run: drives each with the same work, checks that the work was done, and reports
//! medians, tails and ratios. Knows the servers only by their command lines and their wire.

mod client;
mod command;
mod flood;
mod goals;
mod home;
mod host;
mod hosting;
mod loopback;
mod measures;
mod metrics;
mod mock;
mod options;
mod outgoing;
mod proc;
mod report;
mod run;
mod scan;
mod session;
mod sse;
mod stats;
mod store;
mod table;
mod workload;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::goals::{Outcome, Verdict};
use crate::options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    match compare(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("oarlock-bench: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// False if `--strict` has a reason to complain.
fn compare(options: &Options) -> Result<bool> {
    options.check()?;
    if options.loopback {
        loopback::enter()?;
    }
    if cfg!(debug_assertions) {
        eprintln!("note: this driver is a debug build; a fast server may wait for it");
    }
    let results = run::run(options)?;
    let baselines = options.baselines();
    let verdicts = options.goals.then(|| goals::judge(&results, &options.measures(), &baselines));
    // The file first: a closed standard output must not cost the samples of a long run.
    if let Some(path) = &options.json {
        let report = report::json(options, &results, verdicts.as_deref());
        std::fs::write(path, format!("{report:#}\n"))
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    print!("{}", report::table(&results, &baselines));
    if let Some(verdicts) = &verdicts {
        print!("\n{}", report::goals_table(verdicts));
    }
    for failure in &results.failures {
        let number = failure.repetition + 1;
        eprintln!("failed: {} {} #{number}: {}", failure.server, failure.measure, failure.message);
    }
    let missed = |verdict: &Verdict| verdict.outcome != Outcome::Pass;
    let flawless = results.failures.is_empty() && !verdicts.iter().flatten().any(missed);
    Ok(flawless || !options.strict)
}
