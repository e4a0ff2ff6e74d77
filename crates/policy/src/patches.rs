//! The matrix for patches.

use protocol::{AskForApproval, SandboxPolicy};

use crate::matrix::is_restricted;
use crate::verdict::{PolicyVerdict, SandboxChoice};
use crate::why::{Because, Why};

/// Decides about a patch. `all_writable`: the sandbox allows writing every file of it; without our sandbox, always
/// true.
pub fn decide_patch(approval: &AskForApproval, sandbox: &SandboxPolicy, all_writable: bool) -> PolicyVerdict {
    let inside = all_writable || !is_restricted(sandbox);
    let why = Why::single(&[], if inside { Because::PatchInside } else { Because::PatchOutside });
    let run = |why| PolicyVerdict::Run { sandbox: SandboxChoice::AsPolicy, why };
    let ask = |why| {
        let sandbox = if inside { SandboxChoice::AsPolicy } else { SandboxChoice::None };
        PolicyVerdict::Ask { sandbox, reason: None, amendment: None, why }
    };
    match approval {
        AskForApproval::Untrusted => ask(why),
        // The sandbox stops writes outside, and then the retry needs a question.
        AskForApproval::OnFailure => run(why),
        _ if inside => run(why),
        AskForApproval::OnRequest | AskForApproval::Granular { sandbox_approval: true, .. } => ask(why),
        AskForApproval::Never | AskForApproval::Granular { .. } => PolicyVerdict::Forbid {
            reason:
                "patch rejected: it writes outside of the writable area, and no approval may be asked for"
                    .to_owned(),
            why,
        },
    }
}
