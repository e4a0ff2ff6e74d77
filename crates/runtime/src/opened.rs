//! A thread that was opened, as the three ways to open one answer.

use protocol::{Thread, ThreadForkResponse, ThreadResumeResponse, ThreadStartResponse};

use crate::settings::ThreadSettings;

/// The thread and the settings it works with.
#[derive(Debug, Clone)]
pub struct Opened {
    pub thread: Thread,
    pub settings: ThreadSettings,
}

macro_rules! answer {
    ($($response:ident)*) => { $(
        impl From<Opened> for $response {
            fn from(opened: Opened) -> Self {
                let Opened { thread, settings } = opened;
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
                    delegation: None,
                    rollout_ownership: None,
                    fidelity: None,
                    rebuilt: None,
                    rollout_ordinal: None,
                    items_digest: None,
                    effective_tools: None,
                    tool_set_digest: None,
                    pending_operations: None,
                }
            }
        }
    )* };
}

answer! { ThreadStartResponse ThreadResumeResponse ThreadForkResponse }
