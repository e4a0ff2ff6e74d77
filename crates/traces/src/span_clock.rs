//! Times of spans: the time of day in nanoseconds, by a clock that counts milliseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use support::Clock;

/// How far the two clocks may be apart, in milliseconds, before the time of day counts as set anew.
const SET_ANEW_MS: i64 = 1_000;

/// Spans of one process fit into each other: their times come from one monotonic clock, put to the time of day.
#[derive(Debug)]
pub(crate) struct SpanClock {
    clock: Arc<dyn Clock>,
    began: Instant,
    /// The time of day at `began`, in nanoseconds.
    origin: AtomicI64,
}

impl SpanClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let origin = AtomicI64::new(clock.now_ms().saturating_mul(1_000_000));
        Self { clock, began: Instant::now(), origin }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        let passed = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let mut now = self.origin.load(Ordering::Relaxed).saturating_add(passed);
        let shown = self.clock.now_ms();
        if (now / 1_000_000 - shown).abs() > SET_ANEW_MS {
            now = shown.saturating_mul(1_000_000);
            self.origin.store(now.saturating_sub(passed), Ordering::Relaxed);
        }
        u64::try_from(now).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_between_milliseconds_and_follow_a_clock_that_is_set() {
        let time = Arc::new(AtomicI64::new(1_700_000_000_000));
        let read = time.clone();
        let clock = SpanClock::new(Arc::new(move || read.load(Ordering::Relaxed)));
        let (first, second) = (clock.now_ns(), clock.now_ns());
        assert!(first >= 1_700_000_000_000_000_000 && second > first, "{first} {second}");
        time.store(1_600_000_000_000, Ordering::Relaxed);
        assert_eq!(clock.now_ns(), 1_600_000_000_000_000_000);
    }
}
