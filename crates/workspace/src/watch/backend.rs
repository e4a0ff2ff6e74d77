//! The inotify instance, through the `notify` crate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{INotifyWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;

use super::WatchRegistry;
use super::queue::PathEvent;
use super::registry::WatchState;

/// Limit of watched folders: other programs of the user need watches too.
const MAX_WATCHES: usize = 8_192;

/// The instance, if there is one, and its users.
///
/// Calls to the instance wait for its thread, and that thread locks `registry` to deliver events. So `registry` must
/// not be locked during such calls. `inotify` is locked first if both are needed.
#[derive(Debug)]
pub(super) struct Backend {
    max_watches: usize,
    inotify: Mutex<Option<INotifyWatcher>>,
    pub(super) registry: Arc<Mutex<WatchRegistry>>,
}

/// Why a folder is not watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    #[error("{0} folders are watched already")]
    TooMany(usize),
    #[error(transparent)]
    Kernel(#[from] notify::Error),
    #[error("the thread that reads changes cannot be started")]
    NoThread,
}

impl WatchError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Kernel(error) if matches!(error.kind, notify::ErrorKind::PathNotFound))
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::with_limit(MAX_WATCHES)
    }
}

impl Backend {
    pub(super) fn with_limit(max_watches: usize) -> Self {
        Self { max_watches, inotify: Mutex::default(), registry: Arc::default() }
    }

    /// Watches a folder of the registry. False if it is watched already.
    pub(super) fn watch(&self, folder: &Path) -> Result<bool, WatchError> {
        let mut inotify = self.inotify.lock();
        let before = {
            let mut registry = self.registry.lock();
            let is_full = registry.folders.len() > self.max_watches;
            let Some(watch) = registry.folders.get_mut(folder) else { return Ok(false) };
            if watch.state == WatchState::Watched {
                return Ok(false);
            }
            if is_full {
                return Err(WatchError::TooMany(self.max_watches));
            }
            // Set before the call: a later loss must not be overwritten.
            std::mem::replace(&mut watch.state, WatchState::Watched)
        };
        let watched = ask(&mut inotify, &self.registry, |inotify| {
            if before == WatchState::Lost {
                // Fails if the folder is gone, which is fine.
                let _ = inotify.unwatch(folder);
            }
            inotify.watch(folder, RecursiveMode::NonRecursive)
        });
        if watched.is_err()
            && let Some(watch) = self.registry.lock().folders.get_mut(folder)
        {
            watch.state = WatchState::Unwatched;
        }
        watched.map(|()| true)
    }

    /// Unwatches folders without interest. The last one ends the instance and its thread.
    pub(super) fn unwatch<'a>(&self, folders: impl IntoIterator<Item = &'a Path>) {
        let mut inotify = self.inotify.lock();
        if self.registry.lock().folders.is_empty() {
            *inotify = None;
        }
        for folder in folders {
            let is_wanted = self.registry.lock().folders.contains_key(folder);
            if inotify.is_some() && !is_wanted {
                // Fails if the kernel has removed it already.
                let _ = ask(&mut inotify, &self.registry, |inotify| inotify.unwatch(folder));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_running(&self) -> bool {
        self.inotify.lock().is_some()
    }
}

/// Calls the instance, starting it if needed.
fn ask(
    inotify: &mut Option<INotifyWatcher>,
    registry: &Arc<Mutex<WatchRegistry>>,
    question: impl FnOnce(&mut INotifyWatcher) -> notify::Result<()>,
) -> Result<(), WatchError> {
    let mut running = match inotify.take() {
        Some(running) => running,
        None => {
            // `notify` ignores that its thread could not be started, and panics later, which would end a release build.
            let another = std::thread::Builder::new().name("watch".to_owned()).spawn(|| {});
            another.map_err(|_| WatchError::NoThread)?;
            let registry = registry.clone();
            INotifyWatcher::new(move |event| deliver(&registry, event), notify::Config::default())?
        }
    };
    // `notify` panics, here and on drop, if its thread could not be started. Caught where a program is built to unwind.
    match catch_unwind(AssertUnwindSafe(|| question(&mut running))) {
        Ok(answer) => {
            *inotify = Some(running);
            Ok(answer?)
        }
        Err(_) => {
            std::mem::forget(running);
            Err(WatchError::NoThread)
        }
    }
}

/// Runs on the thread of `notify`.
fn deliver(registry: &Mutex<WatchRegistry>, event: notify::Result<notify::Event>) {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        Ok(_) => return registry.lock().overflow(),
        Err(error) => {
            tracing::warn!(%error, "changes of files cannot be read");
            return registry.lock().overflow();
        }
    };
    if let Some(kind) = path_event(event.kind) {
        event.paths.iter().for_each(|path| registry.lock().deliver(path, kind));
    }
}

/// None for events without a change: opening, reading, attributes.
fn path_event(kind: EventKind) -> Option<PathEvent> {
    match kind {
        EventKind::Create(_) => Some(PathEvent::Created),
        EventKind::Remove(_) => Some(PathEvent::Removed),
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => Some(PathEvent::Written),
        EventKind::Modify(ModifyKind::Data(_)) => Some(PathEvent::Modified),
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Some(PathEvent::Removed),
        EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Some(PathEvent::MovedIn),
        _ => None,
    }
}
