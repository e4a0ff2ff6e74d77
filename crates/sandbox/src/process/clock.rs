//! Limits of time that can be held.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time of one thread's commands. While anybody holds it, none passes by it.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    holders: watch::Sender<u64>,
}

impl Clock {
    /// Stops it for as long as nobody lets go again. Answers how many hold it now.
    pub fn hold(&self) -> u64 {
        let mut now = 0;
        self.holders.send_modify(|holders| {
            *holders = holders.saturating_add(1);
            now = *holders;
        });
        now
    }

    /// Lets go once. Answers how many hold it still; `None` when nobody held it.
    pub fn release(&self) -> Option<u64> {
        let mut left = None;
        self.holders.send_if_modified(|holders| {
            left = holders.checked_sub(1);
            *holders = left.unwrap_or(*holders);
            left.is_some()
        });
        left
    }

    /// Does the work until this much time has passed by the clock; then `None`.
    pub async fn timeout<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut holders = self.holders.subscribe();
        let mut left = limit;
        tokio::pin!(work);
        loop {
            let is_held = *holders.borrow_and_update() > 0;
            let began = Instant::now();
            let passed = async {
                match is_held {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(left).await,
                }
            };
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                // The sender is this clock's own, so there is always another change to wait for.
                _ = holders.changed() => {}
                () = passed => return None,
            }
            if !is_held {
                left = left.saturating_sub(began.elapsed());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn time_passes_only_while_nobody_holds_it() {
        let clock = Clock::default();
        let began = Instant::now();
        let holding = async {
            tokio::time::sleep(SECOND).await;
            assert_eq!((clock.hold(), clock.hold()), (1, 2));
            tokio::time::sleep(60 * SECOND).await;
            assert_eq!(clock.release(), Some(1));
            tokio::time::sleep(60 * SECOND).await;
            assert_eq!((clock.release(), clock.release()), (Some(0), None));
        };
        let (done, ()) = tokio::join!(clock.timeout(3 * SECOND, std::future::pending::<()>()), holding);
        assert_eq!((done, began.elapsed()), (None, 123 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn work_goes_on_while_it_is_held() {
        let clock = Clock::default();
        clock.hold();
        let work = async {
            tokio::time::sleep(100 * SECOND).await;
            7
        };
        assert_eq!(clock.timeout(SECOND, work).await, Some(7));
        assert_eq!(clock.timeout(Duration::ZERO, std::future::ready(8)).await, Some(8));
    }
}
