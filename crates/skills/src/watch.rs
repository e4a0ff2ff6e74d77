//! Notices that skills of loaded threads changed, and notifies their clients.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use protocol::ThreadId;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use workspace::Watcher;

use super::cache::Skills;
use super::watches::{SkillPaths, SkillWatches};

/// Clients are notified at most this often. The first notification is sent at once.
const NOTIFY_INTERVAL: Duration = Duration::from_secs(10);

/// How long the response to a request may wait for the watches of its thread. Only large trees and slow disks need this
/// long.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Limit of watched working directories per thread. The oldest is dropped first.
const MAX_THREAD_DIRECTORIES: usize = 8;

/// The working directories of loaded threads, and the task that watches them.
#[derive(Debug, Default)]
pub(crate) struct FollowedThreads {
    threads: BTreeMap<ThreadId, VecDeque<PathBuf>>,
    /// Working directories whose cached skills are current.
    watched: BTreeSet<PathBuf>,
    /// Threads whose clients were warned if their list is incomplete.
    warned: BTreeSet<ThreadId>,
    /// Counts the added working directories.
    added: u64,
    /// How many of the added working directories are watched.
    refreshed: watch::Sender<u64>,
    wake: Arc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl FollowedThreads {
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        self.threads.values().flatten().cloned().collect()
    }

    pub(super) fn is_watched(&self, cwd: &Path) -> bool {
        self.watched.contains(cwd)
    }

    /// The thread's directory, on the first call for this thread.
    pub(super) fn warn_once(&mut self, thread: &ThreadId) -> Option<PathBuf> {
        let cwd = self.threads.get(thread)?.back()?.clone();
        self.warned.insert(thread.clone()).then_some(cwd)
    }

    /// False if the thread is followed there already.
    fn add(&mut self, thread: &ThreadId, cwd: &Path) -> bool {
        let directories = self.threads.entry(thread.clone()).or_default();
        if directories.iter().any(|directory| directory == cwd) {
            return false;
        }
        directories.push_back(cwd.to_owned());
        if directories.len() > MAX_THREAD_DIRECTORIES {
            directories.pop_front();
        }
        self.added += 1;
        true
    }
}

impl Drop for FollowedThreads {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Skills {
    /// Watches a working directory of a loaded thread, in a task.
    pub fn follow(self: &Arc<Self>, thread: &ThreadId, cwd: &Path) {
        let mut following = self.following.lock();
        if !following.add(thread, cwd) {
            return;
        }
        let is_running = following.task.as_ref().is_some_and(|task| !task.is_finished());
        if !is_running && let Ok(handle) = tokio::runtime::Handle::try_current() {
            let task = RefreshTask::new(Arc::downgrade(self), following.wake.clone());
            following.task = Some(handle.spawn(task.run()));
        }
        following.wake.notify_one();
    }

    /// Waits until changes in the working directory of a thread are noticed, up to [`MAX_WAIT`]. A client that has its
    /// response may change a skill at once, and a change before the first scan cannot be noticed.
    pub async fn wait_until_watched(&self, thread: &ThreadId) {
        let (cwd, is_watched, is_running, added, mut refreshed) = {
            let following = self.following.lock();
            let Some(cwd) = following.threads.get(thread).and_then(VecDeque::back).cloned() else { return };
            let is_running = following.task.as_ref().is_some_and(|task| !task.is_finished());
            let is_watched = following.is_watched(&cwd);
            (cwd, is_watched, is_running, following.added, following.refreshed.subscribe())
        };
        if !is_running || (is_watched && self.is_scanned(&cwd)) {
            return;
        }
        let refreshed = refreshed.wait_for(|count| *count >= added);
        if tokio::time::timeout(MAX_WAIT, refreshed).await.is_err() {
            tracing::debug!(%thread, "skills are not watched yet");
        }
    }

    /// The thread is not loaded any more.
    pub fn unfollow(&self, thread: &ThreadId) {
        let mut following = self.following.lock();
        following.warned.remove(thread);
        if following.threads.remove(thread).is_some() {
            following.wake.notify_one();
        }
    }

