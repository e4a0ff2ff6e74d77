//! The answer of the matrix.

use crate::why::Why;

/// The decision about a command or a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyVerdict {
    /// Run it at once.
    Run { sandbox: SandboxChoice, why: Why },
    /// Ask first.
    Ask {
        /// The sandbox after a yes.
        sandbox: SandboxChoice,
        /// A rule's own words about why to ask.
        reason: Option<String>,
        /// The leading words that a yes for good would allow.
        amendment: Option<Vec<String>>,
        why: Why,
    },
    /// Do not run it, and do not ask. `reason` is for the model.
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
    /// A sandbox without writing and without network, whatever the policy would give.
    ReadOnlyNoNetwork,
    /// The sandbox of the policy.
    AsPolicy,
    /// No sandbox.
    None,
}

/// The rights the model asks for on top of the sandbox. Rights granted before are not asked for again: such a command
/// comes with `Default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escalation {
    #[default]
    Default,
    /// No sandbox at all.
    RequireEscalated,
    /// The sandbox with some more permissions.
    WithAdditional,
}
