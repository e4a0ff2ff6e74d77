//! Operations: anything that waits for the host or has an effect, with the states that make restarts safe.

use super::prelude::*;

/// One step in the life of an operation. `(operationId, state, attempt)` is written once.
#[wire(tag = "state")]
pub enum OperationRecord {
    /// Asked for, not yet decided.
    Proposed {
        operation_id: OperationId,
        #[serde(rename = "type")]
        kind: OperationType,
        /// The tool's name, as the model knows it.
        tool: String,
        #[serde(default)]
        namespace: Option<String>,
        item_id: ItemId,
        /// From the root agent to the one that asks.
        agent_path: Vec<String>,
        arguments: Value,
        /// Binds a decision to exactly these arguments.
        arguments_digest: String,
        /// Decides what happens when the outcome is unknown.
        effects: ToolEffects,
        /// The decisions that can be carried out.
        #[serde(default)]
        available_decisions: Vec<String>,
        /// Why it waits, for display.
        #[serde(default)]
        reason: Option<String>,
        /// Digest of the tools the model was offered.
        #[omit]
        tool_set_digest: Option<String>,
        /// Digest of the agent's definition. After a change the operation has to be decided again.
        #[omit]
        agent_digest: Option<String>,
        /// Approved for the session, the operation is one with all others that have these keys only.
        #[omit]
        session_keys: Option<Vec<String>>,
        /// The changes of a patch, for deciding it while no runtime is running. Unset beyond 1 MiB, and without a host.
        #[omit]
        changes: Option<Vec<FileUpdateChange>>,
        /// Unix milliseconds.
        created_at_ms: i64,
    },
    /// Decided once; a second, different decision is a conflict.
    Decided {
        operation_id: OperationId,
        decision: OperationDecision,
        /// The attempt this decision is about, where an unknown outcome was decided anew.
        #[omit]
        attempt: Option<u32>,
        /// Who decided: the name a host gave, such as `user:ana`, or `policy:NAME` for a policy of the runtime.
        #[omit]
        by: Option<String>,
        /// Must be the proposed one.
        arguments_digest: String,
        /// Approved for the session, also by the next runtime: operations with these keys are not asked about again.
        #[omit]
        session_keys: Option<Vec<String>>,
        /// Unix milliseconds.
        decided_at_ms: i64,
    },
    /// Written before the effect. Without `finished` after a crash, the outcome is unknown.
    Started {
        operation_id: OperationId,
        /// From 1.
        attempt: u32,
        /// Who performs the effect: the host for its own tools and children, else the runtime.
        executor: String,
        /// The executor's lease. A stale one can start nothing.
        #[omit]
        epoch: Option<u64>,
    },
    /// Over, with its output.
    Finished {
        operation_id: OperationId,
        /// The attempt that was started.
        attempt: u32,
        success: bool,
        output: Vec<DynamicToolCallOutputContentItem>,
        #[omit]
        output_digest: Option<String>,
    },
    /// Started before a crash and never seen to finish. Not run again by itself.
    Unknown {
        operation_id: OperationId,
        /// The attempt that was started.
        attempt: u32,
    },
    /// Given up before it started.
    Withdrawn {
        operation_id: OperationId,
        #[omit]
        reason: Option<String>,
    },
}

/// The kind of an operation.
#[wire]
pub enum OperationType {
    Command,
    FileChange,
    Permission,
    /// A tool the host runs.
    Function,
    /// A call to an MCP server.
    Mcp,
    /// A question of an MCP server.
    Elicitation,
    /// A question of the agent.
    UserInput,
    /// A child agent.
    Delegation,
    /// Something newer.
    #[serde(untagged)]
    Other(String),
}

/// Whether a tool may run again, and with which consequence.
#[wire]
#[derive(Default)]
pub enum ToolEffects {
    /// Nothing; the tool only looks.
    Readonly,
    /// No second effect, if it is given the same operation id.
    Idempotent,
    /// Possibly a second effect, so it is never run again when the outcome is unknown.
    #[default]
    Once,
}

/// The decision of a person or a policy.
#[wire(tag = "type")]
pub enum OperationDecision {
    /// Run it.
    Approve {
        /// `call` when unset.
        #[omit]
        scope: Option<DecisionScope>,
        /// Also save a rule that allows commands with this prefix, as the question offered it.
        #[omit]
        execpolicy_amendment: Option<Vec<String>>,
    },
    /// Do not run it.
    Reject {
        /// Shown to the model.
        #[omit]
        message: Option<String>,
        /// Also end the turn.
        #[serde(default)]
        end_turn: bool,
    },
    /// Run something else instead, which passes the policy and the sandbox again.
    Replace {
        /// Program and arguments, for a command.
        #[omit]
        command: Option<Vec<String>>,
        /// For any other tool.
        #[omit]
        arguments: Option<Value>,
    },
    /// Run nothing and give this result.
    Respond {
        content_items: Vec<DynamicToolCallOutputContentItem>,
        /// Whether the call counts as successful.
        success: bool,
    },
    /// Run again; only for an unknown outcome.
    Retry,
}

impl OperationDecision {
    /// The same thing again need not be asked about.
    pub fn is_for_session(&self) -> bool {
        matches!(self, Self::Approve { scope: Some(DecisionScope::Session), .. })
    }
}

/// How far an approval reaches.
#[wire]
pub enum DecisionScope {
    /// This call alone.
    Call,
    /// The same thing again too, for as long as the session lasts.
    Session,
}

/// An operation that was decided or run while no runtime was alive.
#[wire(omit_null)]
pub struct ResolvedOperation {
    pub operation_id: OperationId,
    /// Must match what the runtime proposed.
    pub arguments_digest: String,
    /// Either this or `result`.
    pub decision: Option<OperationDecision>,
    /// Its result, if it was run.
    pub result: Option<OperationResult>,
    /// Who decided. The record keeps it.
    pub by: Option<String>,
    /// When, in Unix milliseconds. Now if unset.
    pub decided_at_ms: Option<i64>,
}

/// Who took the decision in an answer, and when. The record keeps both.
#[wire]
pub struct DecisionOrigin {
    /// Such as `user:ana`.
    pub by: String,
    /// Unix milliseconds.
    pub decided_at_ms: i64,
}

/// The result of an operation.
#[wire]
pub struct OperationResult {
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    pub success: bool,
}

/// An operation that still waits.
#[wire]
pub struct PendingOperation {
    pub operation_id: OperationId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    #[serde(rename = "type")]
    pub kind: OperationType,
    pub state: PendingOperationState,
    /// The tool's name, as the model knows it.
    pub tool: String,
    pub namespace: Option<String>,
    /// From the root agent to the one that asks.
    pub agent_path: Vec<String>,
    pub arguments: Value,
    /// To be repeated with the decision.
    pub arguments_digest: String,
    /// Whether it may run again, and with which consequence.
    #[serde(default)]
    pub effects: ToolEffects,
    /// The decisions that can be carried out.
    pub available_decisions: Vec<String>,
    /// Why it waits, for display.
    pub reason: Option<String>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
}

/// How far a waiting operation has come.
#[wire]
pub enum PendingOperationState {
    /// Not decided.
    Proposed,
    /// Decided, not started.
    Decided,
    /// Started and never seen to finish.
    Unknown,
}
