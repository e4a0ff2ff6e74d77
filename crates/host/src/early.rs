//! Notifications about a new thread that come before its client can subscribe to it: kept, and sent once it has.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use protocol::{NotificationMethod, ThreadId, ThreadStatusChanged};
use serde_json::value::RawValue;

/// Kept for one thread. More is a runtime that talks while nobody can listen.
const MOST: usize = 64;

type Notices = Vec<(String, Box<RawValue>)>;

#[derive(Debug, Default)]
pub(crate) struct EarlyNotices {
    /// By thread, for those that are being started.
    held: Mutex<HashMap<ThreadId, Notices>>,
    /// Copies that are being opened.
    unannounced: Mutex<HashSet<ThreadId>>,
}

impl EarlyNotices {
    pub(crate) fn hold(&self, thread: &ThreadId) {
        self.held.lock().entry(thread.clone()).or_default();
    }

    /// That it is loaded is told by whoever announces it: until then its status is nobody's concern.
    pub(crate) fn conceal(&self, thread: &ThreadId) {
        self.unannounced.lock().insert(thread.clone());
    }

    pub(crate) fn reveal(&self, thread: &ThreadId) {
        self.unannounced.lock().remove(thread);
    }

    /// False where it is for whoever listens now.
    pub(crate) fn keep(&self, thread: &ThreadId, method: &str, params: &RawValue) -> bool {
        // Everybody hears of it, whoever follows the thread.
        if method == ThreadStatusChanged::METHOD {
            return self.unannounced.lock().contains(thread);
        }
        let mut held = self.held.lock();
        let Some(notices) = held.get_mut(thread).filter(|notices| notices.len() < MOST) else { return false };
        notices.push((method.to_owned(), params.to_owned()));
        true
    }

    pub(crate) fn release(&self, thread: &ThreadId) -> Notices {
        self.held.lock().remove(thread).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn only_what_is_held_is_kept_and_not_without_end() {
        let (early, thread) = (EarlyNotices::default(), ThreadId::new("t"));
        let params = to_raw_value(&serde_json::json!({})).expect("JSON");
        assert!(!early.keep(&thread, "error", &params));
        early.hold(&thread);
        assert!(!early.keep(&thread, ThreadStatusChanged::METHOD, &params));
        early.conceal(&thread);
        assert!(early.keep(&thread, ThreadStatusChanged::METHOD, &params), "of a copy");
        early.reveal(&thread);
        assert!(!early.keep(&thread, ThreadStatusChanged::METHOD, &params));
        let kept = (0..MOST + 9).filter(|_| early.keep(&thread, "error", &params)).count();
        assert_eq!((kept, early.release(&thread).len()), (MOST, MOST));
        assert!(!early.keep(&thread, "error", &params));
    }
}
