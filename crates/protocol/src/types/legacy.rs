//! Payloads older than threads and items, for clients that still use them.

use super::prelude::*;

/// Sent after a compaction. Deprecated: the `contextCompaction` item says the same.
#[wire]
pub struct ContextCompactedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
}

/// Never sent; `item/fileChange/requestApproval` took its place.
#[wire]
pub struct ApplyPatchApprovalParams {
    /// The thread's id.
    pub conversation_id: ThreadId,
    pub call_id: String,
    /// By path.
    pub file_changes: BTreeMap<String, FileChange>,
    pub reason: Option<String>,
    pub grant_root: Option<String>,
}

/// Never sent; `item/commandExecution/requestApproval` took its place.
#[wire]
pub struct ExecCommandApprovalParams {
    /// The thread's id.
    pub conversation_id: ThreadId,
    pub call_id: String,
    pub approval_id: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    pub cwd: String,
    pub reason: Option<String>,
    pub parsed_cmd: Vec<ParsedCommand>,
}

/// The kind of change to a file, in the older form.
#[wire(tag = "type")]
pub enum FileChange {
    Add {
        /// The whole file.
        content: String,
    },
    Delete {
        /// The whole file, as it was.
        content: String,
    },
    Update {
        #[serde(rename = "unified_diff")]
        unified_diff: String,
        /// The new path when the file is also renamed.
        #[serde(rename = "move_path")]
        move_path: Option<String>,
    },
}

/// The apparent action of a command, in the older form.
#[wire(snake_case, tag = "type")]
pub enum ParsedCommand {
    Read { cmd: String, name: String, path: String },
    ListFiles { cmd: String, path: Option<String> },
    Search { cmd: String, path: Option<String>, query: Option<String> },
    Unknown { cmd: String },
}

/// An approval decision, in the older form.
#[wire(snake_case)]
pub enum ReviewDecision {
    /// Do it this once.
    Approved,
    /// Do it, and allow commands that begin like this for good.
    ApprovedExecpolicyAmendment { proposed_execpolicy_amendment: Vec<String> },
    /// Do it, and do not ask for the same again in this session.
    ApprovedForSession,
    /// Keep this rule for the host for good.
    NetworkPolicyAmendment { network_policy_amendment: NetworkPolicyAmendment },
    /// Do not do it. The turn continues.
    Denied,
    /// Do not do it, and interrupt the turn.
    Abort,
}

#[wire]
pub struct ApplyPatchApprovalResponse {
    pub decision: ReviewDecision,
}

#[wire]
pub struct ExecCommandApprovalResponse {
    pub decision: ReviewDecision,
}

/// Which stored conversation to describe.
#[wire(untagged)]
pub enum GetConversationSummaryParams {
    ByPath {
        /// The record's file. A relative path starts at the server's home folder.
        #[serde(rename = "rolloutPath")]
        rollout_path: String,
    },
    ById {
        /// The thread's id.
        #[serde(rename = "conversationId")]
        conversation_id: ThreadId,
    },
}

#[wire]
pub struct GetConversationSummaryResponse {
    pub summary: ConversationSummary,
}

/// A stored conversation in brief.
#[wire]
pub struct ConversationSummary {
    /// The thread's id.
    pub conversation_id: ThreadId,
    /// The record's file.
    pub path: String,
    /// Text of the first user message.
    pub preview: String,
    /// When it began, in RFC 3339.
    pub timestamp: Option<String>,
    /// In RFC 3339.
    pub updated_at: Option<String>,
    pub model_provider: String,
    pub cwd: String,
    /// The version that made it.
    pub cli_version: String,
    pub source: SessionSource,
    pub git_info: Option<ConversationGitInfo>,
}

/// The state of the git repository. Field names are snake_case.
#[wire(snake_case)]
pub struct ConversationGitInfo {
    pub sha: Option<String>,
    pub branch: Option<String>,
    pub origin_url: Option<String>,
}

/// Compares a working copy with its remote.
#[wire]
pub struct GitDiffToRemoteParams {
    pub cwd: String,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[omit]
    #[experimental("gitDiffToRemote.placementId")]
    pub placement_id: Option<String>,
}

#[wire]
pub struct GitDiffToRemoteResponse {
    /// The remote's commit the diff starts from.
    pub sha: String,
    /// Unified diff.
    pub diff: String,
}

/// Reads the login method. `account/read` took its place.
#[wire(omit_null)]
pub struct GetAuthStatusParams {
    /// Also return the token. False when unset.
    pub include_token: Option<bool>,
    /// Refresh the token first. False when unset.
    pub refresh_token: Option<bool>,
}

/// The first two fields are null without a login, or if the provider needs no OpenAI login.
#[wire]
pub struct GetAuthStatusResponse {
    pub auth_method: Option<AuthMode>,
    /// Null unless asked for.
    pub auth_token: Option<String>,
    /// Whether the configured provider needs an OpenAI login.
    pub requires_openai_auth: Option<bool>,
}
