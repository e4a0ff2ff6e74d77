//! The effective configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use protocol::{
    ApprovalsReviewer, AskForApproval, ConfigLayerSource, ForcedLoginMethod, Personality, ReasoningEffort,
    ReasoningSummary, SandboxMode, SandboxPolicy, ServiceTier, Verbosity, WebSearchMode, WebSearchToolConfig,
};
use sandbox::OffLimits;
use toml::Table;

use crate::{
    Deprecation, Env, Features, Home, HookFile, Prices, ProviderConfig, ProviderReason, Requirements, Review,
    RuleFile, SettingWarning, SettingsLayer, ShellEnvironmentPolicy, Trust,
};

/// The configuration that results from all layers, the profile, the overrides of the request and the requirements.
#[derive(Clone)]
pub struct ResolvedConfig {
    pub home: Home,
    /// The folder the project layers were looked up for.
    pub cwd: Option<PathBuf>,
    /// The active profile.
    pub profile: Option<String>,
    pub model: ModelOptions,
    /// The active provider.
    pub provider: ProviderConfig,
    /// Why it was chosen.
    pub provider_reason: ProviderReason,
    pub prices: Prices,
    /// Every provider by id, the built-in ones included.
    pub providers: BTreeMap<String, ProviderConfig>,
    pub permissions: PermissionOptions,
    pub instructions: InstructionTexts,
    pub project_docs: ProjectDocs,
    pub tools: ToolOptions,
    pub agents: AgentOptions,
    pub memories: MemoryOptions,
    pub features: Features,
    pub login: Login,
    /// The program to run after each turn, with its first arguments.
    pub notify: Option<Vec<String>>,
    /// Reasoning is not shown at all.
    pub hide_agent_reasoning: bool,
    /// Whether feedback may be sent.
    pub feedback_enabled: bool,
    pub requirements: Requirements,
    /// Problems that do not prevent use.
    pub warnings: Vec<SettingWarning>,
    /// Deprecated settings in use.
    pub deprecations: Vec<Deprecation>,
    /// Lowest precedence first, disabled ones included.
    pub layers: Vec<SettingsLayer>,
    /// The rules of projects that the user trusts.
    pub project_rules: Vec<RuleFile>,
    /// Hook files, lowest layer first. Empty while the feature is off.
    pub hooks: Vec<HookFile>,
    /// Settings of project layers that have no effect until the user reviews them.
    pub reviews: Vec<Review>,
    /// The enabled layers merged, without profile and overrides. Contains keys without a field here, such as
    /// `mcp_servers`.
    pub merged: Table,
    pub(crate) suppress_unfinished: bool,
    /// Computed on first use.
    pub(crate) off_limits: Arc<OnceLock<OffLimits>>,
    pub(crate) env: Env,
}

impl ResolvedConfig {
    /// The web search mode under another sandbox than the configured one: live without a sandbox, if allowed.
    pub fn web_search_under(&self, sandbox: &SandboxPolicy) -> WebSearchMode {
        match (sandbox, self.tools.configured_web_search) {
            (SandboxPolicy::DangerFullAccess, WebSearchMode::Cached | WebSearchMode::Live) => {
                self.requirements.first_allowed_search([WebSearchMode::Live, WebSearchMode::Cached])
            }
            (_, mode) => mode,
        }
    }

    /// Our, the user's and the machine's folders with `rules/*.rules`, lowest precedence first. Those of projects are
    /// in `project_rules`.
    pub fn rule_folders(&self) -> Vec<PathBuf> {
        let is_project = |layer: &&SettingsLayer| matches!(layer.source, ConfigLayerSource::Project { .. });
        let enabled = self.layers.iter().filter(|layer| layer.is_enabled() && !is_project(layer));
        let of_layers = enabled.filter_map(|layer| layer.folder.clone());
        let mut folders: Vec<PathBuf> = of_layers.chain([self.home.state().to_owned()]).collect();
        let mut seen = std::collections::HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    /// Warnings about project settings without effect until the user reviews them.
    pub fn review_warnings(&self) -> impl Iterator<Item = SettingWarning> + '_ {
        self.reviews.iter().filter_map(|review| review.warning(&self.home))
    }

    /// A warning if unfinished features are on, unless it is switched off.
    pub fn unfinished_features_warning(&self) -> Option<String> {
        let unfinished = self.features.unfinished();
        (!unfinished.is_empty() && !self.suppress_unfinished).then(|| {
            format!(
                "These features are switched on and not finished: {}. They may change or fail. To hide this warning, \
                 set suppress_unstable_features_warning = true in {}.",
                unfinished.join(", "),
                self.home.config_file().display()
            )
        })
    }
}

