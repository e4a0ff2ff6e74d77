//! The inotify instance, by way of the `notify` crate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{INotifyWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;

use super::WatchRegistry;
use super::queue::PathEvent;
use super::registry::WatchState;

/// Folders that this process watches at most: other programs of the user want watches too.
const MAX_WATCHES: usize = 8_192;

/// The instance while there is one, and what it is used for.
///
/// Asking the instance waits for its thread, and that thread takes `registry` to deliver events. So `registry` is never
/// held while the instance is asked. `inotify` is locked first where both are needed.
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

    /// Makes the kernel watch a folder of the registry. False when it does already.
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
            // Set before the kernel is asked: what is lost from then on must not be overwritten.
            std::mem::replace(&mut watch.state, WatchState::Watched)
        };
        let watched = ask(&mut inotify, &self.registry, |inotify| {
            if before == WatchState::Lost {
                // Fails where the folder is gone for good, which is as well.
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

    /// Takes folders that nobody is interested in from the kernel. The last one ends the instance and its thread.
    pub(super) fn unwatch<'a>(&self, folders: impl IntoIterator<Item = &'a Path>) {
        let mut inotify = self.inotify.lock();
        if self.registry.lock().folders.is_empty() {
            *inotify = None;
        }
        for folder in folders {
            let is_wanted = self.registry.lock().folders.contains_key(folder);
            if inotify.is_some() && !is_wanted {
                // Fails where the kernel let go of it already.
                let _ = ask(&mut inotify, &self.registry, |inotify| inotify.unwatch(folder));
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_running(&self) -> bool {
        self.inotify.lock().is_some()
    }
}

/// Asks the instance, and starts it first where there is none.
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
    // It panics, here and when it is dropped, if its thread could not be started all the same. Caught where a program is
    // built to unwind.
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

/// None for what changes nothing: files that are opened or read, and attributes.
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
