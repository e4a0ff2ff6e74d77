//! Turns: one piece of user input and all that comes of it.

use super::prelude::*;

/// Starts a turn; while one is running, the input joins it. What is set here holds for later turns too,
/// unless a field says otherwise.
#[wire(omit_null)]
pub struct TurnStartParams {
    pub thread_id: ThreadId,
    /// At most 1,048,576 characters of text in all.
    pub input: Vec<UserInput>,
    /// A result for the model that no call asked for.
    pub tool_output: Option<TurnToolOutput>,
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// Replaces the policy as a whole.
    pub sandbox_policy: Option<SandboxPolicy>,
    pub model: Option<String>,
    /// Missing keeps the tier, null clears it.
    pub service_tier: TriState<ServiceTier>,
    /// Applies to this turn alone.
    pub service_tier_for_turn: Option<String>,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub personality: Option<Personality>,
    /// JSON Schema the final answer must follow. For this turn alone.
    pub output_schema: Option<Value>,
    /// Wins over `model` and `effort`.
    #[experimental("turn/start.collaborationMode")]
    pub collaboration_mode: Option<CollaborationMode>,
    /// For this and later turns; an empty list leaves the thread without an environment.
    #[experimental("turn/start.environments")]
    pub environments: Option<Vec<EnvironmentSelection>>,
    /// The complete map; unset, null and empty all clear it.
    #[experimental("turn/start.additionalContext")]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// Becomes the id of the user's message. To a host it also makes the request safe to repeat: an id that is known
    /// gets its first answer again.
    #[experimental("turn/start.inputId")]
    pub input_id: Option<String>,
    /// The id of the turn that begins, where the caller chooses it.
    #[experimental("turn/start.turnId")]
    pub turn_id: Option<TurnId>,
}

/// Adds input to the turn that runs. The model gets it after its current response.
#[wire]
pub struct TurnSteerParams {
    pub thread_id: ThreadId,
    /// At most 1,048,576 characters of text in all. Must not be empty.
    pub input: Vec<UserInput>,
    /// The turn that runs; fails when another one does.
    pub expected_turn_id: TurnId,
    /// The complete map; unset, null and empty all clear it.
    #[experimental("turn/steer.additionalContext")]
    #[omit]
    pub additional_context: Option<BTreeMap<String, AdditionalContextEntry>>,
    /// Becomes the id of the user's message; see `turn/start`.
    #[experimental("turn/steer.inputId")]
    #[omit]
    pub input_id: Option<String>,
}

/// Stops the turn that runs. Answered when it has stopped; fails when none runs. Terminals the agent left
/// running go on.
#[wire]
pub struct TurnInterruptParams {
    pub thread_id: ThreadId,
    /// The turn to stop; fails when another one runs. Empty for whatever runs.
    pub turn_id: TurnId,
}

/// The class of an error, for programs.
#[wire]
pub enum CodexErrorInfo {
    /// The history no longer fits the model.
    ContextWindowExceeded,
    /// The account has used up its quota.
    UsageLimitExceeded,
    /// The provider has no room now.
    ServerOverloaded,
    InternalServerError,
    Unauthorized,
    BadRequest,
    /// Too many requests in too short a time.
    #[experimental("codexErrorInfo.rateLimitExceeded")]
    RateLimitExceeded,
    /// The host's budget is spent.
    #[experimental("codexErrorInfo.sessionBudgetExceeded")]
    SessionBudgetExceeded,
    #[experimental("codexErrorInfo.modelNotFound")]
    ModelNotFound,
    ThreadRollbackFailed,
    SandboxError,
    /// None of the others.
    Other,
    /// The provider could not be reached or answered with an error.
    HttpConnectionFailed {
        /// Null without an answer.
        http_status_code: Option<u16>,
    },
    /// The stream could not be opened.
    ResponseStreamConnectionFailed {
        /// Null without an answer.
        http_status_code: Option<u16>,
    },
    /// The stream broke off.
    ResponseStreamDisconnected {
        /// Null without an answer.
        http_status_code: Option<u16>,
    },
    /// Every attempt failed.
    ResponseTooManyFailedAttempts {
        /// Of the last attempt; null without an answer.
        http_status_code: Option<u16>,
    },
    /// The turn that runs takes no input.
    ActiveTurnNotSteerable {
        turn_kind: NonSteerableTurnKind,
    },
}

