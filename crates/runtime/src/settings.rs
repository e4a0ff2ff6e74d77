//! What one thread chose, and how a turn may change it.

use std::sync::Arc;

use engine::Step;
use protocol::{
    ApprovalsReviewer, AskForApproval, CollaborationMode, DynamicToolSpec, EnvironmentSelection, Personality,
    ReasoningEffort, ReasoningSummary, SandboxPolicy, ServiceTier, TriState, Verbosity,
};
use sandbox::OffLimits;

use crate::host_choices::HostChoices;
use crate::instructions::InstructionOptions;
use crate::models::Overrides;
use crate::skills::SkillChoices;
use crate::workbench::ToolSettings;

/// The choices a thread works with. They come from configuration and the request that opened the thread; turns change
/// some of them.
#[derive(Debug, Clone)]
pub struct ThreadSettings {
    pub model: String,
    /// Id of the provider. Fixed for as long as the thread is loaded.
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox: SandboxPolicy,
    /// Unset for the model's default.
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    pub personality: Option<Personality>,
    /// Instead of the built-in instructions.
    pub base_instructions: Option<Arc<str>>,
    pub developer_instructions: Option<Arc<str>>,
    /// How to ask for a summary, instead of the built-in way.
    pub compact_prompt: Option<Arc<str>>,
    pub collaboration_mode: Option<CollaborationMode>,
    pub dynamic_tools: Arc<[DynamicToolSpec]>,
    pub tools: Arc<ToolSettings>,
    pub host: Arc<HostChoices>,
    /// How deep below the root agent its own is: 0 for the root.
    pub agent_depth: u32,
    /// Where its tools run, in order of preference. Unset: on this machine, in `cwd`; empty: nowhere.
    pub environments: Option<Arc<[EnvironmentSelection]>>,
    /// What configuration says instead of the catalogue.
    pub model_overrides: Overrides,
    /// How AGENTS.md files are found.
    pub instruction_options: Arc<InstructionOptions>,
    /// Which skills are switched on and off for this thread alone.
    pub skills: Arc<SkillChoices>,
    /// What neither its commands nor the server on its behalf may read.
    pub off_limits: Arc<OffLimits>,
}

/// What a turn changes. What is unset stays.
#[derive(Debug, Clone, Default)]
pub struct SettingsChange {
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox: Option<SandboxPolicy>,
    pub model: Option<String>,
    pub service_tier: TriState<ServiceTier>,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub personality: Option<Personality>,
    /// Wins over `model` and `effort`.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Empty: nowhere.
    pub environments: Option<Arc<[EnvironmentSelection]>>,
}

impl ThreadSettings {
    pub(crate) fn apply(&mut self, change: SettingsChange) {
        let SettingsChange {
            cwd,
            approval_policy,
            approvals_reviewer,
            sandbox,
            model,
            service_tier,
            effort,
            summary,
            personality,
            collaboration_mode,
            environments,
        } = change;
        set(&mut self.cwd, cwd);
        set(&mut self.approval_policy, approval_policy);
        set(&mut self.approvals_reviewer, approvals_reviewer);
        set(&mut self.sandbox, sandbox);
        set(&mut self.model, model);
        match service_tier {
            TriState::Keep => {}
            TriState::Clear => self.service_tier = None,
            TriState::Set(tier) => self.service_tier = Some(tier),
        }
        self.effort = effort.or(self.effort);
        self.summary = summary.or(self.summary);
        self.personality = personality.or(self.personality);
        if environments.is_some() {
            self.environments = environments;
        }
        if let Some(mode) = collaboration_mode {
            self.model.clone_from(&mode.settings.model);
            self.effort = mode.settings.reasoning_effort;
            self.collaboration_mode = Some(mode);
        }
    }

    /// As providers spell the tier.
    pub(crate) fn provider_tier(&self) -> Option<String> {
        self.service_tier.as_ref().map(|tier| match tier {
            ServiceTier::Fast => "priority".to_owned(),
            ServiceTier::Flex => "flex".to_owned(),
            ServiceTier::Other(tier) => tier.clone(),
        })
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// Makes the frozen view of each model request from the settings as they are then.
pub trait StepMaker: std::fmt::Debug + Send + Sync {
    fn capture(&self, settings: &ThreadSettings) -> Step;
}
