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

/// A metric that only explains others.
const fn count(key: &'static str, label: &'static str, unit: &'static str) -> Metric {
    Metric { key, label, unit, better: Better::Neither }
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
pub(crate) static STREAM_NOTIFICATIONS: Metric =
    count("stream_notifications", "one stream, notifications", "");
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
pub(crate) static DELEGATED_TURN: Metric =
    lower("delegated_turn_ms", "delegated turn without tools, net of host", "ms");
pub(crate) static DELEGATED_TURN_DIRECT: Metric =
    lower("delegated_turn_direct_ms", "direct turns among those, net of model", "ms");
pub(crate) static DELEGATED_TURN_RATIO: Metric =
    lower("delegated_turn_ratio", "delegated turn by the direct one", "x");
pub(crate) static DELEGATED_RATE: Metric =
    higher("delegated_deltas_per_s", "one delegated stream, deltas", "1/s");
pub(crate) static DELEGATED_WALL: Metric =
    lower("delegated_stream_wall_ms", "one delegated stream, whole turn", "ms");
pub(crate) static DELEGATED_CPU: Metric =
    lower("delegated_stream_cpu_s", "one delegated stream, server CPU", "s");
pub(crate) static DELEGATED_NOTIFICATIONS: Metric =
    count("delegated_stream_notifications", "one delegated stream, notifications", "");
pub(crate) static RECORD_TURN: Metric =
    lower("record_turn_ms", "delegated turn with one command, record at the host", "ms");
pub(crate) static RECORD_TURN_WITHOUT: Metric =
    lower("record_turn_without_ms", "the same among those, without a record", "ms");
pub(crate) static RECORD_BARRIERS: Metric = count("record_barriers", "barriers in such a turn", "");
pub(crate) static RECORD_BARRIER: Metric = lower("record_barrier_ms", "what each barrier adds", "ms");
pub(crate) static UNREAD_GROWTH: Metric =
    lower("unread_growth_mib", "host that reads nothing, peak memory over rest", "MiB");
pub(crate) static UNREAD_PUSHED: Metric =
    count("unread_pushed_mb", "host that reads nothing, pushed at the server", "MB");
pub(crate) static UNACKNOWLEDGED_GROWTH: Metric =
    lower("unacknowledged_growth_mib", "host that acknowledges nothing, peak memory over rest", "MiB");
pub(crate) static UNACKNOWLEDGED_PUSHED: Metric =
    count("unacknowledged_pushed_mb", "host that acknowledges nothing, pushed at the server", "MB");
pub(crate) static WIRE_TURN_RESPONSES: Metric =
    lower("wire_turn_responses_ms", "turn over Responses, net of model", "ms");
pub(crate) static WIRE_TURN_CHAT: Metric = lower("wire_turn_chat_ms", "turn over Chat, net of model", "ms");
pub(crate) static WIRE_TURN_MESSAGES: Metric =
    lower("wire_turn_messages_ms", "turn over Messages, net of model", "ms");
pub(crate) static WIRE_TURN_EXTRA: Metric =
    lower("wire_turn_extra_ms", "the slower of Chat and Messages over Responses", "ms");
pub(crate) static WIRE_STREAM_RESPONSES: Metric =
    higher("wire_stream_responses_per_s", "one stream over Responses, deltas", "1/s");
pub(crate) static WIRE_STREAM_CHAT: Metric =
    higher("wire_stream_chat_per_s", "one stream over Chat, deltas", "1/s");
pub(crate) static WIRE_STREAM_MESSAGES: Metric =
    higher("wire_stream_messages_per_s", "one stream over Messages, deltas", "1/s");
pub(crate) static WIRE_STREAM_SHARE: Metric =
    higher("wire_stream_share", "the slower of Chat and Messages by Responses", "x");
pub(crate) static LONG_THREAD_FRESH: Metric =
    lower("long_thread_fresh_ms", "turn in a fresh thread, net of model", "ms");
pub(crate) static LONG_THREAD_TURNS: Metric =
    lower("long_thread_turns_ms", "turn after 300 turns and 540 KB, net of model", "ms");
pub(crate) static LONG_THREAD_LARGE: Metric =
    lower("long_thread_large_ms", "turn after 2 MB, net of model", "ms");
pub(crate) static LONG_THREAD_GROWTH: Metric =
    lower("long_thread_growth_ms", "what each MB of history adds to a turn, the worst", "ms");
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
    &DELEGATED_TURN,
    &DELEGATED_TURN_DIRECT,
    &DELEGATED_TURN_RATIO,
    &DELEGATED_RATE,
    &DELEGATED_WALL,
    &DELEGATED_CPU,
    &DELEGATED_NOTIFICATIONS,
    &RECORD_TURN,
    &RECORD_TURN_WITHOUT,
    &RECORD_BARRIERS,
    &RECORD_BARRIER,
    &UNREAD_GROWTH,
    &UNREAD_PUSHED,
    &UNACKNOWLEDGED_GROWTH,
    &UNACKNOWLEDGED_PUSHED,
    &WIRE_TURN_RESPONSES,
    &WIRE_TURN_CHAT,
    &WIRE_TURN_MESSAGES,
    &WIRE_TURN_EXTRA,
    &WIRE_STREAM_RESPONSES,
    &WIRE_STREAM_CHAT,
    &WIRE_STREAM_MESSAGES,
    &WIRE_STREAM_SHARE,
    &LONG_THREAD_FRESH,
    &LONG_THREAD_TURNS,
    &LONG_THREAD_LARGE,
    &LONG_THREAD_GROWTH,
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
