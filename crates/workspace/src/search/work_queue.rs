//! Work for a few threads, each piece of which may add more.

use std::thread;

use parking_lot::{Condvar, Mutex};

/// The pieces that no thread has taken yet.
pub(super) struct WorkQueue<T> {
    state: Mutex<WaitingPieces<T>>,
    wake: Condvar,
}

struct WaitingPieces<T> {
    waiting: Vec<T>,
    /// Threads that are working on a piece.
    busy: usize,
}

/// How a piece of work is done.
pub(super) trait Worker<T>: Sync {
    /// Whether to skip the rest.
    fn is_over(&self) -> bool;

    /// Does one piece, and returns further ones.
    fn work(&self, piece: T) -> Vec<T>;
}

impl<T: Send> WorkQueue<T> {
    /// Returns when everything is done. The caller's thread works too.
    pub(super) fn run(first: Vec<T>, max_threads: usize, worker: &impl Worker<T>) {
        let queue =
            Self { state: Mutex::new(WaitingPieces { waiting: first, busy: 0 }), wake: Condvar::new() };
        let threads = thread::available_parallelism().map_or(1, usize::from).min(max_threads);
        thread::scope(|scope| {
            for _ in 1..threads {
                // One thread suffices if no more can be started.
                let builder = thread::Builder::new().name("search".to_owned());
                let _ = builder.spawn_scoped(scope, || queue.work(worker));
            }
            queue.work(worker);
        });
    }

    fn work(&self, worker: &impl Worker<T>) {
        let mut state = self.state.lock();
        loop {
            if worker.is_over() || (state.waiting.is_empty() && state.busy == 0) {
                state.waiting.clear();
                self.wake.notify_all();
                return;
            }
            let Some(piece) = state.waiting.pop() else {
                self.wake.wait(&mut state);
                continue;
            };
            state.busy += 1;
            drop(state);
            let following = worker.work(piece);
            state = self.state.lock();
            state.busy -= 1;
            state.waiting.extend(following);
            self.wake.notify_all();
        }
    }
}
