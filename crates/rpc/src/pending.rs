//! Our own requests that wait for a response.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use crate::id::Id;

/// The open requests by id: integers from 0 upward, never reused. One table serves the whole process, so an id
/// identifies one request on any connection. The first response removes the request; later ones are counted as ignored.
#[derive(Debug)]
pub struct PendingRequests<T> {
    table: Mutex<PendingTable<T>>,
}

#[derive(Debug)]
struct PendingTable<T> {
    next: i64,
    open: BTreeMap<i64, T>,
    ignored: u64,
}

impl<T> Default for PendingRequests<T> {
    fn default() -> Self {
        Self { table: Mutex::new(PendingTable { next: 0, open: BTreeMap::new(), ignored: 0 }) }
    }
}

impl<T> PendingRequests<T> {
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&self) -> MutexGuard<'_, PendingTable<T>> {
        // A panic in a caller's closure leaves the table consistent.
        self.table.lock()
    }

    pub fn insert(&self, value: T) -> Id {
        self.insert_with(|_| value)
    }

    /// Like [`PendingRequests::insert`], for a value that contains its own id. `make` and the other closures must not
    /// call methods of the table.
    pub fn insert_with(&self, make: impl FnOnce(&Id) -> T) -> Id {
        let mut table = self.table();
        let number = table.next;
        let id = Id::Integer(number);
        let value = make(&id);
        table.next += 1;
        table.open.insert(number, value);
        id
    }

    /// Removes and returns the request of a response. A response to none is counted as ignored.
    pub fn resolve(&self, id: &Id) -> Option<T> {
        self.resolve_if(id, |_| true)
    }

    /// Like [`PendingRequests::resolve`], but a response that `fits` rejects is ignored and the request stays open, for
    /// example one from another connection.
    pub fn resolve_if(&self, id: &Id, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        let mut table = self.table();
        if let Id::Integer(number) = id
            && table.open.get(number).is_some_and(fits)
        {
            return table.open.remove(number);
        }
        table.ignored += 1;
        None
    }

    /// Removes a request that needs no response any more. A late one is ignored.
    pub fn remove(&self, id: &Id) -> Option<T> {
        match id {
            Id::Integer(number) => self.table().open.remove(number),
            Id::String(_) => None,
        }
    }

    /// Removes every request that `matches`, in the order of ids.
    pub fn remove_where(&self, mut matches: impl FnMut(&T) -> bool) -> Vec<(Id, T)> {
        let taken = self.table().open.extract_if(.., |_, value| matches(value)).collect::<Vec<_>>();
        taken.into_iter().map(|(number, value)| (Id::Integer(number), value)).collect()
    }

    /// Maps the open requests in the order of ids, for example to send them again.
    pub fn filter_map<R>(&self, mut pick: impl FnMut(&Id, &T) -> Option<R>) -> Vec<R> {
        let table = self.table();
        table.open.iter().filter_map(|(number, value)| pick(&Id::Integer(*number), value)).collect()
    }

    pub fn len(&self) -> usize {
        self.table().open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table().open.is_empty()
    }

    /// The number of responses to unknown requests.
    pub fn ignored(&self) -> u64 {
        self.table().ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_integers_from_zero_and_never_used_twice() {
        let pending = PendingRequests::new();
        assert_eq!(pending.insert("a"), Id::from(0));
        assert_eq!(pending.insert("b"), Id::from(1));
        assert_eq!(pending.resolve(&Id::from(1)), Some("b"));
        assert_eq!(pending.insert("c"), Id::from(2));
        assert_eq!(pending.len(), 2);
    }

    #[test]
    fn a_value_may_hold_its_id() {
        let pending = PendingRequests::new();
        let id = pending.insert_with(Id::clone);
        assert_eq!(pending.resolve(&id), Some(id));
    }

    #[test]
    fn the_first_answer_wins_and_others_are_counted() {
        let pending = PendingRequests::new();
        let id = pending.insert("a");
        assert_eq!(pending.resolve(&Id::from("0")), None, "the text is another id");
        assert_eq!(pending.resolve(&Id::from(-1)), None);
        assert_eq!(pending.resolve(&Id::from(7)), None);
        assert_eq!(pending.ignored(), 3);
        assert_eq!(pending.resolve(&id), Some("a"));
        assert_eq!(pending.resolve(&id), None);
        assert_eq!(pending.ignored(), 4);
        assert!(pending.is_empty());
    }

    #[test]
    fn an_answer_that_does_not_fit_leaves_the_request_open() {
        let pending = PendingRequests::new();
        let id = pending.insert("connection 1");
        assert_eq!(pending.resolve_if(&id, |value| *value == "connection 2"), None);
        assert_eq!((pending.len(), pending.ignored()), (1, 1));
        assert_eq!(pending.resolve_if(&id, |value| *value == "connection 1"), Some("connection 1"));
    }

    #[test]
    fn a_removed_request_is_not_an_ignored_answer() {
        let pending = PendingRequests::new();
        let id = pending.insert("a");
        assert_eq!(pending.remove(&id), Some("a"));
        assert_eq!(pending.remove(&id), None);
        assert_eq!(pending.remove(&Id::from("0")), None);
        assert_eq!(pending.ignored(), 0);
        assert_eq!(pending.resolve(&id), None);
        assert_eq!(pending.ignored(), 1);
    }

    #[test]
    fn walks_in_the_order_of_ids() {
        let pending = PendingRequests::new();
        for number in 0..20 {
            pending.insert(number);
        }
        let even = pending.remove_where(|number| number % 2 == 0);
        assert_eq!(
            even.iter().map(|(_, number)| *number).collect::<Vec<_>>(),
            (0..20).step_by(2).collect::<Vec<_>>()
        );
        let odd = pending.filter_map(|id, number| (*number > 10).then(|| id.clone()));
        assert_eq!(odd, [11, 13, 15, 17, 19].map(Id::from));
    }
}
