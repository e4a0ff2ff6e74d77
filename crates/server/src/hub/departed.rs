//! Threads whose clients have gone away without a word. They stay in memory for a while, for the client to come back.

use std::collections::HashMap;
use std::time::Duration;

use protocol::ThreadId;
use tokio::time::Instant;

use super::Hub;

/// Since when nobody has listened to which thread.
#[derive(Debug, Default)]
pub(super) struct Departed {
    since: HashMap<ThreadId, Instant>,
    /// Threads that could not be put away, and when that was tried. Only time makes them due again: one that never can be
    /// must not be tried over and over.
    kept: HashMap<ThreadId, Instant>,
}

impl Departed {
    pub(super) fn add(&mut self, threads: Vec<ThreadId>) {
        let now = Instant::now();
        self.since.extend(threads.into_iter().map(|thread| (thread, now)));
    }

    pub(super) fn remove(&mut self, thread: &ThreadId) {
        self.since.remove(thread);
        self.kept.remove(thread);
    }

    fn oldest(&self) -> Option<Instant> {
        self.since.values().chain(self.kept.values()).min().copied()
    }

    /// Those that are older than `age`, and the oldest of those that are more than `most`.
    fn due(&self, age: Duration, most: usize) -> Vec<ThreadId> {
        let now = Instant::now();
        let mut by_age: Vec<(&ThreadId, &Instant)> = self.since.iter().collect();
        by_age.sort_by_key(|(_, since)| **since);
        let too_many = by_age.len().saturating_sub(most);
        let is_due = |(place, (_, since)): &(usize, (&ThreadId, &Instant))| {
            *place < too_many || now.duration_since(**since) >= age
        };
        let due = by_age.into_iter().enumerate().filter(is_due).map(|(_, (thread, _))| thread);
        let tried = self.kept.iter().filter(|(_, tried)| now.duration_since(**tried) >= age);
        due.chain(tried.map(|(thread, _)| thread)).cloned().collect()
    }
}

impl Hub {
    /// Waits until threads are due to be put away: nobody has listened to them for `age`, or they are the oldest of more
    /// than `most`.
    pub(crate) async fn departed(&self, age: Duration, most: usize) -> Vec<ThreadId> {
        loop {
            // Made before the look, so that what comes in between is not missed.
            let departure = self.departures.notified();
            let (due, oldest) = {
                let state = self.state();
                (state.departed.due(age, most), state.departed.oldest())
            };
            if !due.is_empty() {
                return due;
            }
            match oldest {
                None => departure.await,
                Some(oldest) => tokio::select! {
                    () = departure => {}
                    () = tokio::time::sleep_until(oldest + age) => {}
                },
            }
        }
    }

    /// The thread could not be put away: its time begins anew.
    pub(crate) fn keep_departed(&self, thread: &ThreadId) {
        let mut state = self.state();
        if state.subscriptions.of(thread).next().is_none() {
            state.departed.kept.insert(thread.clone(), Instant::now());
        }
    }

    /// Whether nobody listens to the thread. From here on it does not count as departed.
    pub(crate) fn take_departed(&self, thread: &ThreadId) -> bool {
        let mut state = self.state();
        state.departed.remove(thread);
        state.subscriptions.of(thread).next().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_of_too_many_and_the_too_old_are_due() {
        let hub = Hub::new();
        let second = Duration::from_secs(1);
        for number in 0..4 {
            hub.state().departed.add(vec![ThreadId::new(format!("t{number}"))]);
            tokio::time::advance(second).await;
        }
        let due =
            |age: u64, most| hub.state().departed.due(second * u32::try_from(age).expect("small"), most);
        assert_eq!(due(100, 3), [ThreadId::new("t0")]);
        assert_eq!(due(3, 10), [ThreadId::new("t0"), ThreadId::new("t1")]);
        assert_eq!(due(100, 10), []);
        let begun = Instant::now();
        assert_eq!(hub.departed(second * 10, 10).await, [ThreadId::new("t0")]);
        assert_eq!(begun.elapsed(), second * 6);
        // A thread that cannot be unloaded is tried again later, and not because there are too many.
        for number in 0..4 {
            let thread = ThreadId::new(format!("t{number}"));
            assert!(hub.take_departed(&thread));
            hub.keep_departed(&thread);
        }
        assert_eq!(due(100, 0), []);
        assert_eq!(hub.departed(second * 10, 0).await.len(), 4);
    }
}
