//! Time limits for reads, because a file system may hang.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::{ReadError, ReadProblem};

/// Time limit of reading a folder's files.
pub const READ_LIMIT: Duration = Duration::from_secs(10);

/// Limit of hanging reads, each of which keeps an OS thread.
const MAX_STUCK: usize = 32;

/// The paths of abandoned reads that have not returned.
static STUCK: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn stuck() -> MutexGuard<'static, Vec<PathBuf>> {
    STUCK.lock()
}

/// Counts the steps of long work, such as copying a tree, to distinguish it from hanging work.
#[derive(Debug, Default)]
pub struct StepCount {
    steps: AtomicU64,
    is_given_up: AtomicBool,
}

impl StepCount {
    /// Counts a step. An error if the caller has given up: then nothing more may be changed.
    pub fn step(&self) -> std::io::Result<()> {
        self.steps.fetch_add(1, Ordering::Relaxed);
        match self.is_given_up.load(Ordering::Relaxed) {
            true => Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "it was given up")),
            false => Ok(()),
        }
    }
}

/// Runs work that reads in `path` on a new thread, and gives up after `limit`. Until that thread returns, further calls
/// for the same path fail at once. Blocking, so it must not run on an async worker.
pub fn within<T: Send + 'static>(
    path: &Path,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    within_steps(path, limit, move |_| work())
}

/// Like [`within`], with the limit for each step instead of the whole work.
pub fn within_steps<T: Send + 'static>(
    path: &Path,
    limit: Duration,
    work: impl FnOnce(&StepCount) -> T + Send + 'static,
) -> Result<T, ReadError> {
    let failed = |problem: ReadProblem| ReadError::new(path, problem);
    let (count, is_same) = {
        let stuck = stuck();
        (stuck.len(), stuck.iter().any(|other| other == path))
    };
    if is_same || count >= MAX_STUCK {
        return Err(failed(ReadProblem::Stuck(count)));
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let end = Arc::new(WorkEnd { is_over: AtomicBool::new(false), path: path.to_owned() });
    let ended = EndsWhenDropped(end.clone());
    let steps = Arc::new(StepCount::default());
    let own_steps = steps.clone();
    let read = move || {
        let _ended = ended;
        // No receiver if the work was abandoned.
        let _ = sender.send(work(&own_steps));
    };
    let started = thread::Builder::new().name("read".to_owned()).spawn(read);
    started.map_err(|error| failed(error.into()))?;
    let mut done = 0;
    loop {
        match receiver.recv_timeout(limit) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(failed(std::io::Error::other("reading broke off").into()));
            }
            Err(RecvTimeoutError::Timeout) => {
                let before = std::mem::replace(&mut done, steps.steps.load(Ordering::Relaxed));
                if before == done {
                    steps.is_given_up.store(true, Ordering::Relaxed);
                    end.give_up();
                    return Err(failed(ReadProblem::TimedOut(limit)));
                }
            }
        }
    }
}

/// Set by the first of two: the work when it ends, or the caller when it gives up.
#[derive(Debug)]
struct WorkEnd {
    is_over: AtomicBool,
    path: PathBuf,
}

impl WorkEnd {
    fn is_first(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }

    fn give_up(&self) {
        let mut stuck = stuck();
        if self.is_first() {
            stuck.push(self.path.clone());
        }
    }
}

struct EndsWhenDropped(Arc<WorkEnd>);

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        let mut stuck = stuck();
        if !self.0.is_first()
            && let Some(at) = stuck.iter().position(|path| *path == self.0.path)
        {
            stuck.swap_remove(at);
        }
    }
}

/// Reads something in a folder, with a time limit. A timeout is logged.
pub fn in_time<T: Send + 'static>(
    folder: &Path,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    within(folder, READ_LIMIT, read).inspect_err(|error| tracing::warn!(%error, "not read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hanging_work_is_abandoned_and_named() {
        let (let_go, hangs) = mpsc::channel::<()>();
        let error = within(Path::new("/net/p"), Duration::from_millis(20), move || hangs.recv().is_ok());
        let error = error.expect_err("it hangs");
        assert_eq!(error.to_string(), "/net/p: it could not be read within 0 seconds");
        // A second call fails at once while it hangs.
        let error = within(Path::new("/net/p"), READ_LIMIT, || ()).expect_err("it still hangs");
        assert!(error.to_string().contains("an earlier read has not returned"), "{error}");
        assert!(within(Path::new("/net/other"), READ_LIMIT, || ()).is_ok());
        drop(let_go);
        while !stuck().is_empty() {
            thread::yield_now();
        }
        assert_eq!(within(Path::new("/net/p"), READ_LIMIT, || 5).expect("done"), 5);
        assert!(within(Path::new("/"), READ_LIMIT, || panic!("on purpose")).is_err());
    }

    #[test]
    fn work_with_progress_is_not_abandoned() {
        let steps = 8;
        let work = move |count: &StepCount| {
            for _ in 0..steps {
                thread::sleep(Duration::from_millis(20));
                count.step().expect("nobody gave up");
            }
            steps
        };
        assert_eq!(
            within_steps(Path::new("/net/slow"), Duration::from_millis(60), work).expect("done"),
            steps
        );
        let (ended, end) = mpsc::channel();
        let hangs = move |count: &StepCount| {
            thread::sleep(Duration::from_millis(80));
            let _ = ended.send(count.step().is_err());
        };
        let error = within_steps(Path::new("/net/hangs"), Duration::from_millis(20), hangs);
        assert!(error.is_err());
        assert_eq!(end.recv(), Ok(true), "what was given up changes nothing more");
    }
}
