//! Requests about the same thread run one after the other, in the order in which they came; all others at once.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

/// One lane per key, for as long as somebody stands in it.
#[derive(Debug, Default)]
pub(crate) struct RequestLanes {
    table: Mutex<LaneTable>,
}

#[derive(Debug, Default)]
struct LaneTable {
    last: HashMap<String, Last>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Last {
    ticket: u64,
    /// Ends when the place is given up.
    left: oneshot::Receiver<()>,
}

impl RequestLanes {
    fn table(&self) -> MutexGuard<'_, LaneTable> {
        self.table.lock()
    }

    /// Takes the last place of a lane.
    pub(crate) fn enter(self: &Arc<Self>, key: &str) -> LanePlace {
        let (leave, left) = oneshot::channel();
        let mut table = self.table();
        let ticket = table.next_ticket;
        table.next_ticket += 1;
        let before = table.last.insert(key.to_owned(), Last { ticket, left });
        drop(table);
        LanePlace {
            lanes: Arc::clone(self),
            key: key.to_owned(),
            ticket,
            before: before.map(|last| last.left),
            leave: Some(leave),
        }
    }

    /// Lanes somebody stands in.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.table().last.len()
    }
}

/// A place in a lane. Dropping it lets the next one in, however its owner ended.
#[derive(Debug)]
pub(crate) struct LanePlace {
    lanes: Arc<RequestLanes>,
    key: String,
    ticket: u64,
    before: Option<oneshot::Receiver<()>>,
    leave: Option<oneshot::Sender<()>>,
}

impl LanePlace {
    /// Waits until everybody before has left.
    pub(crate) async fn reached(&mut self) {
        if let Some(before) = &mut self.before {
            // The sender is dropped, not used: leaving is the whole message.
            let _ = before.await;
            self.before = None;
        }
    }
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        let mut table = self.lanes.table();
        if table.last.get(&self.key).is_some_and(|last| last.ticket == self.ticket) {
            table.last.remove(&self.key);
        }
        drop(table);
        let leave = self.leave.take();
        match self.before.take() {
            None => drop(leave),
            // Given up before its turn: those behind still wait for those before.
            Some(before) => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(async move {
                        let _ = before.await;
                        drop(leave);
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_of_one_lane_go_in_order_and_others_do_not_wait() {
        let lanes = Arc::new(RequestLanes::default());
        let mut first = lanes.enter("a");
        let mut second = lanes.enter("a");
        let mut other = lanes.enter("b");
        first.reached().await;
        other.reached().await;
        let waits = tokio::select! {
            biased;
            () = second.reached() => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(waits);
        drop(first);
        second.reached().await;
        drop((second, other));
        assert_eq!(lanes.len(), 0);
    }

    #[tokio::test]
    async fn one_who_gives_up_lets_nobody_pass_those_before() {
        let lanes = Arc::new(RequestLanes::default());
        let first = lanes.enter("a");
        let second = lanes.enter("a");
        let mut third = lanes.enter("a");
        drop(second);
        for _ in 0..3 {
            let waits = tokio::select! {
                biased;
                () = third.reached() => false,
                () = tokio::task::yield_now() => true,
            };
            assert!(waits);
        }
        drop(first);
        third.reached().await;
    }
}
