//! The clock of a test.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use runtime::{Clock, SystemClock};

/// The real clock, until a test sets or breaks it.
#[derive(Debug, Default)]
pub struct TestClock {
    fixed_ms: AtomicI64,
    breaks: AtomicBool,
}

impl TestClock {
    pub fn set(&self, now_ms: i64) {
        self.fixed_ms.store(now_ms, Ordering::SeqCst);
    }

    /// The next read panics; later ones work again.
    pub fn break_once(&self) {
        self.breaks.store(true, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        assert!(!self.breaks.swap(false, Ordering::SeqCst), "the test broke the clock");
        match self.fixed_ms.load(Ordering::SeqCst) {
            0 => SystemClock.now_ms(),
            now_ms => now_ms,
        }
    }
}
