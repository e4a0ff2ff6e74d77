//! The one watcher of files and folders in the process. Whoever wants to know of changes subscribes with a set of paths:
//!
//! ```no_run
//! # async fn example() {
//! let watcher = oarlock_workspace::Watcher::shared();
//! let mut subscription = watcher.subscribe(std::time::Duration::from_millis(200));
//! // Asks the disk and the kernel: call it off the async workers.
//! subscription.set_paths(["/project/config.toml".into()]);
//! let changes = subscription.next().await;
//! # drop(changes);
//! # }
//! ```
//!
//! A path may be a file, a folder (whose entries count too, but not those further down), or missing. Paths that are
//! removed, replaced or made again stay watched. There is one inotify instance, and one thread that reads it, while
//! anybody watches anything; before the first path and after the last there is none.

mod backend;
mod plan;
mod queue;
mod registry;
mod subscription;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backend::Backend;
use registry::WatchRegistry;

pub use queue::{PathChanges, PathEvent};
pub use subscription::{Subscription, WatchCoverage};

/// Creates subscriptions. Clones share one inotify instance.
#[derive(Debug, Clone, Default)]
pub struct Watcher {
    backend: Arc<Backend>,
}

impl Watcher {
    /// The watcher of this process.
    pub fn shared() -> Self {
        static SHARED: OnceLock<Watcher> = OnceLock::new();
        SHARED.get_or_init(Self::default).clone()
    }

    /// A subscription without paths. Changes within `debounce` after the first one are reported together.
    pub fn subscribe(&self, debounce: Duration) -> Subscription {
        Subscription::new(self.backend.clone(), debounce)
    }
}

#[cfg(test)]
mod tests;
