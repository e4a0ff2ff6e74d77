//! Whether a patch needs approval, and the question.

use engine::{Proposal, Question};
use patch::Boundary;
use policy::SandboxChoice;
use protocol::{
    AskForApproval, FileChangeRequestApprovalParams, ItemId, OperationType, PatchApplyStatus, SandboxPolicy,
    ToolEffects,
};
use serde_json::json;

use super::ApplyPatch;
use super::patching::Patching;
use super::preview::{PatchPreview, PatchScope};
use crate::BuiltinTool;
use crate::exec::{Setting, confinement, may_ask, must_ask};

impl Patching<'_> {
    /// Whether to ask, and which approvals are stored. The error says why the patch is refused.
    pub(super) fn decide(
        &self,
        preview: &PatchPreview,
        reach: &Boundary,
    ) -> Result<(bool, SandboxChoice), String> {
        let step = self.cx.step();
        let options = self.cx.bench().options();
        let ask_always = options.asks_about(self.cx.name()) || options.asks_about(ApplyPatch::NAME);
        if let Some(place) = &self.elsewhere {
            let asks = must_ask(&step.approval_policy, &step.sandbox);
            if asks && !ask_always && !may_ask(&step.approval_policy) {
                return Err(format!("patch rejected: {}", place.unconfined()));
            }
            return Ok((asks || ask_always, SandboxChoice::None));
        }
        let inside =
            preview.standing == PatchScope::Inside && preview.targets().iter().all(|path| reach.allows(path));
        match policy::decide_patch(&step.approval_policy, &step.sandbox, inside) {
            policy::PolicyVerdict::Run { sandbox, .. } => Ok((ask_always, sandbox)),
            policy::PolicyVerdict::Ask { sandbox, .. } => Ok((true, sandbox)),
            policy::PolicyVerdict::Forbid { .. } => Err(self.refusal(preview, reach)),
        }
    }

    /// Names the protected file, and the settings that would allow writing it.
    fn refusal(&self, preview: &PatchPreview, reach: &Boundary) -> String {
        let step = self.cx.step();
        let sandbox = sandbox_word(&step.sandbox);
        let why = preview.standing.concern().unwrap_or_else(|| {
            let targets = preview.targets();
            let outside = targets.iter().find(|path| !reach.allows(path)).or(targets.first());
            let named = outside.map(|path| patch::shown(path)).unwrap_or_default();
            format!("{named} is outside of what may be written to")
        });
        let approval = match &step.approval_policy {
            AskForApproval::Never => "never",
            AskForApproval::Granular { .. } => "granular",
            AskForApproval::Untrusted => "untrusted",
            AskForApproval::OnFailure => "on-failure",
            AskForApproval::OnRequest => "on-request",
        };
        format!(
            "patch rejected: {why} (sandbox `{sandbox}`), and nobody can be asked (approval policy `{approval}`)"
        )
    }

    /// The sandbox refused it: some policies allow asking the user to run without.
    pub(super) fn may_ask_again(&self, agreed: bool) -> bool {
        !agreed
            && policy::may_retry_unsandboxed(&self.cx.step().approval_policy, policy::StoppedAttempt::Patch)
    }

    /// Where sandbox and grants allow writing.
    pub(super) fn reach(&self) -> Boundary {
        match confinement(&Setting::of(self.cx), SandboxChoice::AsPolicy, None) {
            Some(sandbox) => {
                Boundary::roots(sandbox.writable).closing(sandbox.hidden).closing(sandbox.protected_paths)
            }
            None => Boundary::Anywhere,
        }
    }

    pub(super) fn proposal(
        &self,
        preview: &PatchPreview,
        number: u32,
        asks: bool,
        concern: Option<String>,
    ) -> Proposal {
        let concern = concern.or_else(|| preview.standing.concern());
        let targets: Vec<String> = preview.targets().iter().map(|path| path.display().to_string()).collect();
        let mut arguments = json!({ "files": targets, "cwd": self.base });
        let concern = match &self.elsewhere {
            Some(place) => {
                arguments["environmentId"] = place.id().into();
                Some(place.reason(concern))
            }
            None => concern,
        };
        let question = FileChangeRequestApprovalParams {
            thread_id: self.cx.thread_id().clone(),
            turn_id: self.cx.turn_id().clone(),
            item_id: ItemId::new(self.cx.call_id()),
            started_at_ms: 0,
            reason: concern.map(|concern| policy::escape_for_display(&concern)),
            grant_root: None,
            operation_id: None,
            arguments_digest: None,
        };
        let key = |path: String| match &self.elsewhere {
            Some(place) => format!("patch {path} in {}", place.json()),
            None => format!("patch {path}"),
        };
        Proposal {
            number,
            kind: OperationType::FileChange,
            effects: ToolEffects::Once,
            item: Some(Box::new(self.item(&preview.changes(), PatchApplyStatus::InProgress, None))),
            outlives: false,
            arguments,
            digest: preview.digest(),
            question: asks.then(|| Box::new(Question::FileChange(question))),
            // Asked each time if the files changed during the decision, or if a file controls the next start of an
            // agent or of git.
            session_keys: match &preview.standing {
                PatchScope::Protected(_) => Vec::new(),
                _ if number > 0 => Vec::new(),
                _ => targets.into_iter().map(key).collect(),
            },
        }
    }
}

/// The policy's name in settings.
fn sandbox_word(policy: &SandboxPolicy) -> &'static str {
    match policy {
        SandboxPolicy::ReadOnly { .. } => "read-only",
        SandboxPolicy::WorkspaceWrite { .. } => "workspace-write",
        SandboxPolicy::DangerFullAccess => "danger-full-access",
        SandboxPolicy::ExternalSandbox { .. } => "external-sandbox",
    }
}
