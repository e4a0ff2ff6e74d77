//! Log lines about the records of threads.

use std::sync::Arc;

use runtime::{StoreEvent, StoreOptions};
use service::STORE_TARGET;

/// Rebuilding an index of fewer threads is over before anybody could read of it.
const MANY_THREADS: usize = 200;

/// Says on standard error that records are damaged, and how far the rebuilding of a large index is.
pub(crate) fn store_options() -> StoreOptions {
    let observer = |event: &StoreEvent| match event {
        StoreEvent::ThreadDamaged { .. }
        | StoreEvent::ThreadUnreadable { .. }
        | StoreEvent::IndexInMemory { .. } => tracing::warn!(target: STORE_TARGET, "{event}"),
        StoreEvent::IndexRebuilding { threads: total, .. }
        | StoreEvent::IndexProgress { total, .. }
        | StoreEvent::IndexRebuilt { threads: total, .. } => {
            if *total >= MANY_THREADS {
                tracing::warn!(target: STORE_TARGET, "{event}");
            } else {
                tracing::info!(target: STORE_TARGET, "{event}");
            }
        }
    };
    StoreOptions { observer: Arc::new(observer), ..StoreOptions::default() }
}
