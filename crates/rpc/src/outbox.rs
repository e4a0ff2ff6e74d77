//! The sending end of one connection. Every queue in it is bounded, and a full queue makes its producer wait:
//!
//! | what | limit | who waits |
//! |---|---|---|
//! | accepted, unanswered requests | a count | [`Outbox::reserve`], so the reader of the connection |
//! | unwritten responses | bytes | [`Outbox::reserve`] and [`Outbox::answer`], so the reader of the connection |
//! | unwritten messages | bytes | [`Outbox::send`], so their producers; first come, first served |
//!
//! A request is accepted only with a [`ReplySlot`], and a slot sends exactly one response without waiting, so every
//! request gets one. Responses and messages have separate limits: a flood of deltas does not prevent reading and
//! answering requests. A single message larger than its limit waits until the queue is empty.
//!
//! There are two lanes. Messages use the ordered one and leave in the order of sending, except for deltas of one text,
//! which are merged while they wait (see [`OutgoingMessage`]). A response uses either:
//!
//! - [`ReplySlot::reply`] uses the ordered lane: after every earlier message and before every later one. For a
//!   response that summarises earlier messages, such as a snapshot.
//! - [`ReplySlot::reply_now`] uses the control lane: it passes queued messages, and no later message passes it. So the
//!   response to a request still precedes the messages that the request causes. For all others.
//!
//! The control lane goes first, but a message older than the queued responses gets every 33rd turn, so that a peer's
//! constant requests do not delay its own notifications for ever. Bytes count until they are written, not until they
//! are taken, so the batch that a slow reader does not accept counts too.

use std::sync::Arc;

use tokio::sync::TryAcquireError;

use crate::drain::Backlog;
use crate::encode::EncodedLine;
use crate::message::OutgoingMessage;
use crate::queue::{Closed, OutboxLimits, OutboxQueue, Refused};
use crate::reply::ReplySlot;

/// Sends on one connection. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub struct Outbox {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    queue: Arc<OutboxQueue>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Outbox {
    /// The two ends: the sender, and the writer's backlog.
    pub fn open(limits: OutboxLimits) -> (Self, Backlog) {
        let queue = Arc::new(OutboxQueue::new(limits));
        let handle = Arc::new(Handle { queue: queue.clone() });
        (Self { handle }, Backlog::new(queue))
    }

    fn queue(&self) -> &OutboxQueue {
        &self.handle.queue
    }

    /// Waits until one more request may be accepted. `unanswered` makes the response for a request whose slot is
    /// dropped unused, for example because its handler panicked. It must not panic itself.
    pub async fn reserve(
        &self,
        unanswered: impl FnOnce() -> EncodedLine + Send + Sync + 'static,
    ) -> Result<ReplySlot, Closed> {
        let slot = self.queue().slots().acquire().await.map_err(|_| Closed)?;
        self.queue().wait_for_answer_room().await?;
        self.queue().accept(slot)?;
        Ok(ReplySlot::new(self.handle.queue.clone(), Box::new(unanswered)))
    }

    /// Like [`Outbox::reserve`], without waiting. A refusal can be reported with [`Outbox::answer`].
    pub fn try_reserve(
        &self,
        unanswered: impl FnOnce() -> EncodedLine + Send + Sync + 'static,
    ) -> Result<ReplySlot, Refused> {
        let slot = self.queue().slots().try_acquire().map_err(|error| refused(&error))?;
        self.queue().answer_room()?;
        self.queue().accept(slot).map_err(|Closed| Refused::Closed)?;
        Ok(ReplySlot::new(self.handle.queue.clone(), Box::new(unanswered)))
    }

    /// Sends a response without a slot on the control lane: for an invalid line, or a refusal. Waits while the queued
    /// responses exceed their limit.
    pub async fn answer(&self, line: EncodedLine) -> Result<(), Closed> {
        self.queue().wait_for_answer_room().await?;
        self.queue().answer_without_slot(line)
    }

    /// Waits until the queued responses hold less than this, for a peer with a smaller limit.
    pub async fn wait_for_answers_below(&self, max_bytes: usize) -> Result<(), Closed> {
        self.queue().wait_for_answers_below(max_bytes).await
    }

    /// Queues a message, waiting for space. Dropping the future before it is done discards the message.
    pub async fn send(&self, message: OutgoingMessage) -> Result<(), Closed> {
        let price = self.queue().price(&message);
        let paid = self.queue().room().acquire_many(price).await.map_err(|_| Closed)?;
        self.queue().push(message, paid)
    }

    /// Queues a message if there is space. A refused message is lost: the caller drops it, or the connection.
    pub fn try_send(&self, message: OutgoingMessage) -> Result<(), Refused> {
        let price = self.queue().price(&message);
        let paid = self.queue().room().try_acquire_many(price).map_err(|error| refused(&error))?;
        self.queue().push(message, paid).map_err(|Closed| Refused::Closed)
    }

    /// Accepts nothing more. Queued messages are still written and open slots may be used; then the writer ends.
    pub fn close(&self) {
        self.queue().close();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.queue().room().is_closed()
    }

    /// Requests that are accepted and not answered.
    pub fn open_requests(&self) -> usize {
        self.queue().open_requests()
    }

    /// Bytes of messages that are not written yet.
    pub fn message_bytes(&self) -> usize {
        self.queue().held().messages
    }

    /// Bytes of answers that are not written yet.
    pub fn answer_bytes(&self) -> usize {
        self.queue().held().answers
    }
}

fn refused(error: &TryAcquireError) -> Refused {
    match error {
        TryAcquireError::Closed => Refused::Closed,
        TryAcquireError::NoPermits => Refused::Full,
    }
}
