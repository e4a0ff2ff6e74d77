//! The control pipe that keeps a command alive: when it closes, everything the command started is killed.

use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Control {
    /// The helper waits for the end of this pipe.
    line: Mutex<Option<OwnedFd>>,
    cut: watch::Sender<bool>,
}

impl Control {
    pub(crate) fn new(line: OwnedFd) -> Self {
        Self { line: Mutex::new(Some(line)), cut: watch::Sender::new(false) }
    }

    /// Repeating it has no effect.
    pub(crate) fn cut(&self) {
        drop(self.line.lock().take());
        self.cut.send_replace(true);
    }

    pub(crate) fn subscribe(&self) -> WhenCut {
        WhenCut(self.cut.subscribe())
    }
}

pub(crate) struct WhenCut(watch::Receiver<bool>);

impl WhenCut {
    /// Also resolves when the pipe is dropped.
    pub(crate) async fn wait(&mut self) {
        // An error means that the pipe is gone, which is equivalent.
        let _ = self.0.wait_for(|cut| *cut).await;
    }
}
