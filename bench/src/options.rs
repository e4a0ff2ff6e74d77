//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::{Parser, ValueEnum};

use crate::command::ServerCommand;
use crate::measures::Measure;

/// Compare app-servers: the same work for each, repetitions interleaved, in one run.
///
/// The table goes to standard output, progress and failed samples to standard error.
#[derive(Debug, Parser)]
#[command(name = "oarlock-bench", version)]
pub(crate) struct Options {
    /// A server and the name it has in the report; `app-server` is added to the command.
    #[arg(long = "server", value_name = "NAME=COMMAND", required = true, value_parser = ServerCommand::parse)]
    pub(crate) servers: Vec<ServerCommand>,

    /// The server that the others are compared with; may be given more than once [default: the first].
    #[arg(long = "baseline", value_name = "NAME")]
    baselines: Vec<String>,

    /// How often each measure is repeated for each server.
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    pub(crate) reps: usize,

    /// Measure only these.
    #[arg(long, value_name = "NAME", value_enum, num_args = 1.., value_delimiter = ',')]
    only: Vec<Measure>,

    /// Divide the work by this, for a smoke run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) scale: usize,

    /// Frame streamed replies in HTTP chunks of this size [default: each reply in one].
    #[arg(long, value_name = "BYTES")]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Write the report with every sample to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Print which goals each server reaches against the baseline.
    #[arg(long)]
    pub(crate) goals: bool,

    /// Exit with 1 if a sample failed or, with --goals, a goal was missed.
    #[arg(long)]
    pub(crate) strict: bool,

    /// Run in a network namespace that has nothing but loopback. Needs `unshare` and `ip`.
    #[arg(long)]
    pub(crate) loopback: bool,

    /// Where homes and workspaces are made. Some servers behave differently under /tmp.
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    pub(crate) work: PathBuf,

    /// A server that has been silent for this long counts as being at rest.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 700)]
    pub(crate) quiet: u64,

    /// How long one answer or one turn may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) timeout: u64,
}

impl Options {
    /// Checks how the arguments fit together, which clap cannot.
    pub(crate) fn check(&self) -> Result<()> {
        for (index, server) in self.servers.iter().enumerate() {
            let earlier = &self.servers[..index];
            ensure!(
                earlier.iter().all(|other| other.name != server.name),
                "two servers are named {}",
                server.name
            );
        }
        for name in &self.baselines {
            if !self.servers.iter().any(|server| server.name == *name) {
                bail!("--baseline {name} is none of the servers");
            }
        }
        ensure!(self.reps > 0, "--reps must be at least 1");
        ensure!(self.scale > 0, "--scale must be at least 1");
        Ok(())
    }

    /// Positions of the baselines among the servers.
    pub(crate) fn baselines(&self) -> Vec<usize> {
        let is_baseline = |index: &usize| self.baselines.contains(&self.servers[*index].name);
        if self.baselines.is_empty() {
            vec![0]
        } else {
            (0..self.servers.len()).filter(is_baseline).collect()
        }
    }

    pub(crate) fn measures(&self) -> Vec<Measure> {
        let asked = |measure: &&Measure| self.only.is_empty() || self.only.contains(measure);
        Measure::value_variants().iter().filter(asked).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &str) -> Result<Options> {
        let words = ["oarlock-bench"].into_iter().chain(arguments.split_whitespace());
        let options = Options::try_parse_from(words)?;
        options.check()?;
        Ok(options)
    }

    #[test]
    fn the_first_server_is_the_baseline_unless_told() {
        let servers = "--server a=x --server b=y --server c=z";
        assert_eq!(parse(servers).expect("valid").baselines(), [0]);
        let two = parse(&format!("{servers} --baseline c --baseline b")).expect("valid");
        assert_eq!(two.baselines(), [1, 2]);
    }

    #[test]
    fn measures_keep_their_order_however_they_are_asked_for() {
        let options = parse("--server a=x --only turn initialize --only size").expect("valid");
        assert_eq!(options.measures(), [Measure::Initialize, Measure::Turn, Measure::Size]);
        assert_eq!(parse("--server a=x").expect("valid").measures().len(), 20);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for wrong in [
            "",
            "--server a",
            "--server a=x --server a=y",
            "--server a=x --baseline b",
            "--server a=x --reps 0",
            "--server a=x --scale 0",
            "--server a=x --chunk 0",
            "--server a=x --only nothing",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
