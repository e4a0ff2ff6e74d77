//! The verdict of the matrix.

use crate::why::Why;

/// The decision about a command or a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// Run it at once.
    Run { sandbox: SandboxChoice, why: Why },
    /// Ask first.
    Ask {
        /// The sandbox after approval.
        sandbox: SandboxChoice,
        /// A rule's justification for asking.
        reason: Option<String>,
        /// The prefix of a permanent approval.
        amendment: Option<Vec<String>>,
        why: Why,
    },
    /// Refuse it without a question. `reason` is for the model.
    Forbid { reason: String, why: Why },
}

impl PolicyVerdict {
    pub fn why(&self) -> &Why {
        match self {
            Self::Run { why, .. } | Self::Ask { why, .. } | Self::Forbid { why, .. } => why,
        }
    }
}

/// The sandbox that a command runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxChoice {
    /// A sandbox without writing and without network, whatever the policy allows.
    ReadOnlyNoNetwork,
    /// The sandbox of the policy.
    AsPolicy,
    /// No sandbox.
    None,
}

/// The permissions that the model requests beyond the sandbox. Permissions granted before are not requested again: such
/// a command uses `Default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escalation {
    #[default]
    Default,
    /// No sandbox at all.
    RequireEscalated,
    /// The sandbox with some more permissions.
    WithAdditional,
}
