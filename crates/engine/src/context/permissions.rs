//! The model's permissions, and when approval is requested.

use std::collections::BTreeSet;

use protocol::{AskForApproval, NetworkAccess, SandboxPolicy};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::neutral::contained;
use super::{Fragment, Role, StepFragment};
use crate::{Step, ToolKind};

const INTRODUCTION: &str = "Filesystem sandboxing decides which files a command can reach, and approvals decide which \
     commands run at all. What is described here is enforced around you, not by you: a command that is stopped fails with \
     a permission error or a refusal, and trying it again in other words changes nothing.";

/// The tool that requests more permissions.
const ASKING_TOOL: &str = "request_permissions";

/// Limit of the listed approved prefixes.
const MOST_PREFIXES: usize = 100;
/// Limit of their total length, in characters.
const MOST_PREFIX_CHARS: usize = 5_000;

pub(crate) struct PermissionInstructions<'a> {
    step: &'a Step,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionFacts {
    approval_policy: AskForApproval,
    sandbox: SandboxPolicy,
    /// The listed prefixes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    approved_prefixes: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    can_request_permissions: bool,
}

impl PermissionFacts {
    /// The model was notified of one more prefix, so the list need not be sent again.
    pub(crate) fn learn(&mut self, prefix: &[String]) {
        if self.approval_policy == AskForApproval::OnRequest {
            let words: Vec<_> = prefix.iter().map(|word| vec![word.clone()]).collect();
            self.approved_prefixes.insert(line(&words));
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> StepFragment<'a> for PermissionInstructions<'a> {
    type State = PermissionFacts;

    fn state(step: &Step) -> PermissionFacts {
        PermissionFacts {
            approval_policy: step.approval_policy.clone(),
            sandbox: step.sandbox.clone(),
            approved_prefixes: Listed::of(step).lines.into_iter().collect(),
            can_request_permissions: can_request_permissions(step),
        }
    }

    fn full(step: &'a Step) -> Option<Self> {
        Some(Self { step })
    }
}

/// The model can only use a tool that is advertised.
fn can_request_permissions(step: &Step) -> bool {
    step.tool(ASKING_TOOL).is_some_and(|tool| tool.kind == ToolKind::Builtin && tool.json.is_some())
}

/// The approved prefixes sent to the model, shortest first.
#[derive(Debug, Default)]
struct Listed {
    lines: Vec<String>,
    /// How many are not listed.
    left_out: usize,
}

impl Listed {
    fn of(step: &Step) -> Self {
        // The list helps only if the model decides whether to ask.
        if step.approval_policy != AskForApproval::OnRequest {
            return Self::default();
        }
        let keyed = step.approved_prefixes.iter().map(|pattern| (pattern.len(), line(pattern)));
        let mut keyed: Vec<_> = keyed.map(|(words, line)| (words, line.chars().count(), line)).collect();
        keyed.sort();
        keyed.dedup();
        let mut room = MOST_PREFIX_CHARS;
        let fits = |(_, chars, _): &&(usize, usize, String)| {
            // A list marker and a line break.
            let left = room.checked_sub(chars + 3);
            room = left.unwrap_or(room);
            left.is_some()
        };
        let shown = keyed.iter().take(MOST_PREFIXES).take_while(fits);
        let lines: Vec<_> = shown.map(|(.., line)| line.clone()).collect();
        Self { left_out: keyed.len() - lines.len(), lines }
    }

    fn text(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let mut text =
            "Rules already approve commands that begin with the words of one of these lines, where a list \
             stands for one of its words; they run at once and without the sandbox, so do not ask for them:"
                .to_owned();
        for line in &self.lines {
            text.push_str(&format!("\n- {line}"));
        }
        if self.left_out > 0 {
            text.push_str(&format!("\n[… {} more are not listed …]", self.left_out));
        }
        Some(text)
    }
}

/// A prefix in the syntax of a rule file.
fn line(pattern: &[Vec<String>]) -> String {
    let place = |words: &Vec<String>| match words.as_slice() {
        [word] => Value::from(word.as_str()).to_string(),
        words => format!("[{}]", list(words)),
    };
    format!("[{}]", pattern.iter().map(place).collect::<Vec<_>>().join(", "))
}

fn list(words: &[String]) -> String {
    words.iter().map(|word| Value::from(word.as_str()).to_string()).collect::<Vec<_>>().join(", ")
}

impl PermissionInstructions<'_> {
    fn sandbox(&self) -> String {
        let network = |on: bool| if on { "enabled" } else { "restricted" };
        match &self.step.sandbox {
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
                    let roots: Vec<String> =
                        writable_roots.iter().map(|root| format!("`{}`", contained(root.as_str()))).collect();
                    text.push_str(&format!(" Writable roots: {}.", roots.join(", ")));
                }
                text
            }
        }
    }

    fn approval(&self) -> String {
        let text = match &self.step.approval_policy {
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
            AskForApproval::Granular {
                sandbox_approval,
                rules,
                skill_approval,
                request_permissions,
                mcp_elicitations,
            } => {
                return granular(&[
                    (*sandbox_approval, "`sandbox_approval` (what the sandbox does not allow)"),
                    (*rules, "`rules` (commands that a rule wants asked about)"),
                    (*skill_approval, "`skill_approval` (scripts of skills)"),
                    (*request_permissions, "`request_permissions` (asking for more permissions)"),
                    (*mcp_elicitations, "`mcp_elicitations` (questions of MCP servers)"),
                ]);
            }
        };
        text.to_owned()
    }

    /// The effect of the tool under the policy, if it is offered.
    fn asking(&self) -> Option<&'static str> {
        can_request_permissions(self.step).then_some(match self.step.approval_policy {
            AskForApproval::Never | AskForApproval::Granular { request_permissions: false, .. } => {
                "`request_permissions` grants nothing under this policy: its answer is empty, and nobody sees the question."
            }
            _ => {
                "`request_permissions` asks the user for the network or for paths before commands need them. What is \
                 granted holds for the turn or for the session, as the user chooses, and later commands run with it in \
                 the sandbox: prefer it to leaving the sandbox."
            }
        })
    }
}

/// Which kinds of approval requests reach the user, and which do not.
fn granular(kinds: &[(bool, &str)]) -> String {
    let named = |on: bool| {
        let names: Vec<_> = kinds.iter().filter(|(is_on, _)| *is_on == on).map(|(_, name)| *name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    format!(
        "Some kinds of questions reach the user and others are refused at once (`granular`); a command cannot ask by \
         itself to leave the sandbox. The user is asked about: {}. Refused without asking: {}.",
        named(true),
        named(false)
    )
}

impl Fragment for PermissionInstructions<'_> {
    const NAME: &'static str = "permissions";
    const ROLE: Role = Role::Developer;
    const START: &'static str = "<permissions instructions>";
    const END: &'static str = "</permissions instructions>";

    fn body(&self) -> String {
        let mut text = format!("\n{INTRODUCTION} {}\n{}\n", self.sandbox(), self.approval());
        let listed = Listed::of(self.step).text();
        for part in [self.asking().map(str::to_owned), listed].into_iter().flatten() {
            text.push_str(&part);
            text.push('\n');
        }
        text
    }
}
