//! The end of the calls that a turn waited for: nothing of them runs any more when clients hear that it is over.

use std::time::Duration;

use engine::{Effect, Input};
use futures_util::future::join_all;
use tokio::time::Instant;
use tools::CallScope;

use crate::actor::Actor;
use crate::audience::BoxFuture;

/// How long a turn that was stopped waits for what it had begun. A process that hangs in the kernel cannot be killed.
const LIMIT: Duration = Duration::from_secs(5);

impl Actor {
    /// Stops what a turn that is over had begun. Nothing for a turn that goes on: a call that a host has answered for it
    /// had begun nothing.
    pub(crate) fn stop_calls(&mut self, effects: &[Effect]) -> Vec<CallScope> {
        let mut scopes = Vec::new();
        if self.thread.active_turn().is_some() {
            return scopes;
        }
        for effect in effects {
            match effect {
                Effect::CancelModel { attempt } => self.tasks.stop_stream(*attempt),
                Effect::CancelTool { call_id } => scopes.extend(self.tasks.stop_call(call_id)),
                _ => {}
            }
        }
        scopes
    }

    /// Waits until everything is gone. What calls say of their end is carried out first, so that their items end before
    /// the turn does.
    pub(crate) fn end_calls(&mut self, scopes: Vec<CallScope>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
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
