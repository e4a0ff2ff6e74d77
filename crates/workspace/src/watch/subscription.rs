//! One subscriber's paths and their changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::backend::{Backend, WatchError};
use super::plan::{WatchPlan, plan};
use super::queue::{ChangeQueue, PathChanges, PathEvent};

/// Retries for a path that keeps changing while it is checked. Events of further changes lead to the next attempt.
const MAX_TRIES: usize = 8;

/// A set of watched paths. Dropping it ends the watching.
#[derive(Debug)]
pub struct Subscription {
    paths: Arc<WatchedPaths>,
    debounce: Duration,
    /// When the queued changes are reported.
    due: Option<Instant>,
}

/// Which of the paths are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchCoverage {
    /// Other folders are watched than before, so earlier reads of the paths may be outdated.
    pub is_new: bool,
    /// Every path is watched. Otherwise the kernel refused some, which is logged.
    pub is_complete: bool,
}

impl Subscription {
    pub(super) fn new(backend: Arc<Backend>, debounce: Duration) -> Self {
        let paths = WatchedPaths { backend, queue: Arc::default(), targets: Mutex::default() };
        Self { paths: Arc::new(paths), debounce, due: None }
    }

    /// Watches exactly these absolute paths. Blocking. After it returns, no change is missed; one from shortly before
    /// may be reported too.
    pub fn set_paths(&self, paths: impl IntoIterator<Item = PathBuf>) -> WatchCoverage {
        let paths: BTreeSet<PathBuf> = paths.into_iter().collect();
        let known = self.paths.targets.lock().plans.keys().cloned().collect::<Vec<_>>();
        let gone = known.into_iter().filter(|path| !paths.contains(path));
        self.paths.change(&paths, &gone.collect())
    }

    /// Like [`Self::set_paths`], in addition to the watched paths.
    pub fn add_paths(&self, paths: impl IntoIterator<Item = PathBuf>) -> WatchCoverage {
        self.paths.change(&paths.into_iter().collect(), &BTreeSet::new())
    }

    /// Stops watching these paths.
    pub fn remove_paths(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.paths.change(&BTreeSet::new(), &paths.into_iter().collect());
    }

    /// Waits for changes, and then until the debounce time has passed. Cancel-safe.
    pub async fn next(&mut self) -> PathChanges {
        let queue = self.paths.queue.clone();
        loop {
            if queue.has_moved() {
                let paths = self.paths.clone();
                let _ = tokio::task::spawn_blocking(move || paths.follow_moved()).await;
            }
            if !queue.has_changes() {
                self.due = None;
                queue.wake.notified().await;
                continue;
            }
            let due = *self.due.get_or_insert_with(|| Instant::now() + self.debounce);
            tokio::select! {
                () = queue.wake.notified() => {}
                () = tokio::time::sleep_until(due) => {
                    self.due = None;
                    return queue.take_changes();
                }
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.set_paths([]);
    }
}

#[derive(Debug)]
struct WatchedPaths {
    backend: Arc<Backend>,
    queue: Arc<ChangeQueue>,
    targets: Mutex<WatchTargets>,
}

#[derive(Debug, Default)]
struct WatchTargets {
    plans: BTreeMap<PathBuf, WatchPlan>,
    /// Paths that the kernel refused to watch.
    refused: BTreeSet<PathBuf>,
}

impl WatchedPaths {
    fn change(&self, paths: &BTreeSet<PathBuf>, gone: &BTreeSet<PathBuf>) -> WatchCoverage {
        let mut targets = self.targets.lock();
        let mut is_new = false;
        let mut released = Vec::new();
        for path in gone {
            let Some(plan) = targets.plans.remove(path) else { continue };
            is_new = true;
            targets.refused.remove(path);
            released.extend(self.release(path, &plan));
        }
        for path in paths {
            is_new |= self.arrange(&mut targets, path, &mut released);
        }
        // Released last, so that folders other paths need stay watched without a gap.
        self.backend.unwatch(released.iter().map(PathBuf::as_path));
        WatchCoverage { is_new, is_complete: targets.refused.is_empty() }
    }

    /// Checks paths again that appeared, disappeared or were replaced.
    fn follow_moved(&self) {
        let mut targets = self.targets.lock();
        let mut released = Vec::new();
        for path in self.queue.take_moved() {
            let Some(before) = targets.plans.get(&path).map(|plan| plan.exists) else { continue };
            self.arrange(&mut targets, &path, &mut released);
            let exists = targets.plans.get(&path).is_some_and(|plan| plan.exists);
            if exists && !before {
                self.queue.push(path, PathEvent::Created);
            }
        }
        self.backend.unwatch(released.iter().map(PathBuf::as_path));
    }

    /// Watches the folders for `path`. Returns true if they changed.
    fn arrange(&self, targets: &mut WatchTargets, path: &Path, released: &mut Vec<PathBuf>) -> bool {
        let mut is_new = false;
        targets.refused.remove(path);
        for _ in 0..MAX_TRIES {
            let wanted = plan(path);
            let known = targets.plans.get(path).cloned();
            if known.as_ref() != Some(&wanted) {
                is_new = true;
                let mut registry = self.backend.registry.lock();
                for (folder, filter) in &wanted.folders {
                    registry.add(folder, &self.queue, path, filter);
                }
                drop(registry);
                released.extend(self.release(path, &known.unwrap_or_default()));
                targets.plans.insert(path.to_owned(), wanted.clone());
            }
            let mut is_missing = wanted.folders.is_empty();
            for (folder, _) in &wanted.folders {
                match self.backend.watch(folder) {
                    Ok(is_started) => is_new |= is_started,
                    Err(error) if error.is_missing() => is_missing = true,
                    Err(error) => self.refuse(targets, path, &error),
                }
            }
            // It may have changed before its folders were watched.
            if !is_missing && plan(path) == wanted {
                break;
            }
        }
        is_new
    }

    /// Returns the folders that are no longer needed.
    fn release(&self, path: &Path, plan: &WatchPlan) -> Vec<PathBuf> {
        let mut registry = self.backend.registry.lock();
        let mut unused = Vec::new();
        for (folder, filter) in &plan.folders {
            if registry.remove(folder, &self.queue, path, filter) {
                unused.push(folder.clone());
            }
        }
        unused
    }

    fn refuse(&self, targets: &mut WatchTargets, path: &Path, error: &WatchError) {
        let is_first = targets.refused.is_empty();
        targets.refused.insert(path.to_owned());
        if is_first {
            tracing::warn!(path = %path.display(), %error, "changes of some files are not noticed");
        }
    }
}

#[cfg(test)]
impl Subscription {
    pub(super) fn queue(&self) -> Arc<ChangeQueue> {
        self.paths.queue.clone()
    }
}
