//! The numbers of a host on its page of metrics.

use host::HostNumbers;

use crate::metrics::MetricsText;

#[allow(clippy::cast_precision_loss, reason = "a metric is a float; exact up to 2^53")]
pub(crate) fn write_numbers(numbers: &HostNumbers, text: &mut MetricsText) {
    for (state, count) in &numbers.tasks {
        let about = "Tasks that are not archived, by state.";
        text.gauge("oarlock_tasks", about, &[("state", state)], *count as f64);
    }
    let about = "Runtimes that hold a task of this host.";
    text.gauge("oarlock_runtimes", about, &[], numbers.runtimes as f64);
    let about = "Tasks that wait for room among the runtimes.";
    text.gauge("oarlock_runtimes_queued", about, &[], numbers.queued as f64);
    let about = "Tasks that this host holds the lease of and works on.";
    text.gauge("oarlock_leases", about, &[], numbers.living as f64);
    let about = "Tasks of this host in which a turn runs.";
    text.gauge("oarlock_turns_running", about, &[], numbers.turns_running as f64);
    let about = "Operations that wait for a decision.";
    text.gauge("oarlock_operations_waiting", about, &[], numbers.waiting as f64);
    let about = "Age of the oldest operation that waits for a decision.";
    text.gauge("oarlock_operations_waiting_age_seconds", about, &[], numbers.oldest_waiting_ms as f64 / 1e3);
    for ((backend, state), count) in &numbers.placements {
        let labels = [("backend", backend.as_str()), ("state", state.as_str())];
        text.gauge("oarlock_placements", "Placements, by backend and state.", &labels, *count as f64);
    }
    text.counter("oarlock_runtime_starts_total", "Runtimes that were started.", &[], numbers.starts as f64);
    let about = "Runtimes that ended without having been asked to.";
    text.counter("oarlock_runtime_losses_total", about, &[], numbers.losses as f64);
    text.counter("oarlock_turns_total", "Turns that ended.", &[], numbers.turns as f64);
    for ((provider, outcome), count) in &numbers.requests {
        let labels = [("provider", provider.as_str()), ("outcome", outcome.as_str())];
        let about = "Model requests, by provider and outcome.";
        text.counter("oarlock_model_requests_total", about, &labels, *count as f64);
    }
    for (kind, tokens) in [
        ("input", numbers.input_tokens),
        ("cached", numbers.cached_tokens),
        ("output", numbers.output_tokens),
    ] {
        let about = "Tokens of model requests; cached ones are part of the input.";
        text.counter("oarlock_model_tokens_total", about, &[("kind", kind)], tokens as f64);
    }
    let about = "Cost of model requests by the table of prices.";
    text.counter("oarlock_model_cost_total", about, &[], numbers.cost_micros as f64 / 1e6);
    let appends = &numbers.appends;
    let about = "Time to commit an append of records.";
    text.histogram("oarlock_append_seconds", about, &appends.buckets, (appends.count, appends.sum_seconds));
}
