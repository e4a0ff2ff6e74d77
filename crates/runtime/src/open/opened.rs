//! The result of opening a thread, for start, resume and fork.

use protocol::{
    ConfigWarningNotification, DeprecationNoticeNotification, EffectiveTool, HistoryFidelity,
    PendingOperation, RolloutOwnership, ServerNotification, Thread, ThreadDelegation, ThreadForkResponse,
    ThreadResumeResponse, ThreadStartResponse,
};

use delegation::tool_set_digest;
use driver::ThreadSettings;

/// The thread and its settings.
#[derive(Debug, Clone)]
pub struct OpenedThread {
    pub thread: Thread,
    pub settings: ThreadSettings,
    pub answer: HostAnswer,
    /// Deprecated settings in its configuration. Only for a thread that was not in memory.
    pub deprecations: Vec<DeprecationNoticeNotification>,
    /// Ignored settings of its project. Only for a thread that was not in memory.
    pub warnings: Vec<ConfigWarningNotification>,
    /// Set if its model is unknown and no client was warned yet.
    pub unknown_model: Option<ConfigWarningNotification>,
}

/// The part of the response for hosts. Empty for a client that requested none of it.
#[derive(Debug, Clone, Default)]
pub struct HostAnswer {
    /// The granted delegation terms.
    pub delegation: Option<ThreadDelegation>,
    pub rollout_ownership: Option<RolloutOwnership>,
    pub fidelity: Option<HistoryFidelity>,
    pub rebuilt: Option<Vec<String>>,
    pub rollout_ordinal: Option<u64>,
    pub items_digest: Option<String>,
    pub effective_tools: Option<Vec<EffectiveTool>>,
    pub tool_set_digest: Option<String>,
    pub pending_operations: Option<Vec<PendingOperation>>,
}

impl OpenedThread {
    /// The notifications for its clients, to be sent once after the response.
    pub fn take_notices(&mut self) -> Vec<ServerNotification> {
        let deprecations = std::mem::take(&mut self.deprecations).into_iter();
        let warnings = std::mem::take(&mut self.warnings).into_iter().chain(self.unknown_model.take());
        let notices = deprecations.map(ServerNotification::DeprecationNotice);
        notices.chain(warnings.map(ServerNotification::ConfigWarning)).collect()
    }
}

impl HostAnswer {
    /// For a history that the host sent.
    pub(crate) fn of_import(fidelity: HistoryFidelity, rebuilt: Vec<String>, digest: String) -> Self {
        Self {
            fidelity: Some(fidelity),
            rebuilt: (!rebuilt.is_empty()).then_some(rebuilt),
            items_digest: Some(digest),
            ..Self::default()
        }
    }

    /// Lists the tools that the thread's model is offered.
    pub(crate) fn offer(&mut self, tools: Vec<EffectiveTool>) {
        self.tool_set_digest = Some(tool_set_digest(&tools));
        self.effective_tools = Some(tools);
    }
}

macro_rules! answer {
    ($($response:ident)*) => { $(
        impl From<OpenedThread> for $response {
            fn from(opened: OpenedThread) -> Self {
                let OpenedThread { thread, settings, answer, .. } = opened;
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
                    delegation: answer.delegation,
                    rollout_ownership: answer.rollout_ownership,
                    fidelity: answer.fidelity,
                    rebuilt: answer.rebuilt,
                    rollout_ordinal: answer.rollout_ordinal,
                    items_digest: answer.items_digest,
                    effective_tools: answer.effective_tools,
                    tool_set_digest: answer.tool_set_digest,
                    pending_operations: answer.pending_operations,
                }
            }
        }
    )* };
}

answer! { ThreadStartResponse ThreadResumeResponse ThreadForkResponse }
