//! The threads that write journals to the disk. A journal with pending lines is queued once; everything appended until
//! its turn, and while the disk is busy with it, is written with one write and one sync.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use parking_lot::{Condvar, Mutex};

/// The disk handles concurrent syncs of different files together, so a few threads are faster than one.
const DEFAULT_THREADS: usize = 4;

/// Something with lines to write.
pub(crate) trait Commit: Send + Sync {
    /// Writes and syncs pending lines. Returns whether more arrived meanwhile.
    fn commit(&self) -> bool;
}

/// A few threads shared by all journals. They start with the first write, and end with the last clone, after finishing
/// the queue.
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
    /// Its own threads, at least one.
    pub fn with_threads(threads: usize) -> Self {
        let (shared, most) = (Arc::default(), threads.max(1));
        Self { pool: Arc::new(Pool { shared, most, threads: OnceLock::new() }) }
    }

    pub(crate) fn submit(&self, journal: Arc<dyn Commit>) {
        if self.pool.threads().is_empty() {
            // The system gave us no thread: slower, but just as durable.
            while journal.commit() {}
            return;
        }
        self.pool.shared.push(journal);
    }
}

/// Shared by all journals of this process, unless they are given another.
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
            // To the end of the queue: a busy journal must not delay the others.
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
            // The last journal may be dropped on one of these threads.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
