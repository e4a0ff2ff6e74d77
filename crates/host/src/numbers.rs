//! Numbers about a host: what it has counted, and what the store counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::counters::BOUNDS;
use crate::error::TaskError;
use crate::lease::LeaseState;
use crate::task_host::TaskHost;

/// How long appends took.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppendTimes {
    /// Bound in seconds, and how many took at most that long.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub sum_seconds: f64,
}

/// A host at one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostNumbers {
    /// By the word of their state.
    pub tasks: Vec<(String, i64)>,
    pub runtimes: usize,
    /// Tasks that wait for room.
    pub queued: usize,
    pub living: usize,
    pub turns_running: usize,
    pub waiting: i64,
    pub oldest_waiting_ms: i64,
    /// By backend and state.
    pub placements: Vec<((String, String), i64)>,
    pub starts: u64,
    pub losses: u64,
    pub turns: u64,
    /// By provider and outcome.
    pub requests: Vec<((String, String), u64)>,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub cost_micros: u64,
    pub appends: AppendTimes,
}

impl TaskHost {
    /// Why the host cannot work now: its lease is over, or the store does not answer.
    pub async fn ready(&self) -> Result<(), String> {
        if *self.shared.lease.borrow() == LeaseState::Over {
            return Err("the lease of this host is over".to_owned());
        }
        self.shared.store.counts().await.map(drop).map_err(|error| error.to_string())
    }

    pub async fn numbers(&self) -> Result<HostNumbers, TaskError> {
        let counts = self.shared.store.counts().await?;
        let counters = &self.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (runtimes, turns_running, living) = {
            let living = self.shared.living.lock();
            let up = || living.values().filter(|task| task.view.borrow().is_up);
            (up().count(), up().filter(|task| task.view.borrow().turn.is_some()).count(), living.len())
        };
        let buckets = BOUNDS.iter().zip(&counters.appends).map(|(bound, bucket)| (*bound, get(bucket)));
        Ok(HostNumbers {
            tasks: counts.tasks,
            runtimes,
            queued: self.shared.slots.queued(),
            living,
            turns_running,
            waiting: counts.waiting,
            oldest_waiting_ms: counts
                .oldest_waiting_ms
                .map_or(0, |oldest| (self.shared.now_ms() - oldest).max(0)),
            placements: counts.placements,
            starts: get(&counters.starts),
            losses: get(&counters.losses),
            turns: get(&counters.turns),
            requests: counters.requests.lock().iter().map(|(key, count)| (key.clone(), *count)).collect(),
            input_tokens: get(&counters.input_tokens),
            cached_tokens: get(&counters.cached_tokens),
            output_tokens: get(&counters.output_tokens),
            cost_micros: get(&counters.cost_micros),
            appends: AppendTimes {
                buckets: buckets.collect(),
                count: get(&counters.append_count),
                sum_seconds: Duration::from_micros(get(&counters.append_micros)).as_secs_f64(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::HostCounters;

    #[test]
    fn an_append_is_in_every_bucket_that_is_wide_enough() {
        let counters = HostCounters::default();
        counters.appended(Duration::from_millis(3));
        counters.appended(Duration::from_secs(10));
        let filled: Vec<u64> = counters.appends.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        assert_eq!(filled, [0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!(counters.append_count.load(Ordering::Relaxed), 2);
    }
}
