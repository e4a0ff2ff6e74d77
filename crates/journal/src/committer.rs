//! The threads that bring journals to the disk. A journal with something to write queues up once; whatever is
//! appended to it until its turn comes, and while the disk is busy with it, goes out in one write and one sync.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

/// The disk serves waiting syncs of different files together, so a few threads finish many files sooner than one.
const DEFAULT_THREADS: usize = 4;

/// Something with lines to bring to the disk.
pub(crate) trait Commit: Send + Sync {
    /// Writes and syncs what waits. Says whether more came in meanwhile.
    fn commit(&self) -> bool;
}

/// A few threads that any number of journals share. They start with the first thing to write, and end with the last clone,
/// after finishing what is queued.
#[derive(Clone)]
pub struct Committer {
    pool: Arc<Pool>,
}

struct Pool {
    shared: Arc<CommitterState>,
    most: usize,
    threads: OnceLock<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct CommitterState {
    queue: Mutex<CommitQueue>,
    wake: Condvar,
}

#[derive(Default)]
struct CommitQueue {
    waiting: VecDeque<Arc<dyn Commit>>,
    is_closing: bool,
}

impl Committer {
    /// Threads of its own, at least one.
    pub fn with_threads(threads: usize) -> Self {
        let (shared, most) = (Arc::default(), threads.max(1));
        Self { pool: Arc::new(Pool { shared, most, threads: OnceLock::new() }) }
    }

    pub(crate) fn submit(&self, journal: Arc<dyn Commit>) {
        if self.pool.threads().is_empty() {
            // The system gave us no thread at all: slower, and just as durable.
            while journal.commit() {}
            return;
        }
        self.pool.shared.push(journal);
    }
}

/// The one that all journals of this process share, unless they are given another.
impl Default for Committer {
    fn default() -> Self {
        static SHARED: OnceLock<Committer> = OnceLock::new();
        SHARED.get_or_init(|| Self::with_threads(DEFAULT_THREADS)).clone()
    }
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").field("threads", &self.pool.most).finish_non_exhaustive()
    }
}

impl CommitterState {
    fn push(&self, journal: Arc<dyn Commit>) {
        self.queue.lock().waiting.push_back(journal);
        self.wake.notify_one();
    }

    fn run(&self) {
        while let Some(journal) = self.next() {
            // Behind the others: a busy journal must not keep the rest waiting.
            if journal.commit() {
                self.push(journal);
            }
        }
    }

    fn next(&self) -> Option<Arc<dyn Commit>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(journal) = queue.waiting.pop_front() {
                return Some(journal);
            }
            if queue.is_closing {
                return None;
            }
            self.wake.wait(&mut queue);
        }
    }
}

impl Pool {
    fn threads(&self) -> &[JoinHandle<()>] {
        let start = |number| {
            let shared = self.shared.clone();
            let name = format!("journal-{number}");
            let thread = thread::Builder::new().name(name).spawn(move || shared.run());
            thread.inspect_err(|error| tracing::error!(%error, "cannot start a journal thread")).ok()
        };
        self.threads.get_or_init(|| (0..self.most).filter_map(start).collect())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.queue.lock().is_closing = true;
        self.shared.wake.notify_all();
        for thread in self.threads.take().into_iter().flatten() {
            // The last journal may be let go by one of these threads itself.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
