//! Hooks: commands the user has run at certain points of a thread's life, and how they went.

use super::prelude::*;

/// When a hook runs.
#[wire]
pub enum HookEventName {
    /// Before a command; it may block it.
    PreToolUse,
    /// After a command; it may replace the output the model gets.
    PostToolUse,
    /// In the first turn after a thread was started or resumed.
    SessionStart,
    /// Before a prompt is recorded; it may drop it.
    UserPromptSubmit,
    /// Before a turn ends; it may make the agent go on.
    Stop,
}

/// Whether the turn waits for the hook.
#[wire]
pub enum HookExecutionMode {
    Sync,
    Async,
}

/// What a hook is. Only commands run; the others are skipped with a warning.
#[wire]
pub enum HookHandlerType {
    Command,
    Prompt,
    Agent,
}

/// One thing a hook had to say.
#[wire]
pub struct HookOutputEntry {
    pub kind: HookOutputEntryKind,
    pub text: String,
}

/// What a hook's words are for.
#[wire]
pub enum HookOutputEntryKind {
    /// For the user.
    Warning,
    /// Why it ended the turn.
    Stop,
    /// Why it blocked, for the model.
    Feedback,
    /// Something for the model to know.
    Context,
    /// Why the run failed.
    Error,
}

/// How a run stands.
#[wire]
pub enum HookRunStatus {
    Running,
    Completed,
    /// It went wrong. The turn goes on as if it had not run.
    Failed,
    /// It blocked what it was asked about.
    Blocked,
    /// It ended the turn.
    Stopped,
}

/// One run of one hook.
#[wire]
pub struct HookRunSummary {
    /// The same in `hook/started` and `hook/completed`.
    pub id: String,
    pub event_name: HookEventName,
    pub handler_type: HookHandlerType,
    pub execution_mode: HookExecutionMode,
    pub scope: HookScope,
    /// The file the hook is configured in.
    pub source_path: String,
    /// Its place among the hooks.
    pub display_order: i64,
    pub status: HookRunStatus,
    /// The configured text to show while it runs.
    pub status_message: Option<String>,
    /// Unix seconds.
    pub started_at: i64,
    /// Unix seconds; null while it runs.
    pub completed_at: Option<i64>,
    /// Null while it runs.
    pub duration_ms: Option<i64>,
    pub entries: Vec<HookOutputEntry>,
}

/// What a run belongs to.
#[wire]
pub enum HookScope {
    Thread,
    Turn,
}

/// Sent when a hook begins.
#[wire]
pub struct HookStartedNotification {
    pub thread_id: ThreadId,
    /// Null outside any turn.
    pub turn_id: Option<TurnId>,
    pub run: HookRunSummary,
}

/// Sent when a hook has ended.
#[wire]
pub struct HookCompletedNotification {
    pub thread_id: ThreadId,
    /// Null outside any turn.
    pub turn_id: Option<TurnId>,
    pub run: HookRunSummary,
}
