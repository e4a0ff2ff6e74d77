//! One delegated stream: the host sends events, the turn takes them.
//!
//! A batch is accepted as a whole or not at all, except for events that were accepted before. The queue holds up to two
//! windows: one acknowledged, and one in flight. So granted credit can always be used, and the batch that uses up the
//! rest is acknowledged late, when half a window is free again. A host never has to poll for credit.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::task::{Context, Poll, Waker};

use model::{ModelFailure, StreamEvent};
use protocol::{ModelCancelReason, ModelRequestId, ModelStreamEventResponse, Raw, StreamCredit};
use tokio::sync::watch;

use super::error::DelegationError;
use super::failure;
use super::host::HostId;
use super::reading::read_event;
use support::Responder;

/// The number of recent events whose bytes are compared with repetitions. Older repetitions are assumed equal.
const REMEMBERED_EVENTS: usize = 4_096;

/// Limit of queued notifications. They cannot be refused, so beyond it the stream fails.
const MOST_UNACKNOWLEDGED: StreamCredit = StreamCredit { events: 65_536, bytes: 16 * 1024 * 1024 };

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: ModelRequestId,
    pub(super) host: HostId,
    window: StreamCredit,
    /// Locked while a batch is parsed, so that batches are accepted in order.
    intake: Mutex<Intake>,
    /// Locked only briefly: the turn takes from it.
    queue: Mutex<Queue>,
    /// The host will send nothing more that counts, so another request may follow.
    settled: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Intake {
    next_seq: u64,
    seen: VecDeque<u64>,
    hasher: RandomState,
}

