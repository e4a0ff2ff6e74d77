//! Counters of a running host.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use store::UsageRow;

/// Upper bounds of the times of appends, in seconds.
pub(crate) const BOUNDS: [f64; 8] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5];

/// Counted since the host started.
#[derive(Debug, Default)]
pub(crate) struct HostCounters {
    pub(crate) starts: AtomicU64,
    pub(crate) losses: AtomicU64,
    pub(crate) turns: AtomicU64,
    pub(crate) requests: Mutex<BTreeMap<(String, String), u64>>,
    pub(crate) input_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) output_tokens: AtomicU64,
    pub(crate) cost_micros: AtomicU64,
    pub(crate) appends: [AtomicU64; BOUNDS.len()],
    pub(crate) append_count: AtomicU64,
    pub(crate) append_micros: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl HostCounters {
    pub(crate) fn appended(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        // Each bucket counts all that are not longer than its bound.
        for (bound, bucket) in BOUNDS.iter().zip(&self.appends) {
            if seconds <= *bound {
                count(bucket);
            }
        }
        count(&self.append_count);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.append_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn requested(&self, usage: &UsageRow) {
        let key = (usage.provider.clone(), usage.outcome.clone());
        *self.requests.lock().entry(key).or_default() += 1;
        let add = |counter: &AtomicU64, amount: i64| {
            counter.fetch_add(u64::try_from(amount).unwrap_or(0), Ordering::Relaxed);
        };
        add(&self.input_tokens, usage.input_tokens);
        add(&self.cached_tokens, usage.cached_tokens);
        add(&self.output_tokens, usage.output_tokens);
        add(&self.cost_micros, usage.cost_micros);
    }
}
