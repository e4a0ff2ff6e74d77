//! The settings of one thread, and how a turn may change them.

use std::sync::Arc;

use engine::Step;
use protocol::{
    ApprovalsReviewer, AskForApproval, CollaborationMode, DynamicToolSpec, EnvironmentSelection, ModeKind,
    Personality, ReasoningEffort, ReasoningSummary, SandboxPolicy, ServiceTier, TriState, Verbosity,
};
use sandbox::OffLimits;
use tools::ToolSource;

use crate::tool_settings::ToolSettings;
use catalogue::Overrides;
use delegation::HostChoices;
use environments::attached_selections;
use memories::MemoryFolder;
use skills::SkillChoices;
use workspace::InstructionOptions;

/// The reviewer's instructions, and the form of its answer.
const REVIEW_INSTRUCTIONS: &str = include_str!("review.md");

/// The settings that a thread works with. They come from the configuration and the request that opened the thread;
/// turns change some of them.
#[derive(Debug, Clone)]
pub struct ThreadSettings {
    pub model: String,
    /// Id of the provider. Fixed while the thread is loaded.
    pub model_provider: String,
    pub service_tier: Option<ServiceTier>,
    pub cwd: String,
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    /// The administrator's instructions for the automatic reviewer.
    pub reviewer_instructions: Option<Arc<str>>,
    pub sandbox: SandboxPolicy,
    /// Unset: the model's default.
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    pub personality: Option<Personality>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<Arc<str>>,
    pub developer_instructions: Option<Arc<str>>,
    /// Replaces the built-in prompt for summaries.
    pub compact_prompt: Option<Arc<str>>,
    pub collaboration_mode: Option<CollaborationMode>,
    pub dynamic_tools: Arc<[DynamicToolSpec]>,
    pub tools: Arc<ToolSettings>,
    pub host: Arc<HostChoices>,
    /// Depth below the root agent: 0 for the root.
    pub agent_depth: u32,
    /// The environments of its tools, in order of preference. Unset: this machine, in `cwd`; empty: none.
    pub environments: Option<Arc<[EnvironmentSelection]>>,
    /// The configuration's overrides of the catalogue.
    pub model_overrides: Overrides,
    /// The prices of tokens.
    pub prices: Arc<config::Prices>,
    /// How AGENTS.md files are found.
    pub instruction_options: Arc<InstructionOptions>,
    /// Skills that are enabled or disabled for this thread only.
    pub skills: Arc<SkillChoices>,
    /// Paths that the thread's commands must not read, nor the server on its behalf.
    pub off_limits: Arc<OffLimits>,
    /// The folder of the memories that its model gets.
    pub memories: Option<Arc<MemoryFolder>>,
    /// The model of its reviews. Unset: the thread's model.
    pub review_model: Option<String>,
    /// The effort of plan mode turns that choose none.
    pub plan_effort: Option<ReasoningEffort>,
    /// The kind of work that steps are captured for.
    pub work: StepWork,
}

/// The kind of work that a step is captured for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StepWork {
    #[default]
    Turn,
    /// A turn of a thread whose goal is active.
    Goal,
    /// A review, by a model that changes nothing and asks no questions.
    Review,
}

/// Settings that a turn changes. Unset ones stay.
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
    /// Overrides `model` and `effort`.
    pub collaboration_mode: Option<CollaborationMode>,
    /// Empty: none.
    pub environments: Option<Arc<[EnvironmentSelection]>>,
}

impl ThreadSettings {
    /// Minimal settings to build on: a model of a provider of the same name, no sandbox, no questions.
    pub fn bare(model: &str, cwd: &str) -> Self {
        Self {
            model: model.to_owned(),
            model_provider: model.to_owned(),
            service_tier: None,
            cwd: cwd.to_owned(),
            approval_policy: AskForApproval::Never,
            approvals_reviewer: ApprovalsReviewer::User,
            reviewer_instructions: None,
            sandbox: SandboxPolicy::DangerFullAccess,
            effort: None,
            summary: None,
            verbosity: None,
            personality: None,
            base_instructions: None,
            developer_instructions: None,
            compact_prompt: None,
            collaboration_mode: None,
            dynamic_tools: Arc::default(),
            tools: Arc::default(),
            environments: None,
            host: Arc::default(),
            model_overrides: Overrides::default(),
            prices: Arc::default(),
            skills: Arc::default(),
            off_limits: Arc::default(),
            memories: None,
            review_model: None,
            plan_effort: None,
            work: StepWork::default(),
            instruction_options: Arc::default(),
            agent_depth: 0,
        }
    }

    pub fn apply(&mut self, change: SettingsChange) {
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
            let of_mode = if mode.mode == ModeKind::Plan { self.plan_effort } else { None };
            self.effort = mode.settings.reasoning_effort.or(of_mode);
            self.collaboration_mode = Some(mode);
        }
    }

    /// The reviewer's settings: the thread's own, with fewer tools and other instructions.
    pub(crate) fn for_review(&self, step: &Step) -> Self {
        let mut settings = self.clone();
        if let Some(model) = settings.review_model.take() {
            settings.model = model;
        }
        settings.base_instructions = Some(REVIEW_INSTRUCTIONS.into());
        (settings.collaboration_mode, settings.personality) = (None, None);
        settings.dynamic_tools = Arc::default();
        settings.memories = None;
        if let Some(attached) = attached_selections(step) {
            settings.environments = Some(attached.into());
        }
        settings.work = StepWork::Review;
        settings
    }

    /// The tier in the provider's spelling.
    pub fn provider_tier(&self) -> Option<String> {
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

/// Captures the frozen view of each model request from the current settings.
pub trait StepMaker: Send + Sync {
    fn capture(&self, settings: &ThreadSettings, sources: &[Arc<dyn ToolSource>]) -> Step;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl std::fmt::Debug for dyn StepMaker + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StepMaker")
    }
}

#[cfg(test)]
mod tests {
    use engine::{EnvironmentState, StepEnvironment};
    use protocol::EnvironmentId;

    use super::*;

    #[test]
    fn a_reviewer_works_in_attached_environments_with_its_own_model_and_instructions() {
        let place = |id: &str, state| StepEnvironment {
            id: EnvironmentId::new(id),
            state,
            is_chosen: true,
            ..StepEnvironment::here("/w")
        };
        let environments =
            [place("a", EnvironmentState::Starting), place("b", EnvironmentState::Attached)].into();
        let step = Step { environments, ..Step::bare("m", "/w") };
        let own =
            ThreadSettings { review_model: Some("judge".into()), ..ThreadSettings::bare("offline", "/repo") };
        let settings = own.for_review(&step);
        let attached: Vec<_> =
            settings.environments.iter().flat_map(|all| all.iter()).map(|one| &one.environment_id).collect();
        assert_eq!(attached, [&EnvironmentId::new("b")]);
        assert_eq!((settings.model.as_str(), settings.work), ("judge", StepWork::Review));
        assert_eq!(settings.base_instructions.as_deref(), Some(REVIEW_INSTRUCTIONS));
        let nobody_chose = own.for_review(&Step::bare("m", "/w"));
        assert_eq!(nobody_chose.environments, None);
    }
}
