//! Noticing that skills of loaded threads changed, and telling their clients.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use protocol::{ServerNotification, SkillsChangedNotification, ThreadId};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::cache::Skills;
use super::inotify::Events;
use super::watches::{Watches, targets};
use crate::runtime::lock;

/// Files often change together; they are looked at together.
const SETTLE: Duration = Duration::from_millis(100);

/// Clients hear at most this often. The first word comes at once.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest that the answer to a request waits for the watches of its thread. Only large trees and slow disks need
/// as much.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A thread that wanders is followed to so many places.
const MAX_PLACES: usize = 8;

/// Where the threads are, and who watches.
#[derive(Debug, Default)]
pub(crate) struct Following {
    threads: BTreeMap<ThreadId, VecDeque<PathBuf>>,
    /// Directories whose skills are as the disk has them.
    watched: BTreeSet<PathBuf>,
    /// Counts the places that were added.
    added: u64,
    /// How many of the added places have been looked at.
    looked: watch::Sender<u64>,
    wake: Arc<Notify>,
    task: Option<JoinHandle<()>>,
}

impl Following {
    pub(super) fn directories(&self) -> BTreeSet<PathBuf> {
        self.threads.values().flatten().cloned().collect()
    }

    pub(super) fn is_watched(&self, cwd: &Path) -> bool {
        self.watched.contains(cwd)
    }

