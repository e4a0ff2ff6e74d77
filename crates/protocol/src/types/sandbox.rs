//! Approval policies and sandboxes: when to ask, and what commands may touch.

use super::prelude::*;

/// Who answers approval requests.
#[wire(snake_case)]
pub enum ApprovalsReviewer {
    /// The client.
    User,
    /// A reviewing agent, under the policy `on-request`.
    GuardianSubagent,
    /// The newer word for `guardian_subagent`.
    AutoReview,
}

/// When to ask before something runs.
#[wire(kebab_case)]
pub enum AskForApproval {
    /// For every command that is not known to be safe.
    Untrusted,
    /// When the sandbox stopped a command, to run it again without one.
    OnFailure,
    /// When the agent asks to leave the sandbox.
    OnRequest,
    /// Never. Anything that needs approval is refused.
    Never,
    /// Like `on-request`, with each kind of question enabled or disabled. Disabled kinds are refused without a
    /// question.
    #[experimental("askForApproval.granular", listed)]
    Granular {
        /// Leaving the sandbox.
        #[serde(rename = "sandbox_approval")]
        sandbox_approval: bool,
        /// Commands for which a rule says to ask.
        rules: bool,
        /// Commands of skills.
        #[serde(rename = "skill_approval")]
        #[serde(default)]
        skill_approval: bool,
        /// Requests for more permissions.
        #[serde(rename = "request_permissions")]
        #[serde(default)]
        request_permissions: bool,
        /// Questions of MCP servers.
        #[serde(rename = "mcp_elicitations")]
        mcp_elicitations: bool,
    },
}

/// A sandbox by name. The details come from the configuration.
#[wire(kebab_case)]
pub enum SandboxMode {
    /// Files can be read, none written; no network.
    ReadOnly,
    /// The working directory and temporary folders can be written to.
    WorkspaceWrite,
    /// No sandbox.
    DangerFullAccess,
}

/// Whether the network can be reached.
#[wire]
#[derive(Default)]
pub enum NetworkAccess {
    #[default]
    Restricted,
    Enabled,
}

/// The readable part of the file system.
#[wire(tag = "type")]
#[derive(Default)]
pub enum ReadOnlyAccess {
    /// Only what is listed.
    Restricted {
        /// Also the system folders that programs need.
        #[serde(default = "crate::yes")]
        include_platform_defaults: bool,
        /// Folders, with all that is below them.
        #[serde(default)]
        readable_roots: Vec<AbsolutePath>,
    },
    /// Everything.
    #[default]
    FullAccess,
}

/// A sandbox in full. Every member may be left out.
#[wire(tag = "type")]
pub enum SandboxPolicy {
    /// No sandbox.
    DangerFullAccess,
    /// Nothing can be written.
    ReadOnly {
        #[serde(default)]
        access: ReadOnlyAccess,
        #[serde(default)]
        network_access: bool,
    },
    /// The server itself runs in a sandbox and adds none of its own.
    ExternalSandbox {
        /// The network access described to the model; not enforced.
        #[serde(default)]
        network_access: NetworkAccess,
    },
    /// The working directory, temporary folders and listed roots can be written to, except for `.git`,
    /// `.agents` and `.codex` in them.
    WorkspaceWrite {
        #[serde(default)]
        network_access: bool,
        /// More folders that may be written to.
        #[serde(default)]
        writable_roots: Vec<AbsolutePath>,
        #[serde(default)]
        read_only_access: ReadOnlyAccess,
        /// Do not make the folder in `TMPDIR` writable.
        #[serde(default)]
        exclude_tmpdir_env_var: bool,
        /// Do not make `/tmp` writable.
        #[serde(default)]
        exclude_slash_tmp: bool,
    },
}
