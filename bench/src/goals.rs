//! The goals, and whether a server reaches them against a baseline.

use crate::measures::Measure;
use crate::metrics::{self, Metric};
use crate::run::{Results, ServerResults};
use crate::stats::times_better;

/// The condition on a metric's median.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    /// At least this many times better than the baseline.
    Times(f64),
    /// At least `times` better than a baseline of this version, `otherwise` times better than any other.
    TimesOfVersion { version: &'static str, times: f64, otherwise: f64 },
    /// Less than this, whatever the baseline.
    Under(f64),
    /// This much or more, whatever the baseline.
    AtLeast(f64),
    /// Every thread that is stored.
    EveryThread,
}

struct Goal {
    /// Without it, the goal is not spoken of.
    measure: Measure,
    metric: &'static Metric,
    rule: Rule,
}

const fn goal(measure: Measure, metric: &'static Metric, rule: Rule) -> Goal {
    Goal { measure, metric, rule }
}

static GOALS: &[Goal] = &[
    goal(Measure::Initialize, &metrics::INITIALIZE_FRESH, Rule::Times(10.0)),
    goal(Measure::Initialize, &metrics::INITIALIZE_USED, Rule::Times(10.0)),
    goal(Measure::Threads, &metrics::RSS_REST, Rule::Times(5.0)),
    goal(Measure::Threads, &metrics::RSS_THREADS, Rule::Times(5.0)),
    goal(Measure::Threads, &metrics::THREAD_START, Rule::Times(10.0)),
    goal(Measure::Turn, &metrics::TURN, Rule::Times(7.0)),
    goal(Measure::Exec, &metrics::EXEC, Rule::Times(6.0)),
    goal(Measure::SandboxedExec, &metrics::SANDBOXED_EXEC, Rule::Times(6.0)),
    goal(
        Measure::Stream,
        &metrics::STREAM_RATE,
        Rule::TimesOfVersion { version: "0.117.", times: 80.0, otherwise: 10.0 },
    ),
    // Per thread listed: a server that skips some does not get ahead by it.
    goal(Measure::List, &metrics::LIST_PER_100, Rule::Times(20.0)),
    goal(Measure::List, &metrics::LISTED, Rule::EveryThread),
    goal(Measure::Resume, &metrics::RESUME, Rule::Times(10.0)),
    goal(Measure::Concurrent, &metrics::CONCURRENT_WALL, Rule::Times(10.0)),
    goal(Measure::Output, &metrics::OUTPUT_GROWTH, Rule::Under(32.0)),
    goal(Measure::DelegatedTurn, &metrics::DELEGATED_TURN_RATIO, Rule::Under(1.5)),
    goal(Measure::DelegatedStream, &metrics::DELEGATED_RATE, Rule::AtLeast(100_000.0)),
    goal(Measure::DelegatedRecord, &metrics::RECORD_BARRIER, Rule::Under(1.0)),
    // 64 MB.
    goal(Measure::DelegatedUnread, &metrics::UNREAD_GROWTH, Rule::Under(61.0)),
    goal(Measure::DelegatedUnacknowledged, &metrics::UNACKNOWLEDGED_GROWTH, Rule::Under(61.0)),
    goal(Measure::WireTurn, &metrics::WIRE_TURN_EXTRA, Rule::Under(1.0)),
    goal(Measure::WireStream, &metrics::WIRE_STREAM_SHARE, Rule::AtLeast(0.8)),
    goal(Measure::LongThread, &metrics::LONG_THREAD_GROWTH, Rule::Under(1.0)),
    goal(Measure::Size, &metrics::BINARY, Rule::Under(20.0)),
    goal(Measure::Prompt, &metrics::PROMPT, Rule::Under(2.0)),
];

/// The target that a rule sets for one pair of servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    Times(f64),
    Under(f64),
    AtLeast(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pass,
    Fail,
    /// One of the two servers has no sample.
    NoData,
}

#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) candidate: String,
    pub(crate) baseline: String,
    pub(crate) metric: &'static Metric,
    pub(crate) target: Target,
    pub(crate) reached: Option<f64>,
    pub(crate) outcome: Outcome,
}

