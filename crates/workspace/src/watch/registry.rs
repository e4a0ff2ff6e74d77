//! The watched folders and their subscribers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::plan::EntryFilter;
use super::queue::{ChangeQueue, PathEvent};

/// Every folder to be watched.
#[derive(Debug, Default)]
pub(super) struct WatchRegistry {
    pub(super) folders: BTreeMap<PathBuf, FolderWatch>,
}

#[derive(Debug, Default)]
pub(super) struct FolderWatch {
    pub(super) state: WatchState,
    interests: Vec<WatchInterest>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum WatchState {
    /// Not requested from the kernel yet, or refused.
    #[default]
    Unwatched,
    Watched,
    /// The folder was removed or renamed. The kernel may still watch it under its new name.
    Lost,
}

/// One path of one subscriber.
#[derive(Debug)]
struct WatchInterest {
    queue: Arc<ChangeQueue>,
    target: PathBuf,
    filter: EntryFilter,
}

impl WatchRegistry {
    pub(super) fn add(
        &mut self,
        folder: &Path,
        queue: &Arc<ChangeQueue>,
        target: &Path,
        filter: &EntryFilter,
    ) {
        let watch = self.folders.entry(folder.to_owned()).or_default();
        let (queue, target, filter) = (queue.clone(), target.to_owned(), filter.clone());
        watch.interests.push(WatchInterest { queue, target, filter });
    }

    /// Returns true if the folder has no interest left and was removed.
    pub(super) fn remove(
        &mut self,
        folder: &Path,
        queue: &Arc<ChangeQueue>,
        target: &Path,
        filter: &EntryFilter,
    ) -> bool {
        let Some(watch) = self.folders.get_mut(folder) else { return false };
        let is_it = |interest: &WatchInterest| {
            Arc::ptr_eq(&interest.queue, queue) && interest.target == target && interest.filter == *filter
        };
        if let Some(at) = watch.interests.iter().position(is_it) {
            watch.interests.swap_remove(at);
        }
        let is_last = watch.interests.is_empty();
        if is_last {
            self.folders.remove(folder);
        }
        is_last
    }

    /// An event of a path, which may be a watched folder, an entry of one, or both.
    pub(super) fn deliver(&mut self, path: &Path, event: PathEvent) {
        if event == PathEvent::Removed {
            self.lose(path);
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(watch) = self.folders.get(folder) else { return };
        let is_other_file = matches!(event, PathEvent::Created | PathEvent::MovedIn | PathEvent::Removed);
        for WatchInterest { queue, target, filter } in &watch.interests {
            match filter {
                EntryFilter::All => queue.push(target.join(name), event),
                EntryFilter::Entry(entry) if entry == name => {
                    queue.push(target.clone(), event);
                    if is_other_file {
                        queue.push_moved(target);
                    }
                }
                EntryFilter::Ancestor(entry) if entry == name && is_other_file => queue.push_moved(target),
                EntryFilter::Entry(_) | EntryFilter::Ancestor(_) => {}
            }
        }
    }

    /// `path` is gone, with every folder inside it.
    fn lose(&mut self, path: &Path) {
        let below = self.folders.range_mut(path.to_owned()..);
        for (_, watch) in below.take_while(|(folder, _)| folder.starts_with(path)) {
            if watch.state == WatchState::Watched {
                watch.state = WatchState::Lost;
            }
            for WatchInterest { queue, target, filter } in &watch.interests {
                if *filter == EntryFilter::All {
                    queue.push(target.clone(), PathEvent::Removed);
                }
                queue.push_moved(target);
            }
        }
    }

    /// The kernel dropped events.
    pub(super) fn overflow(&self) {
        for interest in self.folders.values().flat_map(|watch| &watch.interests) {
            interest.queue.push_moved(&interest.target);
            interest.queue.overflow();
        }
    }
}