#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<(StreamEvent, u64)>,
    ready_bytes: u64,
    /// Accepted and not acknowledged: it must not have effects yet.
    held: Option<HeldBatch>,
    held_bytes: u64,
    phase: StreamPhase,
    /// The end of the stream, which the turn gets after the events.
    last: Option<ModelFailure>,
    /// Set when the runtime ended the stream: the reason for the host.
    cancel: Option<ModelCancelReason>,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct HeldBatch {
    events: Vec<(StreamEvent, u64)>,
    next_seq: u64,
    responder: Responder<ModelStreamEventResponse, DelegationError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum StreamPhase {
    #[default]
    Open,
    /// Ended: nothing more is accepted.
    Ended,
}

/// A parsed batch.
struct Batch {
    /// Each with its size in the window.
    events: Vec<(StreamEvent, u64)>,
    is_last: bool,
}

impl Stream {
    pub(super) fn new(id: ModelRequestId, host: HostId, window: StreamCredit) -> Self {
        let settled = watch::Sender::new(false);
        Self { id, host, window, intake: Mutex::default(), queue: Mutex::default(), settled }
    }

    /// Accepts a batch and acknowledges it, before the turn gets any of it.
    pub(super) fn take(
        &self,
        seq: u64,
        events: &[Raw],
        responder: Responder<ModelStreamEventResponse, DelegationError>,
    ) {
        let mut intake = self.intake.lock();
        match self.admit(&intake, seq, events) {
            Ok(Admitted::Before) => {
                responder.respond(Ok(self.acknowledgement(&intake, &self.queue.lock(), true)));
            }
            Ok(Admitted::New(fresh)) => self.take_fresh(&mut intake, fresh, responder),
            Err(error) => responder.respond(Err(error)),
        }
    }

    fn take_fresh(
        &self,
        intake: &mut Intake,
        fresh: &[Raw],
        responder: Responder<ModelStreamEventResponse, DelegationError>,
    ) {
        if fresh.len() > self.window.events as usize {
            let error = DelegationError::BatchTooLarge { events: fresh.len(), window: self.window.events };
            return responder.respond(Err(error));
        }
        let credit = {
            let queue = self.queue.lock();
            self.refused_credit(&queue, fresh)
        };
        if let Some(credit) = credit {
            let error = DelegationError::OverCredit { next_seq: intake.next_seq, credit };
            return responder.respond(Err(error));
        }
        let batch = match self.read(intake, fresh) {
            Ok(batch) => batch,
            Err(error) => return responder.respond(Err(error)),
        };
        let mut queue = self.queue.lock();
        if queue.phase == StreamPhase::Ended {
            // The turn was interrupted while the batch was parsed.
            return responder.respond(Err(DelegationError::StreamClosed { next_seq: intake.next_seq }));
        }
        intake.advance(fresh);
        if batch.is_last {
            queue.phase = StreamPhase::Ended;
            self.settled.send_replace(true);
        }
        if let Some(before) = queue.held.take() {
            // The response to this batch will grant credit; the previous one need not wait for that.
            self.acknowledge(&mut queue, before);
        }
        let held = HeldBatch { events: batch.events, next_seq: intake.next_seq, responder };
        queue.held_bytes = held.events.iter().map(|(_, bytes)| bytes).sum();
        queue.held = Some(held);
        self.release(&mut queue);
    }

    /// The available credit, if it is too little for this batch.
    fn refused_credit(&self, queue: &Queue, fresh: &[Raw]) -> Option<StreamCredit> {
        let bytes = bytes_of(fresh);
        // An event larger than the window waits until the queue is empty, and then counts as a whole window.
        let fits = queue.events() + fresh.len() as u64 <= 2 * u64::from(self.window.events)
            && queue.bytes() + bytes.min(self.window.bytes) <= 2 * self.window.bytes
            && (bytes <= self.window.bytes || queue.events() == 0);
        (!fits).then(|| self.credit(queue))
    }

    /// The form without acknowledgement. A batch that cannot be accepted fails the stream, since the host gets no
    /// error.
    pub(super) fn hear(&self, seq: u64, events: &[Raw]) -> Result<(), DelegationError> {
        let mut intake = self.intake.lock();
        let fresh = match self.admit(&intake, seq, events) {
            Ok(Admitted::Before) => return Ok(()),
            Ok(Admitted::New(fresh)) => fresh,
            Err(gap @ DelegationError::SequenceGap { .. }) => {
                self.break_off(failure::protocol_error(&gap));
                return Err(gap);
            }
            Err(error) => return Err(error),
        };
        let batch = self.read(&intake, fresh)?;
        let mut queue = self.queue.lock();
        if queue.phase == StreamPhase::Ended {
            return Err(DelegationError::StreamClosed { next_seq: intake.next_seq });
        }
        let (events, bytes) = (queue.events() + fresh.len() as u64, queue.bytes() + bytes_of(fresh));
        if events > u64::from(MOST_UNACKNOWLEDGED.events) || bytes > MOST_UNACKNOWLEDGED.bytes {
            let error =
                DelegationError::OverCredit { next_seq: intake.next_seq, credit: self.credit(&queue) };
            queue.break_off(failure::protocol_error(&error));
            return Err(error);
        }
        intake.advance(fresh);
        if batch.is_last {
            queue.phase = StreamPhase::Ended;
            self.settled.send_replace(true);
        }
        if let Some(before) = queue.held.take() {
            self.acknowledge(&mut queue, before);
        }
        queue.append(batch.events);
        Ok(())
    }

    /// The part of a batch that is new.
    fn admit<'a>(
        &self,
        intake: &Intake,
        seq: u64,
        events: &'a [Raw],
    ) -> Result<Admitted<'a>, DelegationError> {
        let expected = intake.next_seq;
        let end = seq.saturating_add(events.len() as u64);
        let is_before = end <= expected && !(events.is_empty() && seq == expected);
        let is_open = self.queue.lock().phase == StreamPhase::Open;
        if !is_open && !is_before {
            return Err(DelegationError::StreamClosed { next_seq: expected });
        }
        if seq > expected {
            return Err(DelegationError::SequenceGap { given: seq, expected });
        }
        let known = usize::try_from(expected - seq).unwrap_or(usize::MAX).min(events.len());
        let (before, fresh) = events.split_at(known);
        if is_open && let Some(seq) = intake.mismatch(seq, before) {
            let error = DelegationError::EventMismatch { seq };
            self.break_off(failure::protocol_error(&error));
            return Err(error);
        }
        Ok(if is_before { Admitted::Before } else { Admitted::New(fresh) })
    }

    /// Parses every event once. An invalid one fails the turn, and nothing of its batch is accepted.
    fn read(&self, intake: &Intake, fresh: &[Raw]) -> Result<Batch, DelegationError> {
        let mut batch = Batch { events: Vec::with_capacity(fresh.len()), is_last: false };
        let all = bytes_of(fresh).max(self.window.bytes);
        for (at, raw) in fresh.iter().enumerate() {
            // Events after a terminal one are acknowledged and ignored.
            if batch.is_last {
                break;
            }
            let event = read_event(raw.get()).map_err(|problem| {
                let error = DelegationError::BadEvent { seq: intake.next_seq + at as u64, problem };
                self.break_off(failure::protocol_error(&error));
                error
            })?;
            if let Some(event) = event {
                batch.is_last = event.is_terminal();
                let bytes = raw.get().len() as u128 * u128::from(self.window.bytes) / u128::from(all);
                batch.events.push((event, u64::try_from(bytes).unwrap_or(u64::MAX)));
            }
        }
        Ok(batch)
    }

    /// Acknowledges the held batch as soon as there is credit to grant, and passes it to the turn.
    fn release(&self, queue: &mut Queue) {
        let is_over = queue.phase == StreamPhase::Ended;
        let events = u64::from(self.window.events);
        let fits = 2 * queue.events() <= 3 * events && 2 * queue.bytes() <= 3 * self.window.bytes;
        if let Some(held) = queue.held.take_if(|_| is_over || fits) {
            self.acknowledge(queue, held);
        }
    }

    /// Called with the queue locked, so before any effect of the events.
    fn acknowledge(&self, queue: &mut Queue, held: HeldBatch) {
        let HeldBatch { events, next_seq, responder } = held;
        queue.held_bytes = 0;
        queue.append(events);
        responder.respond(Ok(ModelStreamEventResponse {
            next_seq,
            credit: self.credit(queue),
            duplicate: false,
        }));
    }

    fn acknowledgement(&self, intake: &Intake, queue: &Queue, duplicate: bool) -> ModelStreamEventResponse {
        ModelStreamEventResponse { next_seq: intake.next_seq, credit: self.credit(queue), duplicate }
    }

    /// The credit beyond what is acknowledged.
    fn credit(&self, queue: &Queue) -> StreamCredit {
        if queue.phase == StreamPhase::Ended {
            return StreamCredit { events: 0, bytes: 0 };
        }
        let events = (2 * u64::from(self.window.events)).saturating_sub(queue.events());
        let bytes = (2 * self.window.bytes).saturating_sub(queue.bytes());
        StreamCredit {
            events: u32::try_from(events).unwrap_or(u32::MAX).min(self.window.events),
            bytes: bytes.min(self.window.bytes),
        }
    }

    /// The host ended the stream without a terminal event. No effect on a stream that has ended.
    pub(super) fn end(&self, failure: ModelFailure) {
        let mut queue = self.queue.lock();
        if queue.phase == StreamPhase::Open {
            queue.phase = StreamPhase::Ended;
            queue.last = Some(failure);
            self.release(&mut queue);
            queue.wake();
        }
        drop(queue);
        self.settled.send_replace(true);
    }

    /// The runtime ends the stream: host and turn are notified.
    fn break_off(&self, failure: ModelFailure) {
        self.queue.lock().break_off(failure);
    }

    /// Events are no longer taken. Returns the cancel reason for the host, if it must be told to stop.
    pub(super) fn close(&self, otherwise: ModelCancelReason) -> Option<ModelCancelReason> {
        let next_seq = {
            let mut intake = self.intake.lock();
            intake.seen = VecDeque::new();
            intake.next_seq
        };
        let mut queue = self.queue.lock();
        queue.phase = StreamPhase::Ended;
        queue.ready = VecDeque::new();
        (queue.ready_bytes, queue.held_bytes) = (0, 0);
        queue.last = None;
        let held = queue.held.take();
        let cancel = queue.cancel.take();
        drop(queue);
        if let Some(held) = held {
            held.responder.respond(Err(DelegationError::StreamClosed { next_seq }));
        }
        let must_be_told = !*self.settled.borrow();
        must_be_told.then(|| cancel.unwrap_or(otherwise))
    }

    pub(super) fn settle(&self) {
        self.settled.send_replace(true);
    }

    /// Returns when another request may follow.
    pub(super) async fn settled(&self) {
        // The sender lives as long as this stream.
        let _ = self.settled.subscribe().wait_for(|settled| *settled).await;
    }

    /// The next event; `None` after the last one.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, ModelFailure>>> {
        let mut queue = self.queue.lock();
        if let Some((event, bytes)) = queue.ready.pop_front() {
            queue.ready_bytes = queue.ready_bytes.saturating_sub(bytes);
            self.release(&mut queue);
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(failure) = queue.last.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        if queue.phase == StreamPhase::Ended {
            return Poll::Ready(None);
        }
        if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            queue.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

enum Admitted<'a> {
    /// All of it was accepted before.
    Before,
    New(&'a [Raw]),
}

impl Intake {
    fn advance(&mut self, taken: &[Raw]) {
        self.next_seq += taken.len() as u64;
        for raw in taken {
            if self.seen.len() == REMEMBERED_EVENTS {
                self.seen.pop_front();
            }
            self.seen.push_back(self.hasher.hash_one(raw.get()));
        }
    }

    /// The first of these events that differs from its earlier version.
    fn mismatch(&self, seq: u64, again: &[Raw]) -> Option<u64> {
        let oldest = self.next_seq - self.seen.len() as u64;
        let differs = |(seq, raw): &(u64, &Raw)| {
            let at = seq.checked_sub(oldest).and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| self.seen.get(at)).is_some_and(|seen| *seen != self.hasher.hash_one(raw.get()))
        };
        (seq..).zip(again).find(differs).map(|(seq, _)| seq)
    }
}

impl Queue {
    fn events(&self) -> u64 {
        (self.ready.len() + self.held.as_ref().map_or(0, |held| held.events.len())) as u64
    }

    fn bytes(&self) -> u64 {
        self.ready_bytes + self.held_bytes
    }

    fn append(&mut self, events: Vec<(StreamEvent, u64)>) {
        self.ready_bytes += events.iter().map(|(_, bytes)| bytes).sum::<u64>();
        self.ready.extend(events);
        self.wake();
    }

    fn break_off(&mut self, failure: ModelFailure) {
        if self.phase == StreamPhase::Open {
            self.phase = StreamPhase::Ended;
            self.last = Some(failure);
            self.cancel = Some(ModelCancelReason::ProtocolError);
            self.wake();
        }
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

fn bytes_of(events: &[Raw]) -> u64 {
    events.iter().map(|raw| raw.get().len() as u64).sum()
}
