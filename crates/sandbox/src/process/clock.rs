//! Time limits that can be paused.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The clock of one thread's commands. Paused while any holder holds it.
#[derive(Debug, Clone, Default)]
pub struct CommandClock {
    /// The number of holds per holder, without zeros.
    holders: watch::Sender<BTreeMap<u64, u64>>,
}

impl CommandClock {
    /// Pauses it until this holder releases it. Returns the total number of holds.
    pub fn hold(&self, holder: u64) -> u64 {
        let mut now = 0;
        self.holders.send_modify(|holders| {
            *holders.entry(holder).or_default() += 1;
            now = holders.values().sum();
        });
        now
    }

    /// Releases one hold: of this holder, or of the first other one if it has none. Returns the remaining number of
    /// holds; `None` if there was none.
    pub fn release(&self, holder: u64) -> Option<u64> {
        let mut left = None;
        self.holders.send_if_modified(|holders| {
            let whose =
                if holders.contains_key(&holder) { Some(holder) } else { holders.keys().next().copied() };
            let Some(whose) = whose else { return false };
            match holders.get_mut(&whose) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(holders.remove(&whose)),
            }
            left = Some(holders.values().sum());
            true
        });
        left
    }

    /// Releases all holds of this holder.
    pub fn release_all(&self, holder: u64) {
        self.holders.send_if_modified(|holders| holders.remove(&holder).is_some());
    }

    /// Runs the work until this much time has passed by the clock; then returns `None`.
    pub async fn timeout<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        let mut holders = self.holders.subscribe();
        let mut left = limit;
        tokio::pin!(work);
        loop {
            let is_held = !holders.borrow_and_update().is_empty();
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
                // The sender is owned by this clock, so the channel stays open.
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
    async fn time_passes_only_without_holds() {
        let clock = CommandClock::default();
        let began = Instant::now();
        let holding = async {
            tokio::time::sleep(SECOND).await;
            assert_eq!((clock.hold(1), clock.hold(2)), (1, 2));
            tokio::time::sleep(60 * SECOND).await;
            assert_eq!(clock.release(1), Some(1));
            tokio::time::sleep(60 * SECOND).await;
            assert_eq!((clock.release(2), clock.release(2)), (Some(0), None));
        };
        let (done, ()) = tokio::join!(clock.timeout(3 * SECOND, std::future::pending::<()>()), holding);
        assert_eq!((done, began.elapsed()), (None, 123 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn work_continues_while_the_clock_is_paused() {
        let clock = CommandClock::default();
        clock.hold(1);
        let work = async {
            tokio::time::sleep(100 * SECOND).await;
            7
        };
        assert_eq!(clock.timeout(SECOND, work).await, Some(7));
        assert_eq!(clock.timeout(Duration::ZERO, std::future::ready(8)).await, Some(8));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_is_gone_no_longer_pauses_it() {
        let clock = CommandClock::default();
        let began = Instant::now();
        assert_eq!((clock.hold(1), clock.hold(1)), (1, 2));
        let leaving = async {
            tokio::time::sleep(60 * SECOND).await;
            clock.release_all(1);
        };
        let (done, ()) = tokio::join!(clock.timeout(SECOND, std::future::pending::<()>()), leaving);
        assert_eq!((done, began.elapsed()), (None, 61 * SECOND));
    }

    #[test]
    fn only_remaining_holds_are_released() {
        let clock = CommandClock::default();
        assert_eq!((clock.hold(1), clock.hold(1), clock.hold(2)), (1, 2, 3));
        // Its own first, and then those of others.
        assert_eq!((clock.release(2), clock.release(2)), (Some(2), Some(1)));
        assert_eq!(clock.hold(2), 2);
        clock.release_all(1);
        clock.release_all(1);
        assert_eq!((clock.release(1), clock.release(2)), (Some(0), None));
    }
}
