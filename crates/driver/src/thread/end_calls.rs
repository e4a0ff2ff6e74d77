//! The end of the calls that a turn waited for: nothing of them runs any more when clients hear that it is over.

use std::time::Duration;

use engine::Input;
use futures_util::future::join_all;
use tokio::time::Instant;
use tools::CallScope;

use crate::audience::BoxFuture;
use crate::thread::actor::Actor;

/// How long a turn that was stopped waits for what it had begun. A process that hangs in the kernel cannot be killed.
const LIMIT: Duration = Duration::from_secs(5);

impl Actor {
    /// Waits until the calls that were stopped are gone. What they say of their end is carried out first, so that their
    /// items end before the turn does.
    pub(crate) fn await_stopped(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let scopes = self.tasks.take_stopped();
            let ended = join_all(scopes.iter().map(CallScope::ended));
            // The turn is over, so that only the ends of items have any effect.
            for input in self.hear_until(ended).await {
                self.feed(input).await;
            }
        })
    }

    /// Everything that comes in meanwhile: what is about to end may have to say so before it can.
    async fn hear_until(&mut self, ended: impl Future<Output = Vec<()>>) -> Vec<Input> {
        let (deadline, mut heard) = (Instant::now() + LIMIT, Vec::new());
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
                Some(input) = self.finished.recv() => heard.push(input),
            }
        }
        // Said before the end, and not by what goes on beside.
        let waiting = self.finished.len();
        heard.extend(std::iter::from_fn(|| self.finished.try_recv().ok()).take(waiting));
        heard
    }
}
