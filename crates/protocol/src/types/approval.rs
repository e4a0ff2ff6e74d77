//! Approvals: what the server asks before commands and file changes run, and what was decided.

use super::prelude::*;

/// The finding of the automatic reviewer. Unstable: the shape may change.
#[wire]
pub struct GuardianApprovalReview {
    pub status: GuardianApprovalReviewStatus,
    /// Below 80 is approved. Null until there is a verdict.
    pub risk_score: Option<u8>,
    pub risk_level: Option<GuardianRiskLevel>,
    /// The reviewer's reason.
    pub rationale: Option<String>,
}

/// How far the review has come.
#[wire]
pub enum GuardianApprovalReviewStatus {
    InProgress,
    Approved,
    /// The risk is too high, or no usable verdict came in time.
    Denied,
    /// The review ended without a verdict.
    Aborted,
}

/// The risk in one word.
#[wire]
pub enum GuardianRiskLevel {
    Low,
    Medium,
    High,
}

/// Sent when the automatic reviewer begins to look at something that needs approval. `action` says what, for
/// display; its shape is not fixed.
#[wire]
pub struct ItemGuardianApprovalReviewStartedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The item that waits for the verdict.
    pub target_item_id: ItemId,
    pub review: GuardianApprovalReview,
    pub action: Option<Value>,
}

/// Sent when the reviewer is done. `action` says what it looked at, for display; its shape is not fixed. The
/// item's own `item/completed` is sent separately.
#[wire]
pub struct ItemGuardianApprovalReviewCompletedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The item that waited for the verdict.
    pub target_item_id: ItemId,
    pub review: GuardianApprovalReview,
    pub action: Option<Value>,
}

/// Sent once for every approval, question and elicitation: when it is answered, or when the start or end of a
/// turn withdraws it. Comes before the item events the answer causes. Not sent for `item/tool/call` or token
/// refreshes.
#[wire]
pub struct ServerRequestResolvedNotification {
    pub thread_id: ThreadId,
    /// The `id` of the server's request.
    pub request_id: RequestId,
    /// `suspended` when the turn was suspended with the request still open.
    #[experimental("serverRequest/resolved.reason")]
    #[omit]
    pub reason: Option<String>,
}

/// A decision about a command. `decline` is accepted even when `availableDecisions` does not list it.
#[wire]
pub enum CommandExecutionApprovalDecision {
    /// Run it this once.
    Accept,
    /// Run it, and do not ask again in this session for the same command in the same place.
    AcceptForSession,
    /// Run this command instead; it passes the policy and the sandbox again.
    #[experimental("item/commandExecution/requestApproval.acceptWithCommandOverride")]
    AcceptWithCommandOverride {
        /// Program and arguments.
        command: Vec<String>,
    },
    /// Run it, and allow commands that begin like this for good.
    AcceptWithExecpolicyAmendment {
        /// The command prefix to allow, as in `proposedExecpolicyAmendment`.
        #[serde(rename = "execpolicy_amendment")]
        execpolicy_amendment: Vec<String>,
    },
    /// Keep this rule for the host for good; it also decides the request at hand.
    ApplyNetworkPolicyAmendment {
        #[serde(rename = "network_policy_amendment")]
        network_policy_amendment: NetworkPolicyAmendment,
    },
    /// Run with these arguments instead.
    #[experimental("item/commandExecution/requestApproval.acceptWithArguments")]
    AcceptWithArguments { arguments: Value },
    /// Do not run; this is the result.
    #[experimental("item/commandExecution/requestApproval.respond")]
    Respond {
        content_items: Vec<DynamicToolCallOutputContentItem>,
        /// Whether the call counts as successful.
        success: bool,
    },
    /// Do not run it. The turn continues, and the model gets the decision.
    Decline,
    /// Do not run it, and interrupt the turn.
    Cancel,
    /// Not by this client and not now: the question stays open for others and for later.
    #[experimental("item/commandExecution/requestApproval.defer")]
    Defer,
}

