//! The answers to a model that asks for something the approval policy does not let it ask for.

use protocol::AskForApproval;

use crate::verdict::Escalation;

/// The refusal of a request to leave or widen the sandbox. Only `on-request` lets the model ask.
pub fn refuse_escalation(approval: &AskForApproval, escalation: Escalation) -> Option<String> {
    let name = match approval {
        AskForApproval::OnRequest => return None,
        AskForApproval::Untrusted => "UnlessTrusted",
        AskForApproval::OnFailure => "OnFailure",
        AskForApproval::Never => "Never",
        AskForApproval::Granular { .. } => "Granular",
    };
    // Models were trained on these words, so they are kept as they are.
    let wanted = match escalation {
        Escalation::Default => return None,
        Escalation::RequireEscalated => "escalated permissions",
        Escalation::WithAdditional => "additional permissions",
    };
    Some(format!(
        "approval policy is {name}; reject command — you cannot ask for {wanted} if the approval policy is {name}"
    ))
}
