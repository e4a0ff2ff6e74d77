//! The promise that a request will be answered.

use std::fmt;
use std::sync::Arc;

use crate::encode::EncodedLine;
use crate::lanes::ReplyLane;
use crate::queue::{Closed, OutboxQueue};

/// Sends exactly one answer, without waiting. Dropped unused, it sends the answer that was given when it was
/// reserved, by the control lane.
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

    /// Answers in order with the messages of the connection: behind those sent before.
    pub fn reply(mut self, line: EncodedLine) -> Result<(), Closed> {
        self.unanswered = None;
        self.queue.answer(line, ReplyLane::Ordered)
    }

    /// Answers ahead of the messages that wait. Those sent afterwards still come afterwards.
    pub fn reply_now(mut self, line: EncodedLine) -> Result<(), Closed> {
        self.unanswered = None;
        self.queue.answer(line, ReplyLane::Control)
    }

    /// Waits until the answers that wait hold less than their bound: for a handler whose answer is large, before
    /// it makes it.
    pub async fn room(&self) {
        // A connection that closes takes the last answers as they come.
        let _ = self.queue.wait_for_answer_room().await;
    }
}

impl Drop for ReplySlot {
    fn drop(&mut self) {
        if let Some(unanswered) = self.unanswered.take() {
            // When the connection is gone, nobody is left to tell.
            let _ = self.queue.answer(unanswered(), ReplyLane::Control);
        }
    }
}

impl fmt::Debug for ReplySlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplySlot").field("answered", &self.unanswered.is_none()).finish_non_exhaustive()
    }
}
