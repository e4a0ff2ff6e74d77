//! Items that a tool begins by itself, because nothing of theirs is decided about.

use std::time::{SystemTime, UNIX_EPOCH};

use protocol::{ItemStartedNotification, ServerNotification, ThreadId, ThreadItem, TurnId};

/// The notification that an item has started.
pub(crate) fn item_started(thread_id: &ThreadId, turn_id: &TurnId, item: ThreadItem) -> ServerNotification {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    ServerNotification::ItemStarted(ItemStartedNotification {
        item,
        thread_id: thread_id.clone(),
        turn_id: turn_id.clone(),
        started_at_ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
    })
}
