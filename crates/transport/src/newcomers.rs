//! A bounded set of connections that have not shown yet what they want. When it is full, the oldest one is dropped, so
//! that peers who connect and say nothing never keep out one who speaks.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

/// The set. Clones of the `Arc` are the same set.
#[derive(Debug)]
pub struct Newcomers {
    max: usize,
    state: Mutex<NewcomersState>,
}

#[derive(Debug, Default)]
struct NewcomersState {
    next: u64,
    /// By age. Dropping the sender tells the connection that it has to go.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

/// A place in the set, until it is dropped.
#[derive(Debug)]
pub struct Newcomer {
    set: Arc<Newcomers>,
    id: u64,
    dropped: oneshot::Receiver<()>,
}

impl Newcomers {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), state: Mutex::default() })
    }

    /// Takes a place, from the oldest newcomer if there is no other.
    pub fn enter(self: &Arc<Self>) -> Newcomer {
        let (keep, dropped) = oneshot::channel();
        let mut state = self.state();
        while state.waiting.len() >= self.max {
            state.waiting.pop_first();
        }
        let id = state.next;
        state.next += 1;
        state.waiting.insert(id, keep);
        drop(state);
        Newcomer { set: self.clone(), id, dropped }
    }

    /// Drops the oldest newcomer, as when the process has no descriptors left.
    pub fn drop_oldest(&self) {
        self.state().waiting.pop_first();
    }

    fn state(&self) -> MutexGuard<'_, NewcomersState> {
        // Nothing panics while it holds the lock.
        self.state.lock()
    }
}

impl Newcomer {
    /// Ends when the connection has to make room for another one.
    pub async fn dropped(&mut self) {
        // Nothing is ever sent; only the end of the sender counts.
        let _ = (&mut self.dropped).await;
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.set.state().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let set = Newcomers::new(2);
        let [mut one, two, mut three] = [(); 3].map(|()| set.enter());
        assert!(one.dropped().now_or_never().is_some());
        assert!(three.dropped().now_or_never().is_none());
        drop(two);
        let mut four = set.enter();
        assert!(three.dropped().now_or_never().is_none(), "there was room");
        assert!(four.dropped().now_or_never().is_none());
        set.drop_oldest();
        assert!(three.dropped().now_or_never().is_some());
        assert!(four.dropped().now_or_never().is_none());
    }
}
