//! Our own requests that wait for an answer.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;

use crate::id::Id;

/// The requests that are open, by their ids: integers from 0 upward, never used twice. One table serves the whole
/// process, so an id names one request whichever connection it went to. The first answer takes the request out;
/// what comes after finds nothing and is counted.
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
        // A closure of a caller that panicked left the table as it was before or after its change.
        self.table.lock()
    }

    pub fn insert(&self, value: T) -> Id {
        self.insert_with(|_| value)
    }

    /// As [`PendingRequests::insert`], for a value that holds its own id. No method of the table may be called in
    /// `make`, nor in the other closures given to it.
    pub fn insert_with(&self, make: impl FnOnce(&Id) -> T) -> Id {
        let mut table = self.table();
        let number = table.next;
        let id = Id::Integer(number);
        let value = make(&id);
        table.next += 1;
        table.open.insert(number, value);
        id
    }

    /// Takes the request out that an answer is for. An answer to none is counted as ignored.
    pub fn resolve(&self, id: &Id) -> Option<T> {
        self.resolve_if(id, |_| true)
    }

    /// As [`PendingRequests::resolve`], but an answer that `fits` refuses is ignored and the request stays open: one
    /// that comes over another connection, say.
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

    /// Takes a request out that needs no answer any more. A late one will be ignored.
    pub fn remove(&self, id: &Id) -> Option<T> {
        match id {
            Id::Integer(number) => self.table().open.remove(number),
            Id::String(_) => None,
        }
    }

    /// Takes out every request that `matches`, in the order of their ids.
    pub fn remove_where(&self, mut matches: impl FnMut(&T) -> bool) -> Vec<(Id, T)> {
        let taken = self.table().open.extract_if(.., |_, value| matches(value)).collect::<Vec<_>>();
        taken.into_iter().map(|(number, value)| (Id::Integer(number), value)).collect()
    }

    /// Maps the open requests with `pick`, in the order of their ids: to send them again, say.
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

    /// Answers that were for no open request.
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
