//! The guarantee that a request is answered.

use std::fmt;
use std::sync::Arc;

use crate::encode::EncodedLine;
use crate::lanes::ReplyLane;
use crate::queue::{Closed, OutboxQueue};

/// Sends exactly one response, without waiting. Dropped unused, it sends the response given on reservation, on the
/// control lane.
#[must_use = "dropping a slot answers its request with an error"]
pub struct ReplySlot {
    queue: Arc<OutboxQueue>,
    unanswered: Option<Box<dyn FnOnce() -> EncodedLine + Send + Sync>>,
}

impl ReplySlot {
    pub(crate) fn new(
        queue: Arc<OutboxQueue>,
        unanswered: Box<dyn FnOnce() -> EncodedLine + Send + Sync>,
    ) -> Self {
        Self { queue, unanswered: Some(unanswered) }
    }

    /// Responds in order with the connection's messages: behind those sent before.
    pub fn reply(mut self, line: EncodedLine) -> Result<(), Closed> {
        self.unanswered = None;
        self.queue.answer(line, ReplyLane::Ordered)
    }

    /// Responds ahead of the queued messages. Messages sent later still come later.
    pub fn reply_now(mut self, line: EncodedLine) -> Result<(), Closed> {
        self.unanswered = None;
        self.queue.answer(line, ReplyLane::Control)
    }

    /// Waits until the queued responses are below their limit: for a handler with a large response, before it builds
    /// it.
    pub async fn room(&self) {
        // On a closing connection the last responses are sent anyway.
        let _ = self.queue.wait_for_answer_room().await;
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if let Some(unanswered) = self.unanswered.take() {
            // If the connection is gone, no response is needed.
            let _ = self.queue.answer(unanswered(), ReplyLane::Control);
        }
    }
}

impl fmt::Debug for ReplySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySlot").field("answered", &self.unanswered.is_none()).finish_non_exhaustive()
    }
}
