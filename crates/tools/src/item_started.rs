//! Items that a tool begins by itself, because nothing of theirs is decided about.

use protocol::{ItemStartedNotification, ServerNotification, ThreadId, ThreadItem, TurnId};

use crate::bench::BenchOptions;

/// The notification that an item has started.
pub(crate) fn item_started(
    options: &BenchOptions,
    thread_id: &ThreadId,
    turn_id: &TurnId,
    item: ThreadItem,
) -> ServerNotification {
    ServerNotification::ItemStarted(ItemStartedNotification {
        item,
        thread_id: thread_id.clone(),
        turn_id: turn_id.clone(),
        started_at_ms: options.clock.now_ms(),
    })
}
