//! State shared by the two ends of an outbox: the lanes, whether they are open, and the waiting senders.

use parking_lot::{Mutex, MutexGuard};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::encode::EncodedLine;
use crate::lane::LaneEntry;
use crate::lanes::{HeldBytes, OutboxLanes, ReplyLane};
use crate::message::{ENTRY_BYTES, OutgoingMessage};

#[derive(Debug, Clone, Copy)]
pub struct OutboxLimits {
    /// Requests that are accepted and not answered.
    pub max_pending_requests: usize,
    /// Limit on bytes of messages that are not written yet.
    pub max_message_bytes: usize,
    /// Limit on bytes of unwritten answers, above which no further request is accepted.
    pub max_answer_bytes: usize,
}

impl Default for OutboxLimits {
    fn default() -> Self {
        let max_bytes = 8 * 1024 * 1024;
        Self { max_pending_requests: 1024, max_message_bytes: max_bytes, max_answer_bytes: max_bytes }
    }
}

/// The connection accepts nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// Why something was not accepted at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the outbound queue is full")]
    Full,
    #[error("the connection is closed")]
    Closed,
}

#[derive(Debug)]
pub(crate) struct OutboxQueue {
    limits: OutboxLimits,
    state: Mutex<QueueState>,
    /// One permit per request that may be accepted.
    slots: Semaphore,
    /// One permit per byte of message space. First come, first served.
    room: Semaphore,
    arrived: Notify,
    answers_left: Notify,
}

#[derive(Debug, Default)]
struct QueueState {
    lanes: OutboxLanes,
    open_requests: usize,
    phase: QueuePhase,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum QueuePhase {
    #[default]
    Open,
    /// Queued messages are still written, and accepted requests may still be answered.
    Closing,
    /// The writer has ended.
    Dead,
}

/// The writer's next step.
#[derive(Debug)]
pub(crate) enum NextBatch {
    Entries(Vec<LaneEntry>),
    Nothing,
    End,
}

impl OutboxQueue {
    pub(crate) fn new(mut limits: OutboxLimits) -> Self {
        // With a limit of 0 nothing could ever be sent; a semaphore also has a maximum.
        limits.max_answer_bytes = limits.max_answer_bytes.max(1);
        limits.max_message_bytes = limits.max_message_bytes.clamp(ENTRY_BYTES, u32::MAX as usize);
        Self {
            limits,
            state: Mutex::default(),
            slots: Semaphore::new(limits.max_pending_requests.clamp(1, Semaphore::MAX_PERMITS)),
            room: Semaphore::new(limits.max_message_bytes),
            arrived: Notify::new(),
            answers_left: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while it holds the lock, and the counts would still be consistent.
        self.state.lock()
    }

    /// The state, if the queue is open.
    fn open_state(&self) -> Result<MutexGuard<'_, QueueState>, Closed> {
        let state = self.state();
        if state.phase == QueuePhase::Open { Ok(state) } else { Err(Closed) }
    }

    pub(crate) fn slots(&self) -> &Semaphore {
        &self.slots
    }

    pub(crate) fn room(&self) -> &Semaphore {
        &self.room
    }

    /// The permits that a message needs. One that is larger than the queue waits until it is alone.
    pub(crate) fn price(&self, message: &OutgoingMessage) -> u32 {
        let price = message.cost().min(self.limits.max_message_bytes);
        u32::try_from(price).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&self, message: OutgoingMessage, paid: SemaphorePermit<'_>) -> Result<(), Closed> {
        let change = self.open_state()?.lanes.push_message(message, paid.num_permits());
        paid.forget();
        self.room.add_permits(change);
        self.arrived.notify_one();
        Ok(())
    }

    /// Counts an accepted request.
    pub(crate) fn accept(&self, slot: SemaphorePermit<'_>) -> Result<(), Closed> {
        self.open_state()?.open_requests += 1;
        slot.forget();
        Ok(())
    }

    /// Responds to an accepted request, whatever is queued, and frees its slot.
    pub(crate) fn answer(&self, line: EncodedLine, way: ReplyLane) -> Result<(), Closed> {
        let mut state = self.state();
        state.open_requests -= 1;
        let alive = state.phase != QueuePhase::Dead;
        if alive {
            state.lanes.push_answer(line, way);
        }
        drop(state);
        self.slots.add_permits(1);
        self.arrived.notify_one();
        if alive { Ok(()) } else { Err(Closed) }
    }

    /// Queues a response without a slot.
    pub(crate) fn answer_without_slot(&self, line: EncodedLine) -> Result<(), Closed> {
        self.open_state()?.lanes.push_answer(line, ReplyLane::Control);
        self.arrived.notify_one();
        Ok(())
    }

    /// Whether another response may be queued.
    pub(crate) fn answer_room(&self) -> Result<(), Refused> {
        self.answers_below(self.limits.max_answer_bytes)
    }

    fn answers_below(&self, max_bytes: usize) -> Result<(), Refused> {
        let held = self.open_state().map_err(|Closed| Refused::Closed)?.lanes.held();
        if held.answers < max_bytes { Ok(()) } else { Err(Refused::Full) }
    }

    pub(crate) async fn wait_for_answer_room(&self) -> Result<(), Closed> {
        self.wait_for_answers_below(self.limits.max_answer_bytes).await
    }

    pub(crate) async fn wait_for_answers_below(&self, max_bytes: usize) -> Result<(), Closed> {
        loop {
            // Created before the check, so that no change in between is missed.
            let left = self.answers_left.notified();
            match self.answers_below(max_bytes) {
                Ok(()) => return Ok(()),
                Err(Refused::Closed) => return Err(Closed),
                Err(Refused::Full) => left.await,
            }
        }
    }

    /// The entries to write next, see [`OutboxLanes::take`].
    pub(crate) fn take(&self, max_bytes: usize) -> NextBatch {
        let mut state = self.state();
        let entries = state.lanes.take(max_bytes);
        match state.phase {
            _ if !entries.is_empty() => NextBatch::Entries(entries),
            QueuePhase::Open => NextBatch::Nothing,
            QueuePhase::Closing if state.open_requests > 0 => NextBatch::Nothing,
            QueuePhase::Closing | QueuePhase::Dead => NextBatch::End,
        }
    }

    pub(crate) async fn wait_for_arrival(&self) {
        self.arrived.notified().await;
    }

    /// Returns the charges of written entries.
    pub(crate) fn settle(&self, written: HeldBytes) {
        self.state().lanes.settle(written);
        self.room.add_permits(written.messages);
        if written.answers > 0 {
            self.answers_left.notify_waiters();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().lanes.is_empty()
    }

    pub(crate) fn held(&self) -> HeldBytes {
        self.state().lanes.held()
    }

    pub(crate) fn open_requests(&self) -> usize {
        self.state().open_requests
    }

    /// Accepts nothing more. Queued messages are still written.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        if state.phase == QueuePhase::Open {
            state.phase = QueuePhase::Closing;
        }
        drop(state);
        self.wake_all();
    }

    /// The writer has ended: queued messages are lost.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        state.phase = QueuePhase::Dead;
        let lost = std::mem::take(&mut state.lanes);
        drop(state);
        drop(lost);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.slots.close();
        self.room.close();
        self.answers_left.notify_waiters();
        self.arrived.notify_one();
    }
}
