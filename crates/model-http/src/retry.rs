//! When a request is retried, and the delay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::{FailureClass, FailureVerdict, ModelFailure};

const BASE: Duration = Duration::from_millis(200);

/// Only a failed, overloaded or unreachable provider may succeed later. An invalid request (4xx) stays invalid.
pub(crate) fn is_worth_it(failure: &ModelFailure) -> bool {
    match failure.http_status {
        Some(status) => status >= 500,
        None => failure.class == FailureClass::Connection && failure.is_retryable(),
    }
}

/// The failure for the caller. After retries here, the caller must not retry again: nested retries would multiply.
pub(crate) fn after(mut failure: ModelFailure, retries: u32) -> ModelFailure {
    if retries > 0 && is_worth_it(&failure) {
        let info = failure.codex_error_info();
        failure.verdict = Some(FailureVerdict { info, may_retry: false });
    }
    failure
}

/// 200 ms, doubled with every retry, with up to 10 % jitter so that many clients do not retry at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    state: AtomicU64,
}

impl Backoff {
    pub(crate) fn new(seed: u64) -> Self {
        // An xorshift generator must not start at zero.
        Self { state: AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1) }
    }

    /// `retry` starts at 1.
    pub(crate) fn delay(&self, retry: u32) -> Duration {
        let doubled = BASE.saturating_mul(2_u32.saturating_pow(retry.saturating_sub(1)));
        let permille = 900 + (self.random() % 201) as u32;
        doubled.checked_mul(permille).map_or(Duration::MAX, |scaled| scaled / 1_000)
    }

    /// Concurrent callers may get the same number, which is harmless.
    fn random(&self) -> u64 {
        let mut x = self.state.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.state.store(x, Ordering::Relaxed);
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_stay_within_a_tenth() {
        let backoff = Backoff::new(7);
        for (retry, expected) in [(1, 200), (2, 400), (3, 800), (4, 1_600), (10, 102_400)] {
            for _ in 0..200 {
                let delay = backoff.delay(retry).as_millis();
                assert!(delay >= expected * 9 / 10 && delay <= expected * 11 / 10, "{retry}: {delay}");
            }
        }
        // A hundred retries are allowed; the last delays are huge but finite.
        assert!(backoff.delay(100) > Duration::from_secs(3_600));
    }

    #[test]
    fn the_seed_decides() {
        let draws = |seed| {
            let backoff = Backoff::new(seed);
            Vec::from_iter((0..8).map(|_| backoff.delay(1)))
        };
        assert_eq!(draws(3), draws(3));
        assert_ne!(draws(3), draws(4));
        assert_ne!(draws(0)[0], draws(0)[1]);
    }

    fn answered(status: u16, body: &str) -> ModelFailure {
        wires::http_failure(wires::HttpRefusal {
            status,
            body,
            retry_after_ms: None,
            url: "u",
            model: "m",
            credential: "the provider refused the key",
        })
    }

    #[test]
    fn only_one_budget_is_spent_on_a_failure() {
        let failed = |status| answered(status, "");
        let tried = after(failed(502), 4);
        assert!(!tried.is_retryable());
        assert_eq!(tried.message, failed(502).message);
        assert_eq!(tried.codex_error_info(), failed(502).codex_error_info());
        // Without retries here, the caller's apply.
        assert!(after(failed(502), 0).is_retryable());
        assert_eq!(after(failed(400), 0), failed(400));
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: bool) {
        assert_eq!(is_worth_it(&answered(status, body)), expected, "{status} {body}");
    }

    #[test]
    fn only_failures_of_the_provider_are_tried_again() {
        for status in [500, 502, 503, 504] {
            check(status, "", true);
        }
        for status in [302, 400, 401, 403, 404, 408, 429] {
            check(status, "", false);
        }
        check(503, r#"{"error":{"code":"server_is_overloaded"}}"#, true);
        check(503, r#"{"error":{"code":"slow_down"}}"#, true);
        assert!(is_worth_it(&ModelFailure::new(FailureClass::Connection, "")));
        assert!(!is_worth_it(&ModelFailure::stream("")));
    }
}
