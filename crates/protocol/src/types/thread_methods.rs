//! Methods of a thread besides opening it.

use serde::{Deserialize, Serialize};

use super::prelude::*;
use crate::gate::never_gated;

/// Unloads a thread, ends all subscriptions to it and moves its record to the archive.
#[wire]
pub struct ThreadArchiveParams {
    pub thread_id: ThreadId,
}

/// Deletes the record of a thread and of all threads that its agents started. Refused while a turn runs in it, or while
/// another process has one of them open.
#[wire]
pub struct ThreadDeleteParams {
    pub thread_id: ThreadId,
}

/// Ends the caller's subscription. The last subscriber to leave unloads the thread, which ends a turn that
/// runs.
#[wire]
pub struct ThreadUnsubscribeParams {
    pub thread_id: ThreadId,
}

/// Names a thread, loaded or not.
#[wire]
pub struct ThreadSetNameParams {
    pub thread_id: ThreadId,
    /// Space around it is cut off. Must not be empty then.
    pub name: String,
}

/// Missing keeps a fact, null clears it. At least one must be there.
#[wire]
#[derive(Default)]
pub struct ThreadMetadataGitInfoUpdateParams {
    pub sha: TriState<String>,
    pub branch: TriState<String>,
    pub origin_url: TriState<String>,
}

/// Changes what is stored about a thread, loaded, unloaded or archived. Not for ephemeral ones.
#[wire(omit_null)]
pub struct ThreadMetadataUpdateParams {
    pub thread_id: ThreadId,
    pub git_info: Option<ThreadMetadataGitInfoUpdateParams>,
}

/// Moves a thread out of the archive, without loading it.
#[wire]
pub struct ThreadUnarchiveParams {
    pub thread_id: ThreadId,
}

/// Starts a turn that replaces the history by a summary. Interrupts the turn that runs.
#[wire]
pub struct ThreadCompactStartParams {
    pub thread_id: ThreadId,
}

/// Runs a command of the user's own, without sandbox, for an hour at most. Joins the turn that runs or makes
/// one; the model sees the output.
#[wire]
pub struct ThreadShellCommandParams {
    pub thread_id: ThreadId,
    /// For the user's shell.
    pub command: String,
}

/// Ends the terminals that outlived their turns.
#[wire]
pub struct ThreadBackgroundTerminalsCleanParams {
    pub thread_id: ThreadId,
}

/// Drops the last turns from the history. Files stay as they are. Not while a turn runs, and not for
/// ephemeral threads.
#[wire]
pub struct ThreadRollbackParams {
    pub thread_id: ThreadId,
    /// At least 1. As many as there are, or more, leaves none.
    pub num_turns: u32,
}

/// Lists stored threads, a page at a time.
#[wire(omit_null)]
pub struct ThreadListParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most threads on one page: 25 when unset, never more than 100.
    pub limit: Option<u32>,
    /// `created_at` when unset.
    pub sort_key: Option<ThreadSortKey>,
    /// Newest first when unset.
    pub sort_direction: Option<SortDirection>,
    /// Only threads of these providers. Unset means the current one, an empty list means all.
    pub model_providers: Option<Vec<String>>,
    /// Only threads of these kinds. Unset or empty means those a user started by hand.
    pub source_kinds: Option<Vec<ThreadSourceKind>>,
    /// List the archive instead. False when unset.
    pub archived: Option<bool>,
    /// Exact match.
    pub cwd: Option<ThreadListCwd>,
    /// Only threads whose first user message contains this. Case counts.
    pub search_term: Option<String>,
}

/// Lists the ids of the threads in memory.
#[wire(omit_null)]
pub struct ThreadLoadedListParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most ids on one page; all when unset.
    pub limit: Option<u32>,
}

/// Reads a thread without loading it or subscribing to it.
#[wire]
pub struct ThreadReadParams {
    pub thread_id: ThreadId,
    /// Fill in `turns`. Not for ephemeral threads, nor before the first user message.
    #[serde(default)]
    pub include_turns: bool,
    /// Answer without the turns even where they would be included.
    #[omit]
    pub exclude_turns: bool,
}

#[wire]
pub struct ThreadArchiveResponse {}

#[wire]
pub struct ThreadDeleteResponse {
    /// The thread, and then the threads below it.
    pub deleted_thread_ids: Vec<ThreadId>,
}

/// The outcome of ending a subscription.
#[wire]
pub enum ThreadUnsubscribeStatus {
    /// The thread is not in memory.
    NotLoaded,
    /// There was none.
    NotSubscribed,
    Unsubscribed,
}

#[wire]
pub struct ThreadUnsubscribeResponse {
    pub status: ThreadUnsubscribeStatus,
}

#[wire]
pub struct ThreadSetNameResponse {}

#[wire]
pub struct ThreadMetadataUpdateResponse {
    /// Without turns.
    pub thread: Thread,
}

#[wire]
pub struct ThreadUnarchiveResponse {
    /// Without turns.
    pub thread: Thread,
}

#[wire]
pub struct ThreadCompactStartResponse {}

#[wire]
pub struct ThreadShellCommandResponse {}

#[wire]
pub struct ThreadBackgroundTerminalsCleanResponse {}

#[wire]
pub struct ThreadRollbackResponse {
    /// With the turns that are left.
    pub thread: Thread,
}

#[wire]
pub struct ThreadListResponse {
    /// Without turns. Loaded threads have their live status.
    pub data: Vec<Thread>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

#[wire]
pub struct ThreadLoadedListResponse {
    /// Thread ids, ascending.
    pub data: Vec<String>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

#[wire]
pub struct ThreadReadResponse {
    pub thread: Thread,
    /// Of a host, with `includeTurns`: who decided about what the thread did, oldest first.
    #[omit]
    #[experimental("thread/read.decisions")]
    pub decisions: Vec<ThreadDecision>,
}

#[wire]
pub enum SortDirection {
    Asc,
    Desc,
}

/// Threads of exactly this folder, or of any of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ThreadListCwd {
    One(String),
    Any(Vec<String>),
}
never_gated!(ThreadListCwd);
