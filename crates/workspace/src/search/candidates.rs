//! The found paths, in the order of finding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::Notify;

use super::MatchKind;

/// Limit of a list; walking ends there.
pub(super) const MAX_CANDIDATES: usize = 1_000_000;

/// One file or folder below a root.
#[derive(Debug)]
pub(super) struct PathCandidate {
    /// Relative to its root.
    pub(super) path: Box<str>,
    /// The index of its root.
    pub(super) root: u32,
    pub(super) kind: MatchKind,
}

/// Grows while folders are walked. Paths are added in immutable blocks.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    blocks: RwLock<Vec<Arc<[PathCandidate]>>>,
    count: AtomicUsize,
    is_complete: AtomicBool,
    is_stopped: AtomicBool,
    /// Wakes one waiter when paths were added or the walk has ended.
    pub(super) changed: Notify,
}

impl Candidates {
    pub(super) fn add(&self, block: Vec<PathCandidate>) {
        if !block.is_empty() {
            self.count.fetch_add(block.len(), Ordering::Relaxed);
            self.blocks.write().push(block.into());
            self.changed.notify_one();
        }
    }

    /// The blocks from number `from` on.
    pub(super) fn blocks(&self, from: usize) -> Vec<Arc<[PathCandidate]>> {
        self.blocks.read().get(from..).unwrap_or_default().to_vec()
    }

    pub(super) fn is_full(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= MAX_CANDIDATES
    }

    pub(super) fn block_count(&self) -> usize {
        self.blocks.read().len()
    }

    /// The walk has ended.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    pub(super) fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// Ends the walk soon.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}
