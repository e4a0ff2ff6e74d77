//! The host's lease as its runtime sees it: if it is not renewed in time, another host may have the threads.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The expiry of the host's lease. Unset without a host whose lease expires.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    ends: watch::Sender<Option<Instant>>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { ends: watch::Sender::new(None) }
    }
}

impl Heartbeat {
    pub(crate) fn heard(&self, valid_for: Duration) {
        self.ends.send_replace(Some(Instant::now() + valid_for));
    }

    /// Returns when the lease has expired without renewal. Pending for ever if no lease expires.
    pub(crate) async fn over(&self) {
        let mut ends = self.ends.subscribe();
        loop {
            let end = *ends.borrow_and_update();
            let expired = async {
                match end {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = expired => return,
                changed = ends.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_when_it_is_not_renewed_and_not_before() {
        let heartbeat = Heartbeat::default();
        let forever = tokio::time::timeout(1_000 * SECOND, heartbeat.over()).await;
        assert!(forever.is_err(), "without a lease nothing ends");
        heartbeat.heard(5 * SECOND);
        for _ in 0..10 {
            assert!(tokio::time::timeout(4 * SECOND, heartbeat.over()).await.is_err(), "it holds");
            heartbeat.heard(5 * SECOND);
        }
        let begun = Instant::now();
        heartbeat.over().await;
        assert_eq!(begun.elapsed(), 5 * SECOND);
    }
}
