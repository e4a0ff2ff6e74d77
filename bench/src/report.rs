//! The report of a run, for people and for programs.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::goals::{Outcome, Target, Verdict};
use crate::metrics::{METRICS, Metric};
use crate::options::Options;
use crate::run::Results;
use crate::stats::{Better, times_better};
use crate::table::{Table, number};

/// Counts up when a field changes its meaning or goes away.
const FORMAT: u32 = 1;

/// A comparison that has a column: candidate and baseline by position.
type Pair = (usize, usize);

fn pairs(results: &Results, baselines: &[usize]) -> Vec<Pair> {
    let candidates = 0..results.servers.len();
    candidates
        .flat_map(|candidate| baselines.iter().map(move |baseline| (candidate, *baseline)))
        .filter(|(candidate, baseline)| candidate != baseline)
        .collect()
}

fn measured(results: &Results) -> impl Iterator<Item = &'static Metric> {
    METRICS
        .iter()
        .copied()
        .filter(|metric| results.servers.iter().any(|server| !server.samples(metric).is_empty()))
}

fn ratio(results: &Results, metric: &Metric, (candidate, baseline): Pair) -> Option<f64> {
    let median = |index: usize| Some(results.servers[index].summary(metric)?.median);
    times_better(median(baseline)?, median(candidate)?, metric.better)
}

/// Median and tail of every server, and how many times better each is than each baseline.
pub(crate) fn table(results: &Results, baselines: &[usize]) -> String {
    let pairs = pairs(results, baselines);
    let name = |index: usize| &results.servers[index].name;
    let mut table = Table::default();
    let mut head = vec!["median / p95".to_owned(), "unit".to_owned()];
    head.extend(results.servers.iter().map(|server| server.name.clone()));
    head.extend(
        pairs.iter().map(|(candidate, baseline)| format!("{} vs {}", name(*candidate), name(*baseline))),
    );
    table.push(head);
    for metric in measured(results) {
        let mut row = vec![metric.label.to_owned(), metric.unit.to_owned()];
        row.extend(results.servers.iter().map(|server| match server.summary(metric) {
            Some(summary) => format!("{} / {}", number(summary.median), number(summary.p95)),
            None => "-".to_owned(),
        }));
        row.extend(pairs.iter().map(|pair| times(ratio(results, metric, *pair))));
        table.push(row);
    }
    let engine = METRICS.iter().copied().filter(|metric| !results.engine.samples(metric).is_empty());
    let engine: Vec<&Metric> = engine.collect();
    if engine.is_empty() {
        return table.render();
    }
    let mut inside = Table::default();
    inside.push(["median / p95, in process", "unit", "this build's engine"].map(str::to_owned).to_vec());
    for metric in engine {
        if let Some(summary) = results.engine.summary(metric) {
            let shown = format!("{} / {}", number(summary.median), number(summary.p95));
            inside.push(vec![metric.label.to_owned(), metric.unit.to_owned(), shown]);
        }
    }
    format!("{}\n{}", table.render(), inside.render())
}

fn times(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}x"))
}

pub(crate) fn goals_table(verdicts: &[Verdict]) -> String {
    let mut table = Table::default();
    table.push(["goal", "server", "against", "target", "reached", ""].map(str::to_owned).to_vec());
    for verdict in verdicts {
        let shown = |value: f64| match verdict.target {
            Target::Times(_) => format!("{value:.2}x"),
            Target::Under(_) | Target::AtLeast(_) => format!("{} {}", number(value), verdict.metric.unit),
        };
        let (sign, target) = match verdict.target {
            Target::Times(least) | Target::AtLeast(least) => ("at least", least),
            Target::Under(limit) => ("under", limit),
        };
        table.push(vec![
            verdict.metric.label.to_owned(),
            verdict.candidate.clone(),
            verdict.baseline.clone(),
            format!("{sign} {}", shown(target)).trim_end().to_owned(),
            verdict.reached.map_or_else(|| "-".to_owned(), shown).trim_end().to_owned(),
            outcome(verdict.outcome).to_owned(),
        ]);
    }
    table.render()
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "FAIL",
        Outcome::NoData => "no data",
    }
}