impl fmt::Debug for ResolvedConfig {
    /// Without the tables, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("home", &self.home)
            .field("cwd", &self.cwd)
            .field("profile", &self.profile)
            .field("model", &self.model)
            .field("provider", &self.provider)
            .field("permissions", &self.permissions)
            .field("layers", &self.layers)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// The model and its options. None leaves the choice to the catalogue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelOptions {
    pub name: Option<String>,
    /// The model for reviews.
    pub review: Option<String>,
    /// In tokens.
    pub context_window: Option<i64>,
    /// Tokens at which the history is compacted. The engine caps it at 90 % of the window.
    pub auto_compact_token_limit: Option<i64>,
    /// Limit of a tool's output for the model, in tokens.
    pub tool_output_token_limit: Option<usize>,
    pub effort: Option<ReasoningEffort>,
    /// In plan mode.
    pub plan_mode_effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    /// Sent only to models that support it.
    pub verbosity: Option<Verbosity>,
    /// `true` means that the model has summaries, whatever the catalogue says.
    pub supports_reasoning_summaries: Option<bool>,
    pub service_tier: Option<ServiceTier>,
    pub personality: Option<Personality>,
    /// A catalogue that replaces the built-in one.
    pub catalog_json: Option<PathBuf>,
}

/// Sandbox and approvals.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionOptions {
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    /// An explicitly chosen mode; without one, `sandbox_mode` depends on the trust in the project.
    pub asked_sandbox: Option<SandboxMode>,
    pub sandbox_mode: SandboxMode,
    /// The mode with its details.
    pub sandbox_policy: SandboxPolicy,
    /// The user's decision about the project, if there is one.
    pub trust: Option<Trust>,
    /// Whether the model may request a login shell.
    pub allow_login_shell: bool,
    pub shell_environment: ShellEnvironmentPolicy,
}

/// Texts for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionTexts {
    /// Replaces the built-in instructions.
    pub base: Option<String>,
    /// Sent to the model in a separate developer message.
    pub developer: Option<String>,
    /// Replaces the built-in prompt for compaction.
    pub compact_prompt: Option<String>,
}

/// Which AGENTS.md files are read, and how much of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDocs {
    /// For all files together; 0 reads none.
    pub max_bytes: usize,
    /// File names to try after AGENTS.md.
    pub fallback_filenames: Vec<String>,
    /// File names that mark the root of a project. Empty: the working directory is the root.
    pub root_markers: Vec<String>,
    /// The root of the project of `cwd`.
    pub project_root: Option<PathBuf>,
}

/// Settings of built-in tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOptions {
    /// The mode under the configured sandbox. For another sandbox ask [`ResolvedConfig::web_search_under`].
    pub web_search: WebSearchMode,
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Whether the model may read image files. None leaves it to the model's abilities.
    pub view_image: Option<bool>,
    /// Limit of a wait for output of a background command.
    pub background_terminal_max_timeout_ms: u64,
    /// The mode without considering the sandbox.
    pub(crate) configured_web_search: WebSearchMode,
}

/// How memories are made and used. They are off unless the feature `memories` is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Threads leave notes.
    pub generate: bool,
    /// Threads get memories.
    pub is_used: bool,
    /// Threads with results of MCP servers or web searches leave no notes.
    pub none_with_foreign_results: bool,
    /// Limit of threads processed when a thread starts.
    pub max_threads_per_start: usize,
    pub max_age_days: i64,
    /// How long a thread must have been idle.
    pub min_idle_hours: i64,
    /// Limit of threads whose notes are joined.
    pub max_raw_memories: usize,
    /// Notes that were unused for this long are dropped.
    pub max_unused_days: i64,
    /// Unset: the thread's own model.
    pub extract_model: Option<String>,
    pub consolidation_model: Option<String>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            generate: true,
            is_used: true,
            none_with_foreign_results: false,
            max_threads_per_start: 16,
            max_age_days: 30,
            min_idle_hours: 6,
            max_raw_memories: 256,
            max_unused_days: 30,
            extract_model: None,
            consolidation_model: None,
        }
    }
}

/// Limits of sub-agents, and the roles that the user defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOptions {
    /// Limit of open agents below one root.
    pub max_threads: usize,
    /// 1 for children without children.
    pub max_depth: usize,
    pub job_max_runtime_seconds: Option<u64>,
    pub roles: BTreeMap<String, AgentRole>,
}

/// A role of sub-agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRole {
    /// The description for the model.
    pub description: Option<String>,
    /// Configuration of its agents, on top of their parent's.
    pub config_file: Option<PathBuf>,
    /// Nicknames for its agents. Empty: those of other agents.
    pub nicknames: Vec<String>,
    /// The root of the project that contains `config_file`, if any.
    pub project: Option<PathBuf>,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self { max_threads: 6, max_depth: 1, job_max_runtime_seconds: None, roles: BTreeMap::new() }
    }
}

/// Which logins are accepted, and where they are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub forced_method: Option<ForcedLoginMethod>,
    pub forced_chatgpt_workspace_id: Option<String>,
    pub chatgpt_base_url: String,
}
