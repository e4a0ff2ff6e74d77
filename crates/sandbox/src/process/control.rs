//! The line that keeps a command alive: once it is cut, by whomever, everything the command started is killed.

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

    /// Cutting it twice does no more than cutting it once.
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
    /// Also comes true when the line is dropped.
    pub(crate) async fn wait(&mut self) {
        // An error says that the line is gone, which is the same to the helper.
        let _ = self.0.wait_for(|cut| *cut).await;
    }
}
