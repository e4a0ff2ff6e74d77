//! Which tools exist for the model and who approves their calls, with an approval request for tools that have
//! none.

use super::prelude::*;

/// The tools of a thread.
#[wire(omit_null)]
pub struct ToolSet {
    pub mode: ToolSetMode,
    /// Which of the runtime's own tools to keep.
    pub builtin: Option<BuiltinToolFilter>,
    /// The host's own tools.
    #[serde(default)]
    pub dynamic: Vec<ToolSetTool>,
    pub approval: Option<ToolApprovalRules>,
}

/// How the host's choice meets the runtime's.
#[wire]
pub enum ToolSetMode {
    /// The runtime's choice; `allow` and `dynamic` are not permitted.
    Default,
    /// The runtime's choice without `deny`, and `allow` and `dynamic` added.
    Additive,
    /// Exactly `allow` and `dynamic`. A newer runtime adds nothing by itself, and an unknown name is refused.
    Replace,
}

/// Built-in tools by name.
#[wire(omit_null)]
pub struct BuiltinToolFilter {
    /// For the modes `replace` and `additive`, where it adds tools that the runtime would not offer by itself.
    pub allow: Option<Vec<String>>,
    /// For the mode `additive`.
    pub deny: Option<Vec<String>>,
}

/// A tool that the host runs.
#[wire(omit_null)]
pub struct ToolSetTool {
    /// The same rules as for dynamic tools.
    pub name: String,
    /// For the model to read.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// Leave the tool out of what the model is offered at first.
    #[serde(default)]
    pub defer_loading: bool,
    /// Take the place of a built-in of the same name, which is refused otherwise.
    #[serde(default)]
    pub r#override: bool,
    /// `once` when unset.
    pub effects: Option<ToolEffects>,
}

/// Who decides about calls.
#[wire]
pub struct ToolApprovalRules {
    /// For tools without a rule of their own.
    pub default: ToolApprovalRule,
    /// By tool name.
    #[serde(default)]
    pub per_tool: BTreeMap<String, ToolApprovalRule>,
}

/// When a call asks the host.
#[wire]
pub enum ToolApprovalRule {
    /// The runtime's policy decides when to ask.
    Runtime,
    /// Every call asks.
    Host,
    /// Every call is refused.
    Never,
}

/// A tool as the model is offered it.
#[wire]
pub struct EffectiveTool {
    pub name: String,
    pub origin: ToolOrigin,
    pub approval: ToolApprovalRule,
}

/// Where a tool comes from.
#[wire]
pub enum ToolOrigin {
    Builtin,
    Dynamic,
    Mcp,
}

/// Asks whether a tool may be called. For tools that have no approval request of their own.
#[wire(omit_null)]
pub struct ToolRequestApprovalParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item_id: ItemId,
    /// The same when the request is sent again, also after a restart.
    pub operation_id: OperationId,
    pub tool: String,
    pub namespace: Option<String>,
    pub arguments: Value,
    /// Binds a decision to exactly these arguments.
    pub arguments_digest: String,
    /// Why approval is needed, for display.
    pub reason: Option<String>,
    pub available_decisions: Vec<ToolApprovalDecision>,
    /// Unix milliseconds.
    pub started_at_ms: i64,
}

#[wire]
pub struct ToolRequestApprovalResponse {
    pub decision: ToolApprovalDecision,
    /// From a host alone: who decided.
    #[omit]
    pub origin: Option<DecisionOrigin>,
}

impl From<ToolApprovalDecision> for ToolRequestApprovalResponse {
    fn from(decision: ToolApprovalDecision) -> Self {
        Self { decision, origin: None }
    }
}

/// A decision about a call.
#[wire]
pub enum ToolApprovalDecision {
    /// Make it this once.
    Accept,
    /// Make it, and do not ask again in this session for the same call.
    AcceptForSession,
    /// Make it with these arguments instead.
    AcceptWithArguments { arguments: Value },
    /// Do not make it; this is its result.
    Respond {
        content_items: Vec<DynamicToolCallOutputContentItem>,
        /// Whether the call counts as successful.
        success: bool,
    },
    /// Do not make it. The turn continues, and the model gets the decision.
    Decline,
    /// Do not make it, and interrupt the turn.
    Cancel,
    /// Not by this client and not now: the question stays open for others and for later.
    Defer,
}
