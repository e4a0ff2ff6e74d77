//! A time limit for reading: a file system that hangs must not hang the program.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::{Problem, ReadError};

/// How long reading what belongs to one folder may take.
pub const READ_LIMIT: Duration = Duration::from_secs(10);

/// Reads that have not returned keep a thread of the system each.
const MAX_STUCK: usize = 32;

static STUCK: AtomicUsize = AtomicUsize::new(0);

/// Does work that reads beneath `path` on a thread made for it, and gives up on it after `limit`. The caller waits, so it
/// must not be on a worker of an async runtime.
pub fn within<T: Send + 'static>(
    path: &Path,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadError> {
    let failed = |problem: Problem| ReadError::new(path, problem);
    let stuck = STUCK.load(Ordering::Relaxed);
    if stuck >= MAX_STUCK {
        return Err(failed(Problem::TooManyStuck(stuck)));
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let end = Arc::new(End::default());
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
#[derive(Debug, Default)]
struct End(AtomicBool);

impl End {
    fn is_first(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    fn give_up(&self) {
        if self.is_first() {
            STUCK.fetch_add(1, Ordering::SeqCst);
        }
    }
}

struct EndsWhenDropped(Arc<End>);

impl Drop for EndsWhenDropped {
    fn drop(&mut self) {
        if !self.0.is_first() {
            STUCK.fetch_sub(1, Ordering::SeqCst);
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
        assert_eq!(STUCK.load(Ordering::SeqCst), 1);
        drop(let_go);
        while STUCK.load(Ordering::SeqCst) != 0 {
            thread::yield_now();
        }
        assert_eq!(within(Path::new("/"), READ_LIMIT, || 5).expect("done"), 5);
        assert!(within(Path::new("/"), READ_LIMIT, || panic!("on purpose")).is_err());
    }
}
