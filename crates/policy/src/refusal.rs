//! Messages to a model that requests what the approval policy does not allow.

use protocol::AskForApproval;

use crate::verdict::Escalation;

/// The refusal of a request to leave or extend the sandbox. Only `on-request` allows such requests.
pub fn refuse_escalation(approval: &AskForApproval, escalation: Escalation) -> Option<String> {
    let name = match approval {
        AskForApproval::OnRequest => return None,
        AskForApproval::Untrusted => "UnlessTrusted",
        AskForApproval::OnFailure => "OnFailure",
        AskForApproval::Never => "Never",
        AskForApproval::Granular { .. } => "Granular",
    };
    // Models were trained on this text, so it must not change.
    let wanted = match escalation {
        Escalation::Default => return None,
        Escalation::RequireEscalated => "escalated permissions",
        Escalation::WithAdditional => "additional permissions",
    };
    Some(format!(
        "approval policy is {name}; reject command — you cannot ask for {wanted} if the approval policy is {name}"
    ))
}
