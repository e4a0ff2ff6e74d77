//! The record of a thread as it travels: to the host that owns it, and back on resume.

use super::prelude::*;

/// Who keeps the authoritative record.
#[wire]
pub enum RolloutOwnership {
    /// The runtime, in a file.
    Server,
    /// The host, which gets it by `rollout/append`.
    Client,
}

/// How well a supplied history reproduces the prompt.
#[wire]
pub enum HistoryFidelity {
    /// Fully: it was given as `initialItems`.
    Exact,
    /// In part: it was rebuilt from `turnHistory`.
    Lossy,
}

/// One record with its place in the thread.
#[wire]
pub struct RolloutItem {
    /// Its position in the record. Never changes.
    pub ordinal: u64,
    /// Format of this kind of record. A reader refuses one newer than it knows.
    #[serde(default = "first_schema")]
    pub schema: u32,
    #[serde(flatten)]
    pub record: RolloutRecord,
}

fn first_schema() -> u32 {
    1
}

/// The content of a record.
#[wire(tag = "kind")]
pub enum RolloutRecord {
    /// The thread's identity and first settings.
    SessionMeta { meta: Box<SessionMeta> },
    /// The settings a turn runs with, from which its context is rebuilt.
    TurnContext { turn_id: TurnId, context: Value },
    TurnStarted {
        turn_id: TurnId,
        /// Unix milliseconds.
        at_ms: i64,
    },
    /// Something the model sees: input, output, reasoning, calls and their results.
    ResponseItem {
        /// Null for what belongs to no turn.
        turn_id: Option<TurnId>,
        item: ResponseItem,
    },
    /// Something clients see.
    ThreadItem { turn_id: TurnId, item: ThreadItem },
    /// Everything before is replaced by these items.
    Compacted { turn_id: TurnId, summary: String, replacement: Vec<ResponseItem> },
    /// Tokens used so far, after a model response.
    TokenUsage { turn_id: TurnId, usage: ThreadTokenUsage },
    /// A change of the thread's metadata, not of its conversation.
    Metadata { change: ThreadMetadataChange },
    /// The last turns no longer count.
    RolledBack { num_turns: u32 },
    TurnEnded {
        turn_id: TurnId,
        status: TurnStatus,
        /// Set with the status `failed`.
        #[serde(default)]
        error: Option<TurnError>,
        /// Unix milliseconds.
        at_ms: i64,
    },
    /// A step in the life of an operation.
    Operation {
        #[serde(flatten)]
        operation: OperationRecord,
    },
}

/// Who a thread is: written once, first.
#[wire(omit_null)]
pub struct SessionMeta {
    pub thread_id: ThreadId,
    pub session_id: String,
    pub created_at_ms: i64,
    pub cwd: String,
    /// The client that asked for the thread.
    pub originator: String,
    pub cli_version: String,
    pub source: SessionSource,
    pub model_provider: String,
    pub model: Option<String>,
    /// The instructions the thread was started with and keeps.
    pub base_instructions: Option<String>,
    pub developer_instructions: Option<String>,
    pub forked_from_id: Option<ThreadId>,
    pub thread_source: Option<String>,
    pub agent_nickname: Option<String>,
    pub agent_role: Option<String>,
    pub git_info: Option<GitInfo>,
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// `disabled` for a thread that leaves no memories.
    pub memory_mode: Option<String>,
}

/// Missing keeps a fact, null clears it.
#[wire]
#[derive(Default)]
pub struct ThreadMetadataChange {
    pub name: TriState<String>,
    pub git_info: TriState<GitInfo>,
    pub model: TriState<String>,
    pub reasoning_effort: TriState<ReasoningEffort>,
    /// The thread's goal and its cost so far.
    pub goal: TriState<ThreadGoal>,
}

/// Announces a history that comes in parts by `rollout/load`. Meant for histories above 1 MB.
#[wire]
pub struct InitialItemsRef {
    /// How many parts there are.
    pub parts: u32,
    /// SHA-256 over the canonical JSON of all items in order.
    pub digest: String,
}

/// Uploads one part of a history announced by `initialItemsRef`.
#[wire]
pub struct RolloutLoadParams {
    pub thread_id: ThreadId,
    /// From 0.
    pub part: u32,
    pub items: Vec<RolloutItem>,
}

#[wire]
pub struct RolloutLoadResponse {
    /// How many parts have arrived.
    pub received: u32,
}

/// Gives the host records to commit. Sent only when the client owns the record.
#[wire(omit_null)]
pub struct RolloutAppendParams {
    pub thread_id: ThreadId,
    /// The lease the runtime works under. A stale one is refused with `fenced`, and the runtime stops.
    pub host_epoch: u64,
    /// Ordinal of the first item. Must be the store's next, or the append is refused with `ordinalConflict`.
    pub from_ordinal: u64,
    pub items: Vec<RolloutItem>,
    /// Set when the runtime waits for this append before it continues.
    pub barrier: Option<RolloutBarrier>,
}

/// The step that waits for the append to be committed.
#[wire]
pub enum RolloutBarrier {
    /// The request for a decision.
    OperationProposed,
    /// The effect.
    OperationStarted,
    /// The next model request.
    OperationFinished,
    /// The start of the turn.
    UserInput,
    /// Something newer.
    #[serde(untagged)]
    Other(String),
}

/// Sent when the host's store has committed.
#[wire]
pub struct RolloutAppendResponse {
    /// The first one that is free now.
    pub next_ordinal: u64,
    /// Milliseconds that were left of the host's lease when the append arrived. The effect behind the barrier may begin
    /// only within that time of sending the append.
    #[omit]
    pub valid_for_ms: Option<u64>,
}
