//! The time of day.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// The source of the time of day. The program creates one and passes it down, so that a test can set the time for all
/// parts at once. Only [`SystemClock`] reads the system clock. Durations are measured with `Instant`, which needs no
/// clock.
pub trait Clock: Send + Sync {
    /// Unix milliseconds.
    fn now_ms(&self) -> i64;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn Clock + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// For tests.
impl<F: Fn() -> i64 + Send + Sync> Clock for F {
    fn now_ms(&self) -> i64 {
        self()
    }
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_the_year_and_a_function_what_a_test_says() {
        let year_2025 = 1_735_689_600_000;
        assert!(SystemClock.now_ms() > year_2025);
        let clock: &dyn Clock = &|| 7;
        assert_eq!((clock.now_ms(), format!("{clock:?}").as_str()), (7, "Clock"));
    }
}
