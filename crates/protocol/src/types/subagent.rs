//! Child agents whose place the host decides.

use super::prelude::*;

/// Asks the host where to run a child agent.
#[wire(omit_null)]
pub struct DelegationRequestParams {
    /// The operation id of the call that spawns the child.
    pub delegation_id: OperationId,
    pub parent: DelegationParent,
    /// As the model asked for it.
    pub role: Option<String>,
    /// The child's name, for display.
    pub nickname: Option<String>,
    pub instructions: Option<String>,
    /// The child's first input.
    pub input: Vec<UserInput>,
    pub history: DelegatedHistory,
    /// Where that history is in the record, so that the host can build `initialItems`.
    pub history_ref: Option<HistoryRef>,
    /// Already narrowed: a child never gets more than its parent.
    pub tool_set: Option<ToolSet>,
    pub hints: DelegationHints,
    pub limits: DelegationLimits,
}

/// The agent that spawns a child.
#[wire]
pub struct DelegationParent {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The model's call that spawns the child.
    pub call_id: String,
    /// From the root agent to this one.
    pub agent_path: Vec<String>,
    /// How deep this agent is below the root.
    pub depth: u32,
}

/// How much of the parent's history the child is to see.
#[wire]
pub enum DelegatedHistory {
    None,
    Full,
    /// This many turns, counted from the end.
    LastTurns(u32),
}

/// Ordinals of the parent's record, both included.
#[wire]
pub struct HistoryRef {
    pub from_ordinal: u64,
    pub to_ordinal: u64,
}

/// Suggested settings of the child; never more than its parent has.
#[wire(omit_null)]
pub struct DelegationHints {
    pub cwd: Option<String>,
    pub sandbox: Option<SandboxPolicy>,
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
    pub environment_id: Option<EnvironmentId>,
}

/// Limits of the child. Unset for no limit of that kind.
#[wire(omit_null)]
pub struct DelegationLimits {
    /// In all, input and output.
    pub tokens: Option<u64>,
    pub usd: Option<f64>,
    /// How long the child may take.
    pub deadline_ms: Option<u64>,
    /// How deep its own children may go.
    pub max_depth: u32,
}

/// Where the child runs; sent at once.
#[wire(tag = "disposition")]
pub enum DelegationRequestResponse {
    /// In this runtime. Its model requests still come to the host.
    Runtime { child_thread_id: ThreadId },
    /// Somewhere else; `delegation/result` follows.
    Host {
        /// The host's own name for the child.
        child_ref: String,
    },
    /// There will be no child.
    Rejected {
        /// Shown to the model.
        message: String,
    },
}

/// The result of a child that the host ran. Sending it again does no harm.
#[wire(omit_null)]
pub struct DelegationResultParams {
    pub delegation_id: OperationId,
    pub status: DelegationStatus,
    /// Goes to the parent as the output of a tool, not to be trusted more than that.
    pub output: Vec<DynamicToolCallOutputContentItem>,
    /// Only the child's last message.
    pub final_message: Option<String>,
    /// Tokens the child used.
    pub usage: Option<TokenUsageBreakdown>,
    /// As in the answer to `delegation/request`.
    pub child_ref: Option<String>,
    pub artifacts: Option<Vec<Value>>,
}

/// How a child ended.
#[wire]
pub enum DelegationStatus {
    Completed,
    Failed,
    Canceled,
    TimedOut,
}

#[wire]
pub struct DelegationResultResponse {
    /// The result had been delivered before.
    #[omit]
    pub duplicate: bool,
}

/// Sent by the host while a child runs, as often as it likes.
#[wire(omit_null)]
pub struct DelegationProgressNotification {
    pub delegation_id: OperationId,
    /// For display.
    pub message: Option<String>,
    /// Tokens used so far.
    pub usage: Option<TokenUsageBreakdown>,
}

/// Sent by a host whose lease on its tasks expires, each time it was renewed. A runtime that has heard one exits when the
/// lease is over before the next one comes: another host may have its threads by then.
#[wire]
pub struct DelegationHeartbeatNotification {
    /// Milliseconds that are left of the lease.
    pub valid_for_ms: u64,
}

/// Sends more input to a child the host runs.
#[wire]
pub struct DelegationInputParams {
    pub delegation_id: OperationId,
    /// As in the answer to `delegation/request`.
    pub child_ref: String,
    pub input: Vec<UserInput>,
}

#[wire]
pub struct DelegationInputResponse {}

/// Stops a child the host runs.
#[wire(omit_null)]
pub struct DelegationCancelParams {
    pub delegation_id: OperationId,
    /// As in the answer to `delegation/request`.
    pub child_ref: String,
    pub reason: Option<String>,
}

#[wire]
pub struct DelegationCancelResponse {
    pub disposition: ModelCancelDisposition,
}