impl Rule {
    fn target(self, baseline_version: &str, stored: usize) -> Target {
        match self {
            Self::Times(times) => Target::Times(times),
            Self::TimesOfVersion { version, times, .. } if baseline_version.starts_with(version) => {
                Target::Times(times)
            }
            Self::TimesOfVersion { otherwise, .. } => Target::Times(otherwise),
            Self::Under(limit) => Target::Under(limit),
            Self::AtLeast(least) => Target::AtLeast(least),
            Self::EveryThread => Target::AtLeast(stored as f64),
        }
    }
}

impl Target {
    fn outcome(self, reached: Option<f64>) -> Outcome {
        let Some(reached) = reached else { return Outcome::NoData };
        let pass = match self {
            Self::Times(least) | Self::AtLeast(least) => reached >= least,
            Self::Under(limit) => reached < limit,
        };
        if pass { Outcome::Pass } else { Outcome::Fail }
    }
}

/// Every goal of these measures, for each server that is no baseline against each that is; then those of the engine.
/// A baseline with an ability that not every server has is judged as well: it is compared with nobody.
pub(crate) fn judge(results: &Results, measures: &[Measure], baselines: &[usize]) -> Vec<Verdict> {
    let asked = GOALS.iter().filter(|goal| measures.contains(&goal.measure));
    let (of_engine, goals): (Vec<&Goal>, Vec<&Goal>) = asked.partition(|goal| goal.measure.is_in_process());
    let (special, goals): (Vec<&Goal>, Vec<&Goal>) =
        goals.into_iter().partition(|goal| goal.measure.needs().is_some());
    let mut verdicts = Vec::new();
    for (index, candidate) in results.servers.iter().enumerate() {
        let is_baseline = baselines.contains(&index);
        let able = |goal: &&&Goal| !is_baseline || goal.measure.needs().is_some_and(|it| candidate.has(it));
        verdicts.extend(special.iter().filter(able).map(|goal| alone(results, goal, candidate)));
        if is_baseline {
            continue;
        }
        for baseline in baselines {
            let baseline = &results.servers[*baseline];
            verdicts.extend(goals.iter().map(|goal| verdict(results, goal, baseline, candidate)));
        }
    }
    verdicts.extend(of_engine.iter().map(|goal| alone(results, goal, &results.engine)));
    verdicts
}

/// Compared with nobody.
fn alone(results: &Results, goal: &Goal, candidate: &ServerResults) -> Verdict {
    Verdict { baseline: "-".to_owned(), ..verdict(results, goal, candidate, candidate) }
}

