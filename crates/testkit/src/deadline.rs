//! Waits with deadlines: each names what it waits for, and fails the test on a timeout.

use std::time::{Duration, Instant};

/// Long enough for a busy machine.
pub const WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Waits for something at most as long as [`WAIT_LIMIT`].
pub async fn within<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(WAIT_LIMIT, waiting).await;
    outcome.unwrap_or_else(|_| panic!("waited {} s for {what}", WAIT_LIMIT.as_secs()))
}

/// Waits until the condition holds, at most [`WAIT_LIMIT`].
pub async fn until(what: &str, condition: impl FnMut() -> bool) {
    until_in(WAIT_LIMIT, what, condition).await;
}

/// Waits until the condition holds, at most this long.
pub async fn until_in(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < limit, "waited {limit:?} until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