    /// Threads with any of these working directories.
    fn threads_in(&self, cwds: &BTreeSet<PathBuf>) -> Vec<ThreadId> {
        let following = self.following.lock();
        let is_there = |directories: &VecDeque<PathBuf>| directories.iter().any(|cwd| cwds.contains(cwd));
        following
            .threads
            .iter()
            .filter(|(_, directories)| is_there(directories))
            .map(|(id, _)| id.clone())
            .collect()
    }
}

/// The task that watches. It starts with the first thread.
struct RefreshTask {
    skills: Weak<Skills>,
    wake: Arc<Notify>,
    watches: SkillWatches,
    /// Working directories with changes that clients were not notified of.
    changed: BTreeSet<PathBuf>,
    notified_at: Option<Instant>,
}

impl RefreshTask {
    fn new(skills: Weak<Skills>, wake: Arc<Notify>) -> Self {
        let watches = SkillWatches::new(Watcher::shared());
        Self { skills, wake, watches, changed: BTreeSet::new(), notified_at: None }
    }

    async fn run(mut self) {
        loop {
            let notify_at = self.notify_at();
            let changes = tokio::select! {
                () = self.wake.notified() => Some(BTreeSet::new()),
                changes = self.watches.next() => {
                    Some(self.watches.affected_by(&changes)).filter(|cwds| !cwds.is_empty())
                }
                () = sleep_until(notify_at) => None,
            };
            let Some(skills) = self.skills.upgrade() else { return };
            if let Some(changes) = changes {
                self.refresh(&skills, changes).await;
            }
            if self.notify_at().is_some_and(|at| at <= Instant::now()) {
                self.notify(&skills).await;
            }
        }
    }

    /// Scans changed and new working directories again, on a thread for blocking work.
    async fn refresh(&mut self, skills: &Arc<Skills>, dirty: BTreeSet<PathBuf>) {
        let mut watches = std::mem::replace(&mut self.watches, SkillWatches::new(Watcher::shared()));
        let work = {
            let skills = skills.clone();
            move || {
                let changed = refresh(&skills, &mut watches, &dirty);
                (watches, changed)
            }
        };
        // Only a panic loses the watches; they are created again with the next thread.
        if let Ok((watches, changed)) = tokio::task::spawn_blocking(work).await {
            self.watches = watches;
            self.changed.extend(changed);
        }
    }

    fn notify_at(&self) -> Option<Instant> {
        let is_due = !self.changed.is_empty();
        is_due.then(|| self.notified_at.map_or_else(Instant::now, |notified| notified + NOTIFY_INTERVAL))
    }

    async fn notify(&mut self, skills: &Skills) {
        self.notified_at = Some(Instant::now());
        let changed = std::mem::take(&mut self.changed);
        for thread in skills.threads_in(&changed) {
            (skills.notify)(thread).await;
        }
    }
}

/// Scans working directories that are `dirty` or unwatched. Returns those with changed skills.
fn refresh(skills: &Skills, watches: &mut SkillWatches, dirty: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let (cwds, left, added) = {
        let mut following = skills.following.lock();
        let cwds = following.directories();
        // The others stay watched meanwhile: a thread opened now must not drop the scan used for comparison.
        let left: Vec<PathBuf> = following.watched.difference(&cwds).cloned().collect();
        following.watched.retain(|cwd| cwds.contains(cwd));
        (cwds, left, following.added)
    };
    left.iter().for_each(|cwd| skills.forget(cwd));
    watches.keep_only(&cwds);
    let mut changed = BTreeSet::new();
    for cwd in &cwds {
        if watches.contains(cwd) && !dirty.contains(cwd) && skills.is_scanned(cwd) {
            continue;
        }
        let (before, mut directory) = skills.rescan(cwd);
        // A first scan is compared with itself: it may be outdated before the watches exist.
        let before = before.unwrap_or_else(|| directory.scan_result().clone());
        // A folder that was read before it was watched is read again. More rounds are needed only while folders are
        // created faster than they are read, and then further events follow.
        for _ in 0..4 {
            if !watches.set(cwd, SkillPaths::of(&directory)) {
                break;
            }
            directory = skills.rescan(cwd).1;
        }
        if before.differs(directory.scan_result()) {
            changed.insert(cwd.clone());
        }
    }
    // If not everything is watched, the disk is scanned again for every opened thread.
    let mut following = skills.following.lock();
    following.watched = if watches.is_complete() { cwds } else { BTreeSet::new() };
    following.refreshed.send_replace(added);
    changed
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
