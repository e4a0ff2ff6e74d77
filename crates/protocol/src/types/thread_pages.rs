//! The turns, items and records of a thread, a page at a time.

use super::prelude::*;

/// The part of each turn that a page holds.
#[wire]
pub enum TurnItemsView {
    /// No items.
    NotLoaded,
    /// The first message of the user and the last one of the agent.
    Summary,
    /// All items.
    Full,
}

/// Lists the turns of a thread, stored or loaded.
#[wire(omit_null)]
pub struct ThreadTurnsListParams {
    pub thread_id: ThreadId,
    /// `nextCursor` of the page before; unset for the first page. `backwardsCursor` goes the other way.
    pub cursor: Option<String>,
    /// Most turns on one page: 25 when unset, never more than 100.
    pub limit: Option<u32>,
    /// Newest first when unset.
    pub sort_direction: Option<SortDirection>,
    /// `summary` when unset.
    pub items_view: Option<TurnItemsView>,
}

#[wire]
pub struct ThreadTurnsListResponse {
    pub data: Vec<Turn>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
    /// For the other `sortDirection`: begins with the first turn of this page. Null when the page is empty.
    pub backwards_cursor: Option<String>,
}

/// Lists the items of a thread, or of one of its turns.
#[wire(omit_null)]
pub struct ThreadItemsListParams {
    pub thread_id: ThreadId,
    /// Only items of this turn.
    pub turn_id: Option<TurnId>,
    /// `nextCursor` of the page before; unset for the first page. `backwardsCursor` goes the other way.
    pub cursor: Option<String>,
    /// Most items on one page: 25 when unset, never more than 100.
    pub limit: Option<u32>,
    /// Newest first when unset.
    pub sort_direction: Option<SortDirection>,
}

/// An item and the turn it belongs to.
#[wire]
pub struct ThreadItemEntry {
    pub turn_id: TurnId,
    pub item: ThreadItem,
}

#[wire]
pub struct ThreadItemsListResponse {
    pub data: Vec<ThreadItemEntry>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
    /// For the other `sortDirection`: begins with the first item of this page. Null when the page is empty.
    pub backwards_cursor: Option<String>,
}

/// Lists the records of a thread as they are stored: the whole of what is known about it.
#[wire(omit_null)]
pub struct ThreadRecordsListParams {
    pub thread_id: ThreadId,
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most records on one page: 25 when unset, never more than 100. A page of large records holds fewer.
    pub limit: Option<u32>,
    /// Newest first when unset.
    pub sort_direction: Option<SortDirection>,
}

#[wire]
pub struct ThreadRecordsListResponse {
    /// Each as `rollout/append` has it, with its `ordinal` and its `kind`; also those of a newer release.
    pub data: Vec<Raw>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}
