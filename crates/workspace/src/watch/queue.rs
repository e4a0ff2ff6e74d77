//! The queue of changes for one subscriber.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Limit of queued changes. Beyond it the subscriber only learns that some were lost.
const MAX_PENDING: usize = 4_096;

/// An event of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathEvent {
    /// It was created here. A file may still be empty.
    Created,
    /// It was renamed to this path, complete.
    MovedIn,
    /// Bytes were written; more may follow.
    Modified,
    /// A file that was open for writing was closed.
    Written,
    /// It was deleted, or renamed to another path.
    Removed,
}

/// Changes that are reported together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathChanges {
    /// Sorted by path.
    pub events: BTreeSet<(PathBuf, PathEvent)>,
    /// Changes were lost. Anything that is watched may have changed.
    pub is_incomplete: bool,
}

impl PathChanges {
    /// The changed paths, sorted, each once.
    pub fn paths(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = self.events.iter().map(|(path, _)| path.as_path()).collect();
        paths.dedup();
        paths
    }

    fn is_empty(&self) -> bool {
        self.events.is_empty() && !self.is_incomplete
    }
}

/// The queue of one subscription.
#[derive(Debug, Default)]
pub(super) struct ChangeQueue {
    pending: Mutex<PendingEvents>,
    pub(super) wake: Notify,
}

#[derive(Debug, Default)]
struct PendingEvents {
    changes: PathChanges,
    /// Watched paths that appeared, disappeared or were replaced, so that other folders must be watched.
    moved: BTreeSet<PathBuf>,
}

impl ChangeQueue {
    pub(super) fn push(&self, path: PathBuf, event: PathEvent) {
        let mut pending = self.pending.lock();
        let is_new = if pending.changes.events.len() < MAX_PENDING {
            pending.changes.events.insert((path, event))
        } else {
            !std::mem::replace(&mut pending.changes.is_incomplete, true)
        };
        drop(pending);
        if is_new {
            self.wake.notify_one();
        }
    }

    /// Some changes are lost.
    pub(super) fn overflow(&self) {
        self.pending.lock().changes.is_incomplete = true;
        self.wake.notify_one();
    }

    /// `target` must be checked again. There are never more of these than watched paths.
    pub(super) fn push_moved(&self, target: &Path) {
        if self.pending.lock().moved.insert(target.to_owned()) {
            self.wake.notify_one();
        }
    }

    pub(super) fn take_moved(&self) -> BTreeSet<PathBuf> {
        std::mem::take(&mut self.pending.lock().moved)
    }

    pub(super) fn has_moved(&self) -> bool {
        !self.pending.lock().moved.is_empty()
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.pending.lock().changes.is_empty()
    }

    pub(super) fn take_changes(&self) -> PathChanges {
        std::mem::take(&mut self.pending.lock().changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_says_that_it_lost_changes() {
        let queue = ChangeQueue::default();
        for at in 0..2 * MAX_PENDING {
            queue.push(PathBuf::from(format!("/{at}")), PathEvent::Written);
        }
        let changes = queue.take_changes();
        assert_eq!((changes.events.len(), changes.is_incomplete), (MAX_PENDING, true));
        assert!(!queue.has_changes());
    }

    #[test]
    fn paths_are_sorted_and_each_is_there_once() {
        let queue = ChangeQueue::default();
        for (path, event) in
            [("/b", PathEvent::Written), ("/a", PathEvent::Removed), ("/b", PathEvent::Created)]
        {
            queue.push(PathBuf::from(path), event);
        }
        assert_eq!(queue.take_changes().paths(), [Path::new("/a"), Path::new("/b")]);
    }
}
