//! Notifications about items: they begin, grow and end.

use super::prelude::*;

/// Sent when an item begins. Later notifications refer to it by its id.
#[wire]
pub struct ItemStartedNotification {
    /// The item as far as it is known.
    pub item: ThreadItem,
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
}

/// Sent when an item has ended. A terminal that outlives its turn sends it after `turn/completed`, with the
/// id of that turn.
#[wire]
pub struct ItemCompletedNotification {
    /// Final.
    pub item: ThreadItem,
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// Unix milliseconds.
    #[serde(default)]
    pub completed_at_ms: i64,
}

/// Sent as an agent message grows.
#[wire]
pub struct AgentMessageDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// To be appended to the text so far.
    pub delta: String,
}

/// Sent as a proposed plan grows.
#[wire]
pub struct PlanDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// To be appended to the text so far.
    pub delta: String,
}

/// Sent as a command writes output.
#[wire]
pub struct CommandExecutionOutputDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// Standard output and error, to be appended to the output so far.
    pub delta: String,
}

/// Sent when the agent types into a running terminal.
#[wire]
pub struct TerminalInteractionNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// The terminal, as in the command item.
    pub process_id: String,
    /// The typed text.
    pub stdin: String,
}

/// Sent as a patch is applied.
#[wire]
pub struct FileChangeOutputDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// Output of the patch tool.
    pub delta: String,
}

/// Progress of an MCP tool call. Declared for clients that know it; not sent.
#[wire]
pub struct McpToolCallProgressNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    pub message: String,
}

/// Sent as a reasoning summary grows.
#[wire]
pub struct ReasoningSummaryTextDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// To be appended to that part of the summary.
    pub delta: String,
    /// Position in the item's `summary`.
    pub summary_index: i64,
}

/// Sent when a new part of a reasoning summary begins.
#[wire]
pub struct ReasoningSummaryPartAddedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// Position of the new part in the item's `summary`.
    pub summary_index: i64,
}

/// Sent as raw reasoning grows, with models that show it.
#[wire]
pub struct ReasoningTextDeltaNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// To be appended to that part of the reasoning.
    pub delta: String,
    /// Position in the item's `content`.
    pub content_index: i64,
}
