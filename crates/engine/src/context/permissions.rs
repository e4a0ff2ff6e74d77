//! What the model may do, and when it is asked about first.

use protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use serde::{Deserialize, Serialize};

use super::{Fragment, Role, StepFragment};
use crate::Step;

const INTRODUCTION: &str = "Filesystem sandboxing decides which files a command can reach, and approvals decide which \
     commands run at all. What is described here is enforced around you, not by you: a command that is stopped fails with \
     a permission error or a refusal, and trying it again in other words changes nothing.";

pub(crate) struct Permissions<'a> {
    sandbox: &'a SandboxPolicy,
    approval: &'a AskForApproval,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    approval_policy: AskForApproval,
    sandbox: SandboxPolicy,
}

impl<'a> StepFragment<'a> for Permissions<'a> {
    type State = State;

    fn state(step: &Step) -> State {
        State { approval_policy: step.approval_policy.clone(), sandbox: step.sandbox.clone() }
    }

    fn full(step: &'a Step) -> Option<Self> {
        Some(Self { sandbox: &step.sandbox, approval: &step.approval_policy })
    }
}

impl Permissions<'_> {
    fn sandbox(&self) -> String {
        let network = |on: bool| if on { "enabled" } else { "restricted" };
        match self.sandbox {
            SandboxPolicy::DangerFullAccess => {
                "Commands run without a sandbox (`danger-full-access`); network access is enabled.".to_owned()
            }
            SandboxPolicy::ReadOnly { network_access, .. } => format!(
                "Commands run in a `read-only` sandbox: files can be read and none can be written; network access is {}.",
                network(*network_access)
            ),
            SandboxPolicy::ExternalSandbox { network_access } => format!(
                "Commands run in a sandbox this program does not manage; network access is {}.",
                network(*network_access == NetworkAccess::Enabled)
            ),
            SandboxPolicy::WorkspaceWrite { network_access, writable_roots, .. } => {
                let mut text = format!(
                    "Commands run in a `workspace-write` sandbox: files can be read, and written in the working directory \
                     and the writable roots; network access is {}.",
                    network(*network_access)
                );
                if !writable_roots.is_empty() {
                    let roots: Vec<String> = writable_roots.iter().map(|root| format!("`{root}`")).collect();
                    text.push_str(&format!(" Writable roots: {}.", roots.join(", ")));
                }
                text
            }
        }
    }

    fn approval(&self) -> &'static str {
        match self.approval {
            AskForApproval::Never => {
                "Nobody can approve anything (`never`): do not ask for more permissions, such requests are refused; work \
                 within the sandbox or say what stands in the way."
            }
            AskForApproval::Untrusted => {
                "Most commands are shown to the user before they run (`untrusted`); only plainly harmless ones run at once."
            }
            AskForApproval::OnFailure => {
                "Commands run in the sandbox first (`on-failure`); when one fails because of it, the user is asked whether \
                 it may run outside."
            }
            AskForApproval::OnRequest => {
                "When a command needs more than the sandbox allows, ask for it with that command and say why in one \
                 question the user can answer (`on-request`). Every part of a pipeline or list counts as a command of its \
                 own."
            }
            AskForApproval::Granular { .. } => {
                "Some kinds of requests reach the user and others are refused at once (`granular`)."
            }
        }
    }
}

impl Fragment for Permissions<'_> {
    const NAME: &'static str = "permissions";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<permissions instructions>";
    const END: &'static str = "</permissions instructions>";

    fn body(&self) -> String {
        format!("\n{INTRODUCTION} {}\n{}\n", self.sandbox(), self.approval())
    }
}
