//! Waits for the calls of an ended turn: none of them runs any more when clients are notified of its end.

use std::time::Duration;

use engine::Input;
use futures_util::future::join_all;
use tokio::time::Instant;
use tools::CallScope;

use crate::audience::BoxFuture;
use crate::thread::actor::Actor;

/// How long a stopped turn waits for its calls. A process that hangs in the kernel cannot be killed.
const LIMIT: Duration = Duration::from_secs(5);

impl Actor {
    /// Waits until the stopped calls have ended. Feeds their last inputs first, so that their items end before the turn
    /// does.
    pub(crate) fn await_stopped(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let scopes = self.tasks.take_stopped();
            let ended = join_all(scopes.iter().map(CallScope::ended));
            // The turn has ended, so only the ends of items have an effect.
            for input in self.collect_until(ended).await {
                self.feed(input).await;
            }
        })
    }

    /// Collects all inputs meanwhile: a call may have to send one before it can end.
    async fn collect_until(&mut self, ended: impl Future<Output = Vec<()>>) -> Vec<Input> {
        let (deadline, mut inputs) = (Instant::now() + LIMIT, Vec::new());
        tokio::pin!(ended);
        loop {
            tokio::select! {
                biased;
                _ = &mut ended => break,
                () = tokio::time::sleep_until(deadline) => {
                    let thread = self.thread.id();
                    tracing::warn!(%thread, "a command of a stopped turn does not end; the turn does not wait any longer");
                    break;
                }
                Some(input) = self.finished.recv() => inputs.push(input),
            }
        }
        // Includes inputs that were sent before the end, but no later ones.
        let waiting = self.finished.len();
        inputs.extend(std::iter::from_fn(|| self.finished.try_recv().ok()).take(waiting));
        inputs
    }
}
