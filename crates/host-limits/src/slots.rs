//! Room for runtimes: no more than a host may have at once. Tasks beyond that wait, by priority, then by age.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

/// The place of a task in the queue: the least is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePlace {
    /// Higher priorities are smaller.
    rank: i64,
    created_at_ms: i64,
    number: u64,
}

#[derive(Debug, Default)]
struct SlotQueue {
    used: usize,
    last_number: u64,
    waiting: BTreeMap<QueuePlace, oneshot::Sender<RuntimeSlot>>,
}

/// All room of a host.
#[derive(Debug)]
pub struct RuntimeSlots {
    most: Option<usize>,
    queue: Mutex<SlotQueue>,
    /// Whether anybody waits. Then runtimes without work make room.
    is_crowded: watch::Sender<bool>,
}

/// Room for one runtime, for as long as it is held.
#[derive(Debug)]
pub struct RuntimeSlot {
    slots: Arc<RuntimeSlots>,
}

/// Room, or a place in the queue.
#[derive(Debug)]
pub enum SlotClaim {
    Taken(RuntimeSlot),
    Queued(oneshot::Receiver<RuntimeSlot>),
}

impl RuntimeSlots {
    pub fn new(most: Option<usize>) -> Arc<Self> {
        let most = most.map(|most| most.max(1));
        Arc::new(Self { most, queue: Mutex::default(), is_crowded: watch::Sender::new(false) })
    }

    pub fn is_limited(&self) -> bool {
        self.most.is_some()
    }

    pub fn queued(&self) -> usize {
        self.queue.lock().waiting.values().filter(|waiting| !waiting.is_closed()).count()
    }

    pub fn crowded(&self) -> watch::Receiver<bool> {
        self.is_crowded.subscribe()
    }

    pub fn claim(self: &Arc<Self>, priority: i64, created_at_ms: i64) -> SlotClaim {
        let mut queue = self.queue.lock();
        if self.most.is_none_or(|most| queue.used < most) {
            queue.used += 1;
            return SlotClaim::Taken(RuntimeSlot { slots: self.clone() });
        }
        queue.last_number += 1;
        let place = QueuePlace { rank: priority.saturating_neg(), created_at_ms, number: queue.last_number };
        let (sender, receiver) = oneshot::channel();
        queue.waiting.insert(place, sender);
        self.is_crowded.send_replace(true);
        SlotClaim::Queued(receiver)
    }

    /// Room is free: for whoever is next.
    fn give_back(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        let next = queue.waiting.pop_first();
        if next.is_none() {
            queue.used -= 1;
        }
        let is_crowded = !queue.waiting.is_empty();
        drop(queue);
        self.is_crowded.send_if_modified(|crowded| std::mem::replace(crowded, is_crowded) != is_crowded);
        if let Some((_, waiting)) = next {
            // Where nobody waits any more, dropping the room gives it to the one after.
            drop(waiting.send(RuntimeSlot { slots: self.clone() }));
        }
    }
}

impl Drop for RuntimeSlot {
    fn drop(&mut self) {
        self.slots.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(claim: SlotClaim) -> oneshot::Receiver<RuntimeSlot> {
        match claim {
            SlotClaim::Queued(waiting) => waiting,
            SlotClaim::Taken(_) => panic!("there was room"),
        }
    }

    #[test]
    fn tasks_wait_by_priority_then_by_age_and_no_room_is_lost() {
        let slots = RuntimeSlots::new(Some(1));
        let SlotClaim::Taken(first) = slots.claim(0, 50) else { panic!("no room") };
        let mut young = queued(slots.claim(0, 30));
        let mut old = queued(slots.claim(0, 10));
        let left = queued(slots.claim(9, 90));
        let mut urgent = queued(slots.claim(1, 99));
        assert_eq!((slots.queued(), *slots.crowded().borrow()), (4, true));
        drop(left);
        drop(first);
        let slot = urgent.try_recv().expect("the most urgent one that still waits");
        assert!(old.try_recv().is_err() && young.try_recv().is_err());
        drop(slot);
        let slot = old.try_recv().expect("the older one");
        drop(slot);
        let slot = young.try_recv().expect("the last one");
        assert!(!*slots.crowded().borrow());
        drop(slot);
        assert!(matches!(slots.claim(0, 0), SlotClaim::Taken(_)));
        // Unread room goes to the next one too.
        let SlotClaim::Taken(first) = slots.claim(0, 1) else { panic!("no room") };
        let unread = queued(slots.claim(0, 2));
        drop(first);
        drop(unread);
        assert!(matches!(slots.claim(0, 3), SlotClaim::Taken(_)));
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let slots = RuntimeSlots::new(None);
        let held: Vec<_> = (0..100).map(|at| slots.claim(0, at)).collect();
        assert!(held.iter().all(|claim| matches!(claim, SlotClaim::Taken(_))));
    }
}