/// The JSON report; the README says what each field means.
pub(crate) fn json(options: &Options, results: &Results, verdicts: Option<&[Verdict]>) -> Value {
    let baselines = options.baselines();
    let pairs = pairs(results, &baselines);
    let servers: Vec<Value> = results
        .servers
        .iter()
        .map(|server| {
            json!({
                "name": server.name, "command": server.command, "userAgent": server.user_agent,
                "version": server.version(), "executable": server.executable
            })
        })
        .collect();
    let metrics: Vec<Value> = measured(results).map(|metric| metric_json(results, metric, &pairs)).collect();
    let failures: Vec<Value> = results
        .failures
        .iter()
        .map(|failure| {
            json!({
                "server": failure.server, "measure": failure.measure,
                "repetition": failure.repetition, "message": failure.message
            })
        })
        .collect();
    json!({
        "format": FORMAT,
        "finishedAt": SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        "host": host(),
        "reps": options.reps,
        "scale": options.scale,
        "chunk": options.chunk,
        "workload": results.workload.to_json(),
        "servers": servers,
        "baselines": baselines.iter().map(|index| &results.servers[*index].name).collect::<Vec<_>>(),
        "metrics": metrics,
        "engine": engine_json(results),
        "failures": failures,
        "goals": verdicts.map(|verdicts| verdicts.iter().map(goal_json).collect::<Vec<_>>()),
    })
}

/// The measurements of this program's own engine.
fn engine_json(results: &Results) -> Vec<Value> {
    let measured = METRICS.iter().filter_map(|metric| Some((*metric, results.engine.summary(metric)?)));
    let one = |(metric, summary): (&Metric, crate::stats::Summary)| {
        json!({
            "key": metric.key, "label": metric.label, "unit": metric.unit, "median": summary.median,
            "p95": summary.p95, "n": summary.n, "samples": results.engine.samples(metric),
        })
    };
    measured.map(one).collect()
}

fn metric_json(results: &Results, metric: &Metric, pairs: &[Pair]) -> Value {
    let mut by_server = Map::new();
    for server in &results.servers {
        if let Some(summary) = server.summary(metric) {
            let samples = server.samples(metric);
            let values =
                json!({"median": summary.median, "p95": summary.p95, "n": summary.n, "samples": samples});
            by_server.insert(server.name.clone(), values);
        }
    }
    let name = |index: usize| &results.servers[index].name;
    let ratios: Vec<Value> = pairs
        .iter()
        .filter_map(|pair| {
            let times = ratio(results, metric, *pair)?;
            Some(json!({"server": name(pair.0), "baseline": name(pair.1), "timesBetter": times}))
        })
        .collect();
    let better = match metric.better {
        Better::Lower => Some("lower"),
        Better::Higher => Some("higher"),
        Better::Neither => None,
    };
    json!({
        "key": metric.key, "label": metric.label, "unit": metric.unit, "better": better,
        "servers": by_server, "ratios": ratios
    })
}

fn goal_json(verdict: &Verdict) -> Value {
    let target = match verdict.target {
        Target::Times(least) => json!({"timesBetter": least}),
        Target::Under(limit) => json!({"under": limit}),
        Target::AtLeast(least) => json!({"atLeast": least}),
    };
    let outcome = match verdict.outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "fail",
        Outcome::NoData => "noData",
    };
    json!({
        "metric": verdict.metric.key, "server": verdict.candidate, "baseline": verdict.baseline,
        "target": target, "reached": verdict.reached, "outcome": outcome
    })
}

fn host() -> Value {
    let uname = rustix::system::uname();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    json!({
        "machine": uname.machine().to_string_lossy(),
        "kernel": uname.release().to_string_lossy(),
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "loadAverage": load.split_ascii_whitespace().take(3).collect::<Vec<_>>().join(" "),
    })
}
