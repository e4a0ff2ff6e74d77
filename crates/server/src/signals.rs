//! Requests of the operating system to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Where requests to stop come from. The first one asks, the second one insists.
#[derive(Debug)]
pub struct StopSignals(SignalSource);

#[derive(Debug)]
enum SignalSource {
    Process { interrupt: Signal, terminate: Signal },
    Manual(mpsc::Receiver<()>),
}

impl StopSignals {
    /// `SIGINT` and `SIGTERM`. From here on they do not end the process by themselves.
    pub fn of_process() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self(SignalSource::Process { interrupt, terminate }))
    }

    /// For whoever stops the server in another way, and for tests.
    pub fn manual(requests: mpsc::Receiver<()>) -> Self {
        Self(SignalSource::Manual(requests))
    }

    /// The next request to stop. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) {
        let came = match &mut self.0 {
            SignalSource::Process { interrupt, terminate } => tokio::select! {
                came = interrupt.recv() => came,
                came = terminate.recv() => came,
            },
            SignalSource::Manual(requests) => requests.recv().await,
        };
        if came.is_none() {
            // Nobody can ask any more.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[tokio::test]
    async fn signals_of_the_process_ask_instead_of_ending_it() {
        let mut signals = StopSignals::of_process().expect("handlers");
        for signal in [Signal::TERM, Signal::INT] {
            kill_process(getpid(), signal).expect("a signal");
            signals.next().await;
        }
    }
}