/// Asks whether a command may run, or whether it may reach a network host.
#[wire(omit_null)]
pub struct CommandExecutionRequestApprovalParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The command item; with `approvalId`, the command the asking one is part of.
    pub item_id: ItemId,
    /// Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
    /// Set when a command inside a script asks on its own. Tells the requests of one item apart.
    pub approval_id: Option<String>,
    /// Why approval is needed, for display.
    pub reason: Option<String>,
    /// Set when the question is about a network host. `command`, `cwd` and `commandActions` are then left
    /// out.
    pub network_approval_context: Option<NetworkApprovalContext>,
    /// One shell-quoted line.
    pub command: Option<String>,
    pub cwd: Option<String>,
    /// The command's apparent actions, for display.
    pub command_actions: Option<Vec<CommandAction>>,
    /// Sandbox access this command alone would get on top.
    #[experimental("item/commandExecution/requestApproval.additionalPermissions")]
    pub additional_permissions: Option<AdditionalPermissionProfile>,
    /// The skill the command comes from.
    #[experimental("item/commandExecution/requestApproval.skillMetadata")]
    pub skill_metadata: Option<CommandExecutionRequestApprovalSkillMetadata>,
    /// The command prefix that `acceptWithExecpolicyAmendment` would allow.
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// The rules `applyNetworkPolicyAmendment` may choose from.
    pub proposed_network_policy_amendments: Option<Vec<NetworkPolicyAmendment>>,
    /// The decisions to offer to the user.
    #[experimental("item/commandExecution/requestApproval.availableDecisions", sent)]
    pub available_decisions: Option<Vec<CommandExecutionApprovalDecision>>,
    /// The same when the request is sent again, also after a restart.
    #[experimental("item/commandExecution/requestApproval.operationId")]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("item/commandExecution/requestApproval.argumentsDigest")]
    pub arguments_digest: Option<String>,
}

/// A skill whose command asks for approval.
#[wire]
pub struct CommandExecutionRequestApprovalSkillMetadata {
    /// Path of its `SKILL.md`.
    pub path_to_skills_md: String,
}

/// Asks whether a patch may be applied. The changes themselves are in the file-change item.
#[wire]
pub struct FileChangeRequestApprovalParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The file-change item, already announced by `item/started`.
    pub item_id: ItemId,
    /// Unix milliseconds.
    #[serde(default)]
    pub started_at_ms: i64,
    /// Why approval is needed, for display.
    pub reason: Option<String>,
    /// A folder the agent asks to write to for the rest of the session. Unstable.
    pub grant_root: Option<String>,
    /// The same when the request is sent again, also after a restart.
    #[experimental("item/fileChange/requestApproval.operationId")]
    #[omit]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("item/fileChange/requestApproval.argumentsDigest")]
    #[omit]
    pub arguments_digest: Option<String>,
}

/// The network access a command asks for.
#[wire]
pub struct NetworkApprovalContext {
    /// The host alone, without scheme and port.
    pub host: String,
    pub protocol: NetworkApprovalProtocol,
}

/// How the host would be reached.
#[wire]
pub enum NetworkApprovalProtocol {
    Http,
    Https,
    Socks5Tcp,
    Socks5Udp,
}

/// A lasting rule for one host.
#[wire]
pub struct NetworkPolicyAmendment {
    pub host: String,
    pub action: NetworkPolicyRuleAction,
}

/// The rule's action for requests to the host.
#[wire]
pub enum NetworkPolicyRuleAction {
    Allow,
    Deny,
}

#[wire]
pub struct CommandExecutionRequestApprovalResponse {
    pub decision: CommandExecutionApprovalDecision,
    /// From a host alone: who decided.
    #[omit]
    #[experimental("item/commandExecution/requestApproval.origin")]
    pub origin: Option<DecisionOrigin>,
}

impl From<CommandExecutionApprovalDecision> for CommandExecutionRequestApprovalResponse {
    fn from(decision: CommandExecutionApprovalDecision) -> Self {
        Self { decision, origin: None }
    }
}

/// A decision about a patch.
#[wire]
pub enum FileChangeApprovalDecision {
    /// Apply it.
    Accept,
    /// Apply it, and do not ask again in this session for patches of the same files.
    AcceptForSession,
    /// Apply these changes instead.
    #[experimental("item/fileChange/requestApproval.acceptWithArguments")]
    AcceptWithArguments { arguments: Value },
    /// Apply nothing; this is the result.
    #[experimental("item/fileChange/requestApproval.respond")]
    Respond {
        content_items: Vec<DynamicToolCallOutputContentItem>,
        /// Whether the call counts as successful.
        success: bool,
    },
    /// Do not apply it. The turn continues, and the model gets the decision.
    Decline,
    /// Do not apply it, and interrupt the turn.
    Cancel,
    /// Not by this client and not now: the question stays open for others and for later.
    #[experimental("item/fileChange/requestApproval.defer")]
    Defer,
}

#[wire]
pub struct FileChangeRequestApprovalResponse {
    pub decision: FileChangeApprovalDecision,
    /// From a host alone: who decided.
    #[omit]
    #[experimental("item/fileChange/requestApproval.origin")]
    pub origin: Option<DecisionOrigin>,
}

impl From<FileChangeApprovalDecision> for FileChangeRequestApprovalResponse {
    fn from(decision: FileChangeApprovalDecision) -> Self {
        Self { decision, origin: None }
    }
}
