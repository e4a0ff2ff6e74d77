//! A time limit for reading: a file system that hangs must not hang the program.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{Problem, ReadError};

/// How long reading what belongs to one folder may take.
pub const READ_LIMIT: Duration = Duration::from_secs(10);

/// Reads that have not returned keep a thread of the system each.
const MAX_STUCK: usize = 32;

/// What was being read by those that were given up and have not returned.
static STUCK: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn stuck() -> MutexGuard<'static, Vec<PathBuf>> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does work that reads beneath `path` on a thread made for it, and gives up on it after `limit`. As long as that thread has
/// not returned, nobody waits for the same path again. The caller waits, so it must not be on a worker of an async runtime.
pub fn within<T: Send + 'static>(
    path: &Path,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    let failed = |problem: Problem| ReadError::new(path, problem);
    let (count, is_same) = {
        let stuck = stuck();
        (stuck.len(), stuck.iter().any(|other| other == path))
    };
    if is_same || count >= MAX_STUCK {
        return Err(failed(Problem::Stuck(count)));
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let end = Arc::new(End { is_over: AtomicBool::new(false), path: path.to_owned() });
    let ended = EndsWhenDropped(end.clone());
    let read = move || {
        let _ended = ended;
        // Nobody takes the result of work that was given up.
        let _ = sender.send(work());
    };
    let started = thread::Builder::new().name("read".to_owned()).spawn(read);
    started.map_err(|error| failed(error.into()))?;
    receiver.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => {
            end.give_up();
            failed(Problem::TimedOut(limit))
        }
        RecvTimeoutError::Disconnected => failed(std::io::Error::other("reading broke off").into()),
    })
}

/// Set by whoever is first: the work that ends, or the caller who waits no longer.
#[derive(Debug)]
struct End {
    is_over: AtomicBool,
    path: PathBuf,
}

impl End {
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

struct EndsWhenDropped(Arc<End>);

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_hangs_is_given_up_and_named() {
        let (let_go, hangs) = mpsc::channel::<()>();
        let error = within(Path::new("/net/p"), Duration::from_millis(20), move || hangs.recv().is_ok());
        let error = error.expect_err("it hangs");
        assert_eq!(error.to_string(), "/net/p: it could not be read within 0 seconds");
        // Nobody waits a second time while it hangs.
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
}
