//! The run: every measure on every server, repetitions interleaved so that a busy machine is busy for all.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::command::ServerCommand;
use crate::measures::{Ability, Measure, Subject};
use crate::metrics::Metric;
use crate::mock::Mock;
use crate::options::Options;
use crate::proc;
use crate::session::Bench;
use crate::stats::{Summary, summarise};
use crate::workload::Workload;

/// Everything a run brought.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) servers: Vec<ServerResults>,
    /// The measurements of the engine this program is built with.
    pub(crate) engine: ServerResults,
    pub(crate) failures: Vec<Failure>,
    pub(crate) workload: Workload,
}

#[derive(Debug)]
pub(crate) struct ServerResults {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) user_agent: String,
    pub(crate) executable: PathBuf,
    /// Whether it agrees to full delegation.
    pub(crate) delegates: bool,
    /// Whether it asks models by Chat and Messages, too. Found out only where a measure needs it.
    pub(crate) speaks_all_wires: bool,
    /// By the key of the metric.
    pub(crate) samples: HashMap<&'static str, Vec<f64>>,
}

/// A repetition that did not do its work and so gave no samples.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) server: String,
    pub(crate) measure: String,
    pub(crate) repetition: usize,
    pub(crate) message: String,
}

impl ServerResults {
    /// The engine inside this program, in the place of a server.
    pub(crate) fn engine() -> Self {
        Self {
            name: "engine".to_owned(),
            command: String::new(),
            user_agent: String::new(),
            executable: PathBuf::new(),
            delegates: false,
            speaks_all_wires: false,
            samples: HashMap::new(),
        }
    }

    pub(crate) fn has(&self, ability: Ability) -> bool {
        match ability {
            Ability::Delegation => self.delegates,
            Ability::AllWires => self.speaks_all_wires,
        }
    }

    pub(crate) fn samples(&self, metric: &Metric) -> &[f64] {
        self.samples.get(metric.key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn summary(&self, metric: &Metric) -> Option<Summary> {
        summarise(self.samples(metric), metric.better)
    }

    /// The version in the user agent: `name/VERSION (system) …`.
    pub(crate) fn version(&self) -> &str {
        let after = self.user_agent.split_once('/').map_or("", |(_, after)| after);
        after.split_ascii_whitespace().next().unwrap_or_default()
    }
}

pub(crate) fn run(options: &Options) -> Result<Results> {
    let mock = Mock::start()?;
    let bench = Bench {
        mock: &mock,
        work: &options.work,
        workload: Workload::scaled(options.scale),
        chunk: options.chunk,
        quiet: Duration::from_millis(options.quiet),
        timeout: Duration::from_secs(options.timeout),
    };
    let engine = ServerResults::engine();
    let mut results = Results { servers: Vec::new(), engine, failures: Vec::new(), workload: bench.workload };
    let mut subjects = Vec::new();
    for command in &options.servers {
        // One that cannot even start would fail every measure, so the run ends here.
        let (mut subject, mut server) =
            look_at(&bench, command).with_context(|| format!("server {}", command.name))?;
        if options.measures().iter().any(|measure| measure.needs() == Some(Ability::AllWires)) {
            subject.speaks_all_wires = crate::measures::speaks_all_wires(&bench, command);
            server.speaks_all_wires = subject.speaks_all_wires;
        }
        subjects.push(subject);
        results.servers.push(server);
    }
    for measure in options.measures() {
        let repetitions = measure.repetitions(options.reps);
        for repetition in 0..repetitions {
            if measure.is_in_process() {
                let outcome = crate::measures::prompt::run(&bench.workload);
                let note = results.note(None, measure, repetition, outcome);
                eprintln!("{} {}/{repetitions}: {note}", measure.name(), repetition + 1);
                continue;
            }
            for index in order(subjects.len(), repetition) {
                let subject = &mut subjects[index];
                if let Some(ability) = measure.needs().filter(|ability| !subject.has(*ability)) {
                    if repetition == 0 {
                        eprintln!("{} {}: {}", measure.name(), subject.command.name, ability.absence());
                    }
                    continue;
                }
                let begun = Instant::now();
                let outcome = measure.run(&bench, subject);
                let note = results.note(Some(index), measure, repetition, outcome);
                let (name, number) = (&subject.command.name, repetition + 1);
                let seconds = begun.elapsed().as_secs_f64();
                eprintln!("{} {number}/{repetitions} {name}: {note} ({seconds:.1} s)", measure.name());
            }
        }
    }
    Ok(results)
}

/// There and back again, so that no server is always the one that runs first.
fn order(servers: usize, repetition: usize) -> Vec<usize> {
    let forth = 0..servers;
    if repetition.is_multiple_of(2) { forth.collect() } else { forth.rev().collect() }
}

fn look_at<'run>(bench: &Bench<'_>, command: &'run ServerCommand) -> Result<(Subject<'run>, ServerResults)> {
    let home = bench.home()?;
    let session = bench.start_with(command, &home, &crate::hosting::capabilities())?;
    let (executable, delegates) = (proc::executable(session.client.pid())?, session.delegates);
    let server = ServerResults {
        name: command.name.clone(),
        command: command.line.clone(),
        user_agent: session.user_agent.clone(),
        executable: executable.path,
        delegates,
        speaks_all_wires: false,
        samples: HashMap::new(),
    };
    session.client.close();
    let binary_mb = executable.bytes as f64 / 1e6;
    let subject = Subject { command, store: None, binary_mb, delegates, speaks_all_wires: false };
    Ok((subject, server))
}

impl Results {
    /// Files the samples or the failure, of a server or of the engine; says in a word which.
    fn note(
        &mut self,
        server: Option<usize>,
        measure: Measure,
        repetition: usize,
        outcome: Result<Vec<crate::metrics::Sample>>,
    ) -> String {
        let server = match server {
            Some(index) => &mut self.servers[index],
            None => &mut self.engine,
        };
        match outcome {
            Ok(samples) => {
                for sample in samples {
                    server.samples.entry(sample.metric.key).or_default().push(sample.value);
                }
                "done".to_owned()
            }
            Err(error) => {
                let message = format!("{error:#}");
                let failure = Failure {
                    server: server.name.clone(),
                    measure: measure.name(),
                    repetition,
                    message: message.clone(),
                };
                self.failures.push(failure);
                format!("FAILED: {message}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_repetition_goes_backwards() {
        assert_eq!(order(3, 0), [0, 1, 2]);
        assert_eq!(order(3, 1), [2, 1, 0]);
    }

    #[test]
    fn the_version_is_read_from_the_user_agent() {
        let mut server = ServerResults {
            name: String::new(),
            command: String::new(),
            user_agent: "bench/0.117.0 (Debian 12; x86_64) unknown (bench; 1)".to_owned(),
            executable: PathBuf::new(),
            delegates: false,
            speaks_all_wires: false,
            samples: HashMap::new(),
        };
        assert_eq!(server.version(), "0.117.0");
        server.user_agent = "strange".to_owned();
        assert_eq!(server.version(), "");
    }
}