/// A kind of turn that takes no input.
#[wire]
pub enum NonSteerableTurnKind {
    Review,
    Compact,
}

/// One piece of user input and all that came of it.
#[wire]
pub struct Turn {
    pub id: TurnId,
    /// Filled where a thread comes with its history and by `review/start`; else empty, as items come in
    /// notifications.
    pub items: Vec<ThreadItem>,
    pub status: TurnStatus,
    /// Set when `status` is `failed`.
    pub error: Option<TurnError>,
    /// Unix seconds.
    pub started_at: Option<i64>,
    /// Unix seconds.
    pub completed_at: Option<i64>,
    /// Null while the turn runs.
    pub duration_ms: Option<i64>,
    /// The agent's plan as it last was, where a turn is read from its record.
    #[experimental("turn.plan")]
    #[omit]
    pub plan: Option<Vec<TurnPlanStep>>,
}

/// The failure.
#[wire]
pub struct TurnError {
    /// For people.
    pub message: String,
    /// The class of the error, for programs.
    pub codex_error_info: Option<CodexErrorInfo>,
    /// More for people, such as the error behind this one.
    pub additional_details: Option<String>,
}

/// The status of a turn.
#[wire]
pub enum TurnStatus {
    Completed,
    /// Stopped by a client, or cut off by the end of the server.
    Interrupted,
    Failed,
    InProgress,
}

/// Sent before `turn/started`.
#[wire]
pub struct TurnStartResponse {
    /// Without items.
    pub turn: Turn,
}

/// The cost of a turn's model requests, by the configured prices.
#[wire]
pub struct TurnCost {
    /// In the currency of the prices.
    pub amount: f64,
    /// Some of the tokens were not counted by the provider but estimated.
    #[omit]
    pub is_estimated: bool,
}

#[wire]
pub struct TurnSteerResponse {
    /// The turn the input was added to.
    pub turn_id: TurnId,
}

#[wire]
pub struct TurnInterruptResponse {}

/// Sent when a turn begins.
#[wire]
pub struct TurnStartedNotification {
    pub thread_id: ThreadId,
    /// Without items.
    pub turn: Turn,
}

/// Sent when a turn has ended: completed, interrupted or failed.
#[wire]
pub struct TurnCompletedNotification {
    pub thread_id: ThreadId,
    /// Without items.
    pub turn: Turn,
    /// Only for models that `[prices]` names.
    #[omit]
    pub cost: Option<TurnCost>,
}

/// Sent after each patch, and after each model response once files have changed.
#[wire]
pub struct TurnDiffUpdatedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// All changes of the turn so far, as one unified diff.
    pub diff: String,
}

/// One step of the agent's plan.
#[wire]
pub struct TurnPlanStep {
    pub step: String,
    pub status: TurnPlanStepStatus,
}

#[wire]
pub enum TurnPlanStepStatus {
    Pending,
    InProgress,
    Completed,
}

/// Sent when the agent makes or changes its plan.
#[wire]
pub struct TurnPlanUpdatedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub explanation: Option<String>,
    /// The whole plan, in order.
    pub plan: Vec<TurnPlanStep>,
}

/// A tool's result that the client adds without the model having called the tool.
#[wire(omit_null)]
pub struct TurnToolOutput {
    /// The tool's name.
    pub name: String,
    pub namespace: Option<String>,
    pub output: FunctionCallOutputBody,
    /// Asks that it stay in the model's history. It does in any case, until a compaction replaces it by a summary.
    #[serde(default)]
    pub retain: bool,
}

/// Brings a turn to a safe point, commits it and puts it away. The process may then end; `resumeTurn` takes
/// the turn up again.
#[wire(omit_null)]
pub struct TurnSuspendParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub mode: TurnSuspendMode,
    /// How long it may take to get there.
    pub deadline_ms: Option<u64>,
}

/// When to put the turn away.
#[wire]
pub enum TurnSuspendMode {
    /// Once something waits for a decision.
    WhenPending,
    /// At the next safe point. Effects that can be cancelled are.
    Now,
}

/// Sent after `turn/suspended`.
#[wire]
pub struct TurnSuspendResponse {
    /// Operations that wait for a decision.
    pub pending_operations: Vec<PendingOperation>,
}

/// Sent when a turn was suspended.
#[wire]
pub struct TurnSuspendedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// Operations that wait for a decision.
    pub pending_operations: Vec<PendingOperation>,
}
