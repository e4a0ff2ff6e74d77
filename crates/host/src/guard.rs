//! Holds the process of a runtime: ends it in good order, or at once when the host loses its lease, whatever else the host
//! waits for.

use std::time::Duration;

use protocol::DelegationHeartbeatNotification;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::lease::{LeaseState, LeaseTerm};
use crate::link::RuntimeLink;
use runtime_link::RuntimeEnd;

/// How long a runtime may take to stop after the end of its input.
const END_WITHIN: Duration = Duration::from_secs(5);
const HEARTBEAT: &str = "delegation/heartbeat";

/// Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct RuntimeGuard {
    finish: Option<oneshot::Sender<()>>,
}

impl RuntimeGuard {
    /// The process lives no longer than the term of the lease.
    pub(crate) fn new(
        end: Box<dyn RuntimeEnd>,
        link: RuntimeLink,
        lease: watch::Receiver<LeaseState>,
        term: LeaseTerm,
    ) -> Self {
        let (finish, asked) = oneshot::channel();
        tokio::spawn(hold(end, link, (lease, term), asked));
        Self { finish: Some(finish) }
    }

    /// Lets the process stop by itself, and kills it when that takes too long.
    pub(crate) fn finish(mut self) {
        if let Some(finish) = self.finish.take() {
            let _ = finish.send(());
        }
    }
}

/// The lease of the host as its runtime is told of it; nothing where it does not expire.
pub(crate) fn beat(link: &RuntimeLink, lease: LeaseState) {
    if let LeaseState::Until { ends, .. } = lease {
        let left = ends.saturating_duration_since(Instant::now()).as_millis();
        let valid_for_ms = u64::try_from(left).unwrap_or(u64::MAX);
        link.notify_of(HEARTBEAT, &DelegationHeartbeatNotification { valid_for_ms });
    }
}

async fn hold(
    mut end: Box<dyn RuntimeEnd>,
    link: RuntimeLink,
    (mut lease, term): (watch::Receiver<LeaseState>, LeaseTerm),
    mut asked: oneshot::Receiver<()>,
) {
    while lease.borrow_and_update().term() == Some(term) {
        tokio::select! {
            () = end.wait() => return,
            asked = &mut asked => {
                if asked.is_ok() && tokio::time::timeout(END_WITHIN, end.wait()).await.is_ok() {
                    return;
                }
                break;
            }
            changed = lease.changed() => {
                if changed.is_err() {
                    break;
                }
                let now = *lease.borrow();
                if now.term() == Some(term) {
                    beat(&link, now);
                }
            }
        }
    }
    end.kill();
    end.wait().await;
}
