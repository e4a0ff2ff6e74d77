//! The table of everything that is measured. Reports list metrics in this order.

use crate::stats::Better;

/// One row of the report.
#[derive(Debug, PartialEq)]
pub(crate) struct Metric {
    /// Its name in the JSON report.
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
}

const fn lower(key: &'static str, label: &'static str, unit: &'static str) -> Metric {
    Metric { key, label, unit, better: Better::Lower }
}

const fn higher(key: &'static str, label: &'static str, unit: &'static str) -> Metric {
    Metric { key, label, unit, better: Better::Higher }
}

pub(crate) static INITIALIZE_FRESH: Metric =
    lower("initialize_fresh_ms", "spawn to initialize answer, fresh home", "ms");
pub(crate) static INITIALIZE_USED: Metric =
    lower("initialize_used_ms", "spawn to initialize answer, used home", "ms");
pub(crate) static RSS_REST: Metric = lower("rss_rest_mib", "resident memory at rest", "MiB");
pub(crate) static RSS_THREADS: Metric = lower("rss_threads_mib", "resident memory, threads started", "MiB");
pub(crate) static THREAD_START: Metric = lower("thread_start_ms", "thread/start", "ms");
pub(crate) static TURN: Metric = lower("turn_ms", "turn without tools, net of model", "ms");
pub(crate) static EXEC: Metric = lower("exec_ms", "turn with one command, net of model", "ms");
pub(crate) static SANDBOXED_EXEC: Metric =
    lower("sandboxed_exec_ms", "turn with one sandboxed command, net of model", "ms");
pub(crate) static STREAM_RATE: Metric = higher("stream_deltas_per_s", "one stream, deltas", "1/s");
pub(crate) static STREAM_WALL: Metric = lower("stream_wall_ms", "one stream, whole turn", "ms");
pub(crate) static STREAM_CPU: Metric = lower("stream_cpu_s", "one stream, server CPU", "s");
pub(crate) static STREAM_NOTIFICATIONS: Metric = Metric {
    key: "stream_notifications",
    label: "one stream, notifications",
    unit: "",
    better: Better::Neither,
};
pub(crate) static LIST_FIRST: Metric = lower("list_first_ms", "thread/list, first page of 50", "ms");
pub(crate) static LIST_ALL: Metric = lower("list_all_ms", "thread/list, all pages", "ms");
pub(crate) static LIST_PER_100: Metric =
    lower("list_per_100_ms", "thread/list, all pages, per 100 listed", "ms");
pub(crate) static LISTED: Metric = higher("listed", "thread/list, threads listed", "");
pub(crate) static RESUME: Metric = lower("resume_ms", "thread/resume of the long thread", "ms");
pub(crate) static CONCURRENT_WALL: Metric = lower("concurrent_wall_ms", "concurrent streams, wall", "ms");
pub(crate) static CONCURRENT_CPU: Metric = lower("concurrent_cpu_s", "concurrent streams, server CPU", "s");
pub(crate) static OUTPUT_GROWTH: Metric =
    lower("output_growth_mib", "large output, peak memory over rest", "MiB");
pub(crate) static OUTPUT_WALL: Metric = lower("output_wall_ms", "large output, whole turn", "ms");
pub(crate) static BINARY: Metric = lower("binary_mb", "native executable", "MB");
pub(crate) static PROMPT: Metric = lower("prompt_ms", "request with a long history, assembled", "ms");
pub(crate) static PROMPT_JSON: Metric =
    lower("prompt_json_ms", "request with a long history, with its JSON", "ms");

pub(crate) static METRICS: &[&Metric] = &[
    &INITIALIZE_FRESH,
    &INITIALIZE_USED,
    &RSS_REST,
    &RSS_THREADS,
    &THREAD_START,
    &TURN,
    &EXEC,
    &SANDBOXED_EXEC,
    &STREAM_RATE,
    &STREAM_WALL,
    &STREAM_CPU,
    &STREAM_NOTIFICATIONS,
    &LIST_FIRST,
    &LIST_ALL,
    &LIST_PER_100,
    &LISTED,
    &RESUME,
    &CONCURRENT_WALL,
    &CONCURRENT_CPU,
    &OUTPUT_GROWTH,
    &OUTPUT_WALL,
    &BINARY,
    &PROMPT,
    &PROMPT_JSON,
];

/// One measured value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) metric: &'static Metric,
    pub(crate) value: f64,
}

impl Metric {
    pub(crate) fn sample(&'static self, value: f64) -> Sample {
        Sample { metric: self, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_metrics_share_a_key() {
        let mut keys: Vec<_> = METRICS.iter().map(|metric| metric.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), METRICS.len());
    }
}
