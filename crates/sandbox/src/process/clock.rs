//! Limits of time that can be held.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time of one thread's commands. While anybody holds it, none passes by it.
#[derive(Debug, Clone, Default)]
pub struct CommandClock {
    /// How often each of them holds it. Whoever does not is not in here.
    holders: watch::Sender<BTreeMap<u64, u64>>,
}

impl CommandClock {
    /// Stops it for as long as this holder does not let go again. Answers how often it is held now.
    pub fn hold(&self, holder: u64) -> u64 {
        let mut now = 0;
        self.holders.send_modify(|holders| {
            *holders.entry(holder).or_default() += 1;
            now = holders.values().sum();
        });
        now
    }

    /// Lets go once: for this holder, or for the first of the others where it does not hold it itself. Answers how
    /// often it is held still; `None` when nobody held it.
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

    /// Lets go as often as this holder still holds it.
    pub fn release_all(&self, holder: u64) {
        self.holders.send_if_modified(|holders| holders.remove(&holder).is_some());
    }

    /// Does the work until this much time has passed by the clock; then `None`.
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
    async fn work_goes_on_while_it_is_held() {
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
    async fn whoever_is_gone_holds_it_no_longer() {
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
    fn only_what_was_not_let_go_of_is_given_back() {
        let clock = CommandClock::default();
        assert_eq!((clock.hold(1), clock.hold(1), clock.hold(2)), (1, 2, 3));
        // Its own first, and then what the others hold.
        assert_eq!((clock.release(2), clock.release(2)), (Some(2), Some(1)));
        assert_eq!(clock.hold(2), 2);
        clock.release_all(1);
        clock.release_all(1);
        assert_eq!((clock.release(1), clock.release(2)), (Some(0), None));
    }
}
