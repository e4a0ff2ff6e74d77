//! The decisions that a client is offered.

use protocol::{CommandExecutionApprovalDecision as Decision, NetworkPolicyAmendment};

/// The subject of an approval request.
#[derive(Debug, Clone, Copy)]
pub enum ApprovalOffer<'a> {
    /// A command, with the prefix of a permanent approval.
    Command { amendment: Option<&'a [String]> },
    /// A command with permissions beyond the sandbox.
    AdditionalPermissions,
    /// A network host, with the rule of a permanent approval.
    Network { amendment: Option<&'a NetworkPolicyAmendment> },
}

/// The decisions in `availableDecisions`. Session approval and rejection are always accepted.
pub fn available_decisions(offer: ApprovalOffer<'_>) -> Vec<Decision> {
    let mut decisions = vec![Decision::Accept];
    match offer {
        ApprovalOffer::Command { amendment } => {
            let amend = |words: &[String]| Decision::AcceptWithExecpolicyAmendment {
                execpolicy_amendment: words.to_vec(),
            };
            decisions.extend(amendment.map(amend));
        }
        ApprovalOffer::AdditionalPermissions => {}
        ApprovalOffer::Network { amendment } => {
            decisions.push(Decision::AcceptForSession);
            decisions.extend(amendment.map(|rule| Decision::ApplyNetworkPolicyAmendment {
                network_policy_amendment: rule.clone(),
            }));
        }
    }
    decisions.push(Decision::Cancel);
    decisions
}
