//! The terminals of a thread: commands that outlive their call, each with an id.

mod launch;
mod report;
mod rights;
mod room;
mod session;
mod unread;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use launch::{Launch, LaunchResult};
pub(crate) use report::TerminalReport;
pub(crate) use rights::exceeds;
pub(crate) use room::MANY;
pub(crate) use session::Session;

use crate::CallScope;
use room::{Candidate, MOST, choose};
use session::SessionProgress;

/// How long to wait for terminals that were told to end.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
const IDS: std::ops::RangeInclusive<u32> = 1_000..=99_999;

/// Dropping it kills all terminals.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    inner: Mutex<TerminalTable>,
    /// A terminal was added or removed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct TerminalTable {
    slots: BTreeMap<u32, TerminalSlot>,
    tasks: JoinSet<()>,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
struct TerminalSlot {
    used: u64,
    state: SlotState,
}

#[derive(Debug)]
enum SlotState {
    /// Being decided or started, for a call that may have ended.
    Launching(CallScope),
    Open(Arc<Session>),
}

/// A reserved id. Freed on drop if no terminal was started.
#[derive(Debug)]
pub(crate) struct TerminalReservation {
    terminals: Weak<Terminals>,
    id: u32,
    count: usize,
}

impl Terminals {
    /// Reserves an id, closing an old terminal if needed. `None` if all are too recent to close.
    pub(crate) fn reserve(self: &Arc<Self>, scope: &CallScope) -> Option<TerminalReservation> {
        let mut inner = self.inner();
        if inner.slots.len() >= MOST {
            let id = choose(inner.candidates())?;
            if let Some(TerminalSlot { state: SlotState::Open(session), .. }) = inner.slots.remove(&id) {
                session.stop();
            }
        }
        let id = inner.free_id();
        let slot = TerminalSlot { used: inner.tick(), state: SlotState::Launching(scope.clone()) };
        inner.slots.insert(id, slot);
        Some(TerminalReservation { terminals: Arc::downgrade(self), id, count: inner.slots.len() })
    }

    /// Starts a terminal in its own task.
    pub(crate) fn launch(&self, launch: Launch) -> oneshot::Receiver<LaunchResult> {
        let (answer, launched) = oneshot::channel();
        let mut inner = self.inner();
        while inner.tasks.try_join_next().is_some() {}
        inner.tasks.spawn(launch.run(answer));
        launched
    }

    /// The terminal with this id. Counts as a use.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<Session>> {
        let mut inner = self.inner();
        let now = inner.tick();
        match inner.slots.get_mut(&id) {
            Some(TerminalSlot { used, state: SlotState::Open(session) }) => {
                *used = now;
                Some(session.clone())
            }
            _ => None,
        }
    }

    /// Removes a terminal whose end the model has read.
    pub(crate) fn remove(&self, id: u32) {
        self.inner().slots.remove(&id);
        self.changed.notify_waiters();
    }

    /// Whether there are none, open or starting. A terminal with unread output counts as open.
    pub(crate) fn is_empty(&self) -> bool {
        self.inner().slots.is_empty()
    }

    /// Ends all terminals, and waits until clients are notified or the time limit passes.
    pub(crate) async fn clear(&self) {
        let deadline = Instant::now() + STOP_PATIENCE;
        loop {
            let changed = self.changed.notified();
            let ending = self.stop_all();
            let told = async {
                for session in &ending {
                    session.told().await;
                }
            };
            if tokio::time::timeout_at(deadline, told).await.is_err() {
                return;
            }
            if !self.is_any_abandoned() {
                return;
            }
            if tokio::time::timeout_at(deadline, changed).await.is_err() {
                return;
            }
        }
    }

    fn stop_all(&self) -> Vec<Arc<Session>> {
        let mut inner = self.inner();
        let slots = std::mem::take(&mut inner.slots);
        let mut ending = Vec::new();
        for (id, slot) in slots {
            match slot.state {
                SlotState::Open(session) => ending.push(session),
                SlotState::Launching(_) => drop(inner.slots.insert(id, slot)),
            }
        }
        drop(inner);
        ending.iter().for_each(|session| session.stop());
        ending
    }

    /// Whether something is starting or ending for a call that has ended.
    fn is_any_abandoned(&self) -> bool {
        let gone =
            |slot: &TerminalSlot| matches!(&slot.state, SlotState::Launching(scope) if scope.is_cancelled());
        self.inner().slots.values().any(gone)
    }

    fn inner(&self) -> MutexGuard<'_, TerminalTable> {
        self.inner.lock()
    }
}

impl TerminalTable {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn candidates(&self) -> Vec<Candidate> {
        let open = self.slots.iter().filter_map(|(id, slot)| match &slot.state {
            SlotState::Open(session) => {
                let has_ended = session.progress() >= SessionProgress::Ended;
                Some(Candidate { id: *id, used: slot.used, has_ended })
            }
            SlotState::Launching(_) => None,
        });
        open.collect()
    }

    /// Random, so that ids reveal nothing about other threads.
    fn free_id(&self) -> u32 {
        let size = IDS.end() - IDS.start() + 1;
        let mut id = IDS.start() + u32::from_ne_bytes(random()) % size;
        while self.slots.contains_key(&id) {
            id = if id == *IDS.end() { *IDS.start() } else { id + 1 };
        }
        id
    }
}

impl TerminalReservation {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The number of terminals, including this one.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn fill(self, session: &Arc<Session>) {
        let Some(terminals) = self.terminals.upgrade() else { return };
        if let Some(slot) = terminals.inner().slots.get_mut(&self.id) {
            slot.state = SlotState::Open(session.clone());
        }
        terminals.changed.notify_waiters();
    }
}

impl Drop for TerminalReservation {
    fn drop(&mut self) {
        let Some(terminals) = self.terminals.upgrade() else { return };
        let mut inner = terminals.inner();
        if inner.slots.get(&self.id).is_some_and(|slot| matches!(slot.state, SlotState::Launching(_))) {
            inner.slots.remove(&self.id);
        }
        drop(inner);
        terminals.changed.notify_waiters();
    }
}

/// Six random hexadecimal digits.
pub(crate) fn chunk_id() -> String {
    let bytes: [u8; 3] = random();
    data_encoding::HEXLOWER.encode(&bytes)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        // The system has randomness long before programs run. Uniqueness is checked by the caller.
        tracing::warn!("the system gives no randomness");
    }
    bytes
}
