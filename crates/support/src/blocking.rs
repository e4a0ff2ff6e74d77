//! Blocking work.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The work panicked, which is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the work was cut short by a defect in this program")]
pub struct Panicked;

/// Runs blocking work on a separate thread.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    run(Box::new(move || {
        let done = work();
        *slot.lock() = Some(done);
    }))
    .await?;
    let done = result.lock().take();
    done.ok_or(Panicked)
}

/// Not generic, so that the code around a task is compiled only once.
async fn run(work: Box<dyn FnOnce() + Send>) -> Result<(), Panicked> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "blocking work was cut short");
        Panicked
    })
}

/// Runs blocking work on this thread, without delaying other tasks of this worker.
pub fn off_worker<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        // A single-threaded runtime serves one caller, and outside a runtime nothing is blocked.
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error() {
        assert_eq!(blocking(|| 7).await, Ok(7));
        assert_eq!(blocking(|| -> u8 { panic!("on purpose") }).await, Err(Panicked));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_beside_work_in_place() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let other = tokio::spawn(async move { sender.send(()).expect("received below") });
        let wait = std::time::Duration::from_secs(20);
        assert_eq!(off_worker(|| receiver.recv_timeout(wait)), Ok(()));
        other.await.expect("no panic");
    }
}