    /// False when it was known.
    fn add(&mut self, thread: &ThreadId, cwd: &Path) -> bool {
        let places = self.threads.entry(thread.clone()).or_default();
        if places.iter().any(|place| place == cwd) {
            return false;
        }
        places.push_back(cwd.to_owned());
        if places.len() > MAX_PLACES {
            places.pop_front();
        }
        self.added += 1;
        true
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Skills {
    /// A loaded thread works here from now on. Nothing is read or watched by the caller.
    pub(crate) fn follow(self: &Arc<Self>, thread: &ThreadId, cwd: &Path) {
        let mut following = lock(&self.following);
        if !following.add(thread, cwd) {
            return;
        }
        let is_running = following.task.as_ref().is_some_and(|task| !task.is_finished());
        if !is_running && let Ok(handle) = tokio::runtime::Handle::try_current() {
            let watcher = Watcher::new(Arc::downgrade(self), following.wake.clone());
            following.task = Some(handle.spawn(watcher.run()));
        }
        following.wake.notify_one();
    }

    /// Waits until changes in the folder of a thread are noticed, if not for long. A client that has its answer may
    /// change a skill at once; what changes before the first look cannot be told from what was there.
    pub(crate) async fn watched(&self, thread: &ThreadId) {
        let (cwd, is_watched, is_running, added, mut looked) = {
            let following = lock(&self.following);
            let Some(cwd) = following.threads.get(thread).and_then(VecDeque::back).cloned() else { return };
            let is_running = following.task.as_ref().is_some_and(|task| !task.is_finished());
            let is_watched = following.is_watched(&cwd);
            (cwd, is_watched, is_running, following.added, following.looked.subscribe())
        };
        if !is_running || (is_watched && self.is_scanned(&cwd)) {
            return;
        }
        let looked = looked.wait_for(|count| *count >= added);
        if tokio::time::timeout(MAX_WAIT, looked).await.is_err() {
            tracing::debug!(%thread, "skills are not watched yet");
        }
    }

    /// The thread is not in memory any more.
    pub(crate) fn unfollow(&self, thread: &ThreadId) {
        let mut following = lock(&self.following);
        if following.threads.remove(thread).is_some() {
            following.wake.notify_one();
        }
    }

    /// Threads in any of these places.
    fn threads_in(&self, cwds: &BTreeSet<PathBuf>) -> Vec<ThreadId> {
        let following = lock(&self.following);
        let is_there = |places: &VecDeque<PathBuf>| places.iter().any(|place| cwds.contains(place));
        following.threads.iter().filter(|(_, places)| is_there(places)).map(|(id, _)| id.clone()).collect()
    }
}

/// The one task that watches. It starts with the first thread.
struct Watcher {
    skills: Weak<Skills>,
    wake: Arc<Notify>,
    watches: Watches,
    events: Option<Events>,
    /// Directories to look at again, and when.
    dirty: BTreeSet<PathBuf>,
    look_at: Option<Instant>,
    /// Directories with changes that clients have not heard of.
    changed: BTreeSet<PathBuf>,
    told_at: Option<Instant>,
}

impl Watcher {
    fn new(skills: Weak<Skills>, wake: Arc<Notify>) -> Self {
        Self {
            skills,
            wake,
            watches: Watches::default(),
            events: None,
            dirty: BTreeSet::new(),
            look_at: None,
            changed: BTreeSet::new(),
            told_at: None,
        }
    }

    async fn run(mut self) {
        loop {
            let next = [self.look_at, self.tell_at()].into_iter().flatten().min();
            tokio::select! {
                () = self.wake.notified() => self.look_at = Some(Instant::now()),
                events = next_events(&mut self.events) => match events {
                    Ok(events) => self.take(&events),
                    Err(error) => {
                        tracing::warn!(%error, "changes of skills are not noticed any more");
                        self.events = None;
                    }
                },
                () = until(next) => {}
            }
            let Some(skills) = self.skills.upgrade() else { return };
            if self.look_at.is_some_and(|at| at <= Instant::now()) {
                self.look(&skills).await;
            }
            if self.tell_at().is_some_and(|at| at <= Instant::now()) {
                self.tell(&skills).await;
            }
        }
    }

    fn take(&mut self, events: &[super::inotify::Event]) {
        for event in events {
            self.dirty.extend(self.watches.concerned(event));
        }
        if !self.dirty.is_empty() && self.look_at.is_none() {
            self.look_at = Some(Instant::now() + SETTLE);
        }
    }

    /// Looks at what changed and at what is new, on a thread that serves nobody else.
    async fn look(&mut self, skills: &Arc<Skills>) {
        self.look_at = None;
        let dirty = std::mem::take(&mut self.dirty);
        let mut watches = std::mem::take(&mut self.watches);
        let work = {
            let skills = skills.clone();
            move || {
                let changed = look(&skills, &mut watches, &dirty);
                (watches, changed)
            }
        };
        // Only a defect loses the watches; they are made again with the next thread.
        let Ok((watches, changed)) = tokio::task::spawn_blocking(work).await else {
            self.events = None;
            return;
        };
        self.watches = watches;
        self.changed.extend(changed);
        match (self.watches.inotify(), &self.events) {
            (None, _) => self.events = None,
            (Some(inotify), None) => {
                self.events =
                    inotify.events().map_err(|error| tracing::warn!(%error, "skills are not watched")).ok();
            }
            (Some(_), Some(_)) => {}
        }
    }

    fn tell_at(&self) -> Option<Instant> {
        let waits = !self.changed.is_empty();
        waits.then(|| self.told_at.map_or_else(Instant::now, |told| told + PAUSE))
    }

    async fn tell(&mut self, skills: &Skills) {
        self.told_at = Some(Instant::now());
        let changed = std::mem::take(&mut self.changed);
        for thread in skills.threads_in(&changed) {
            let told = ServerNotification::SkillsChanged(SkillsChangedNotification {});
            skills.audience.tell(&thread, told).await;
        }
    }
}

/// The directories in which something changed.
fn look(skills: &Skills, watches: &mut Watches, dirty: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let (cwds, left, added) = {
        let mut following = lock(&skills.following);
        let cwds = following.directories();
        // The others stay watched meanwhile: a thread opened now must not drop what is known, which this compares with.
        let left: Vec<PathBuf> = following.watched.difference(&cwds).cloned().collect();
        following.watched.retain(|cwd| cwds.contains(cwd));
        (cwds, left, following.added)
    };
    left.iter().for_each(|cwd| skills.forget(cwd));
    watches.keep_only(&cwds);
    let mut changed = BTreeSet::new();
    for cwd in &cwds {
        if watches.is_covered(cwd) && !dirty.contains(cwd) && skills.is_scanned(cwd) {
            continue;
        }
        let (before, mut directory) = skills.rescan(cwd);
        // A first look has only itself to compare with: it may be old before the watches are there.
        let before = before.unwrap_or_else(|| directory.found().clone());
        // What was read before a folder was watched is read once more. More rounds are needed only while somebody
        // makes folders faster than they are read, and then there will be more to hear.
        for _ in 0..4 {
            if !watches.cover(cwd, targets(&directory)) {
                break;
            }
            directory = skills.rescan(cwd).1;
        }
        if before.differs(directory.found()) {
            changed.insert(cwd.clone());
        }
    }
    // Where not everything is watched, the disk is asked again with every thread that is opened.
    let mut following = lock(&skills.following);
    following.watched = if watches.is_partial() { BTreeSet::new() } else { cwds };
    following.looked.send_replace(added);
    changed
}

async fn next_events(events: &mut Option<Events>) -> std::io::Result<Vec<super::inotify::Event>> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