fn verdict(results: &Results, goal: &Goal, baseline: &ServerResults, candidate: &ServerResults) -> Verdict {
    let metric = goal.metric;
    let target = goal.rule.target(baseline.version(), results.workload.stored_in_all());
    let median = |server: &ServerResults| server.summary(metric).map(|summary| summary.median);
    let reached = match target {
        Target::Times(_) => median(baseline)
            .zip(median(candidate))
            .and_then(|(baseline, candidate)| times_better(baseline, candidate, metric.better)),
        Target::Under(_) | Target::AtLeast(_) => median(candidate),
    };
    let outcome = target.outcome(reached);
    let (candidate, baseline) = (candidate.name.clone(), baseline.name.clone());
    Verdict { candidate, baseline, metric, target, reached, outcome }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::workload::Workload;

    fn server(name: &str, version: &str, samples: &[(&'static Metric, f64)]) -> ServerResults {
        ServerResults {
            name: name.to_owned(),
            command: String::new(),
            user_agent: format!("bench/{version} (system)"),
            executable: "/server".into(),
            delegates: false,
            speaks_all_wires: false,
            samples: samples.iter().map(|(metric, value)| (metric.key, vec![*value])).collect(),
        }
    }

    fn outcome(baseline: ServerResults, candidate: ServerResults, metric: &Metric) -> (Outcome, Option<f64>) {
        let servers = vec![baseline, candidate];
        let results = Results {
            servers,
            engine: ServerResults::engine(),
            failures: Vec::new(),
            workload: Workload::scaled(1),
        };
        let verdicts = judge(&results, Measure::value_variants(), &[0]);
        assert_eq!(verdicts.len(), GOALS.len());
        let verdict =
            verdicts.iter().find(|verdict| verdict.metric == metric).expect("a goal of this metric");
        (verdict.outcome, verdict.reached)
    }

    fn check(metric: &'static Metric, baseline: (&str, f64), candidate: f64, expected: Outcome) {
        let (outcome, _) = outcome(
            server("ref", baseline.0, &[(metric, baseline.1)]),
            server("ours", "1.0.0", &[(metric, candidate)]),
            metric,
        );
        assert_eq!(outcome, expected, "{} {candidate}", metric.key);
    }

    #[test]
    fn a_time_must_fall_and_a_rate_must_rise() {
        check(&metrics::INITIALIZE_USED, ("0.117.0", 50.0), 5.0, Outcome::Pass);
        check(&metrics::INITIALIZE_USED, ("0.117.0", 50.0), 5.1, Outcome::Fail);
        check(&metrics::INITIALIZE_USED, ("0.117.0", 50.0), 500.0, Outcome::Fail);
        check(&metrics::RSS_REST, ("0.117.0", 50.0), 10.0, Outcome::Pass);
        check(&metrics::RSS_REST, ("0.117.0", 50.0), 11.0, Outcome::Fail);
    }

    #[test]
    fn the_goal_for_deltas_depends_on_the_version_of_the_baseline() {
        check(&metrics::STREAM_RATE, ("0.117.0", 2_000.0), 160_000.0, Outcome::Pass);
        check(&metrics::STREAM_RATE, ("0.117.0", 2_000.0), 159_000.0, Outcome::Fail);
        check(&metrics::STREAM_RATE, ("0.166.0", 17_000.0), 170_000.0, Outcome::Pass);
        check(&metrics::STREAM_RATE, ("0.166.0", 17_000.0), 160_000.0, Outcome::Fail);
    }

    #[test]
    fn size_growth_and_completeness_do_not_depend_on_the_baseline() {
        check(&metrics::BINARY, ("0.117.0", 1.0), 19.9, Outcome::Pass);
        check(&metrics::BINARY, ("0.117.0", 180.0), 20.0, Outcome::Fail);
        check(&metrics::OUTPUT_GROWTH, ("0.117.0", 1.0), 31.9, Outcome::Pass);
        check(&metrics::OUTPUT_GROWTH, ("0.117.0", 80.0), 32.0, Outcome::Fail);
        check(&metrics::LISTED, ("0.166.0", 955.0), 1_001.0, Outcome::Pass);
        check(&metrics::LISTED, ("0.166.0", 955.0), 1_000.0, Outcome::Fail);
    }

    #[test]
    fn without_a_sample_a_goal_is_open() {
        let measured = || server("one", "0.117.0", &[(&metrics::RESUME, 100.0)]);
        let failed = || server("two", "0.117.0", &[]);
        assert_eq!(outcome(measured(), failed(), &metrics::RESUME), (Outcome::NoData, None));
        assert_eq!(outcome(failed(), measured(), &metrics::RESUME), (Outcome::NoData, None));
    }

    #[test]
    fn the_engine_is_judged_by_itself() {
        for (median, expected) in
            [(Some(1.9), Outcome::Pass), (Some(2.0), Outcome::Fail), (None, Outcome::NoData)]
        {
            let mut engine = ServerResults::engine();
            engine.samples.extend(median.map(|median| (metrics::PROMPT.key, vec![median])));
            let servers = vec![server("a", "0.117.0", &[])];
            let results = Results { servers, engine, failures: Vec::new(), workload: Workload::scaled(1) };
            let verdicts = judge(&results, &[Measure::Prompt], &[0]);
            let found: Vec<_> = verdicts.iter().map(|v| (v.candidate.as_str(), v.outcome)).collect();
            assert_eq!(found, [("engine", expected)]);
        }
    }

    #[test]
    fn baselines_are_judges_and_not_judged() {
        let servers =
            vec![server("a", "0.117.0", &[]), server("b", "0.166.0", &[]), server("c", "1.0.0", &[])];
        let results = Results {
            servers,
            engine: ServerResults::engine(),
            failures: Vec::new(),
            workload: Workload::scaled(1),
        };
        let verdicts = judge(&results, &[Measure::Size], &[0, 1]);
        let pairs: Vec<_> = verdicts.iter().map(|v| (v.candidate.as_str(), v.baseline.as_str())).collect();
        assert_eq!(pairs, [("c", "a"), ("c", "b")]);
    }
}
