//! A thread that was opened, as the three ways to open one answer.

use protocol::{
    ConfigWarningNotification, DeprecationNoticeNotification, EffectiveTool, HistoryFidelity,
    PendingOperation, RolloutOwnership, ServerNotification, Thread, ThreadForkResponse, ThreadResumeResponse,
    ThreadStartResponse,
};

use crate::settings::ThreadSettings;
use crate::tool_set::tool_set_digest;

/// The thread and the settings it works with.
#[derive(Debug, Clone)]
pub struct Opened {
    pub thread: Thread,
    pub settings: ThreadSettings,
    pub told: HostAnswer,
    /// What its configuration should say in another way. Only for a thread that was not in memory.
    pub deprecations: Vec<DeprecationNoticeNotification>,
    /// What settings of its project are not used. Only for a thread that was not in memory.
    pub warnings: Vec<ConfigWarningNotification>,
}

/// What a host is told beside that. Nothing of it is set for a client that asked for none of it.
#[derive(Debug, Clone, Default)]
pub struct HostAnswer {
    pub rollout_ownership: Option<RolloutOwnership>,
    pub fidelity: Option<HistoryFidelity>,
    pub rebuilt: Option<Vec<String>>,
    pub rollout_ordinal: Option<u64>,
    pub items_digest: Option<String>,
    pub effective_tools: Option<Vec<EffectiveTool>>,
    pub tool_set_digest: Option<String>,
    pub pending_operations: Option<Vec<PendingOperation>>,
}

impl Opened {
    /// What its clients are told once, after the answer.
    pub fn take_notices(&mut self) -> Vec<ServerNotification> {
        let deprecations = std::mem::take(&mut self.deprecations).into_iter();
        let warnings = std::mem::take(&mut self.warnings).into_iter();
        let notices = deprecations.map(ServerNotification::DeprecationNotice);
        notices.chain(warnings.map(ServerNotification::ConfigWarning)).collect()
    }

    pub(crate) fn kept_by(mut self, rollout_ownership: Option<RolloutOwnership>) -> Self {
        self.told.rollout_ownership = rollout_ownership;
        self
    }

    pub(crate) fn offering(mut self, tools: Vec<EffectiveTool>) -> Self {
        self.told.tool_set_digest = Some(tool_set_digest(&tools));
        self.told.effective_tools = Some(tools);
        self
    }
}

macro_rules! answer {
    ($($response:ident)*) => { $(
        impl From<Opened> for $response {
            fn from(opened: Opened) -> Self {
                let Opened { thread, settings, told, .. } = opened;
                Self {
                    thread,
                    model: settings.model,
                    model_provider: settings.model_provider,
                    service_tier: settings.service_tier,
                    cwd: settings.cwd,
                    approval_policy: settings.approval_policy,
                    approvals_reviewer: settings.approvals_reviewer,
                    sandbox: settings.sandbox,
                    reasoning_effort: settings.effort,
                    delegation: settings.host.seat.as_ref().map(|seat| seat.effective()),
                    rollout_ownership: told.rollout_ownership,
                    fidelity: told.fidelity,
                    rebuilt: told.rebuilt,
                    rollout_ordinal: told.rollout_ordinal,
                    items_digest: told.items_digest,
                    effective_tools: told.effective_tools,
                    tool_set_digest: told.tool_set_digest,
                    pending_operations: told.pending_operations,
                }
            }
        }
    )* };
}

answer! { ThreadStartResponse ThreadResumeResponse ThreadForkResponse }
