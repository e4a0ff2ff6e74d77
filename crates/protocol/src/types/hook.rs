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
    /// Before a turn ends; it may make the agent continue.
    Stop,
}

/// Whether the turn waits for the hook.
#[wire]
pub enum HookExecutionMode {
    Sync,
    Async,
}

/// The kind of a hook. Only commands run; the others are skipped with a warning.
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

/// The purpose of a hook's output.
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

/// The status of a run.
#[wire]
pub enum HookRunStatus {
    Running,
    Completed,
    /// It failed. The turn continues as if it had not run.
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

/// The scope of a run.
#[wire]
pub enum HookScope {
    Thread,
    Turn,
}

/// Lists the hooks for each working directory.
#[wire(omit_null)]
pub struct HooksListParams {
    /// The server's own when empty.
    #[serde(default)]
    pub cwds: Vec<String>,
}

#[wire]
pub struct HooksListResponse {
    pub data: Vec<HooksListEntry>,
}

/// The hooks of one working directory.
#[wire]
pub struct HooksListEntry {
    pub cwd: String,
    pub hooks: Vec<HookMetadata>,
    /// Hooks that are skipped, and why.
    pub warnings: Vec<String>,
    pub errors: Vec<HookErrorInfo>,
}

/// A file of hooks that could not be read.
#[wire]
pub struct HookErrorInfo {
    pub path: String,
    pub message: String,
}

/// One hook as it is configured.
#[wire]
pub struct HookMetadata {
    /// Its name among all hooks: the file, the event and the place in it.
    pub key: String,
    pub event_name: HookEventName,
    pub handler_type: HookHandlerType,
    pub matcher: Option<String>,
    pub command: Option<String>,
    pub timeout_sec: i64,
    pub status_message: Option<String>,
    pub source_path: AbsolutePath,
    pub source: HookSource,
    pub plugin_id: Option<String>,
    pub display_order: i64,
    /// Whether it runs.
    pub enabled: bool,
    /// Whether an administrator configured it.
    pub is_managed: bool,
    /// Over the event and the handler. Another one means another hook.
    pub current_hash: String,
    pub trust_status: HookTrustStatus,
}

/// Where a hook is configured.
#[wire]
pub enum HookSource {
    System,
    User,
    Project,
    Mdm,
    SessionFlags,
    Plugin,
    LegacyManagedConfigFile,
    Unknown,
}

/// Whether the user has agreed to a hook.
#[wire]
pub enum HookTrustStatus {
    /// An administrator's.
    Managed,
    /// Not agreed to, so it does not run.
    Untrusted,
    Trusted,
    /// Changed since it was agreed to, so it does not run.
    Modified,
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
