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
use serde::Deserialize;
use toml::Table;

use crate::{
    ConfigWarning, Deprecation, Env, Features, Home, Layer, ProviderConfig, Requirements, Review, RuleFile,
    ShellEnvironmentPolicy, Trust,
};

/// What all layers, the profile, the overrides of the request and the requirements come to.
#[derive(Clone)]
pub struct Config {
    pub home: Home,
    /// The folder the project layers were looked up for.
    pub cwd: Option<PathBuf>,
    /// The profile in use.
    pub profile: Option<String>,
    pub model: ModelOptions,
    /// The provider in use.
    pub provider: ProviderConfig,
    /// Every provider by id, the built-in ones included.
    pub providers: BTreeMap<String, ProviderConfig>,
    pub permissions: Permissions,
    pub instructions: Instructions,
    pub project_docs: ProjectDocs,
    pub tools: ToolOptions,
    pub agents: AgentOptions,
    pub features: Features,
    pub login: Login,
    pub history: History,
    pub paths: Paths,
    /// The program to run after each turn, with its first arguments.
    pub notify: Option<Vec<String>>,
    /// Reasoning is not shown at all.
    pub hide_agent_reasoning: bool,
    /// Reasoning is shown as the model wrote it, where the provider gives that out.
    pub show_raw_agent_reasoning: bool,
    /// Whether feedback may be sent.
    pub feedback_enabled: bool,
    pub requirements: Requirements,
    /// What is wrong without stopping the work.
    pub warnings: Vec<ConfigWarning>,
    /// What should be written in another way by now.
    pub deprecations: Vec<Deprecation>,
    /// Lowest precedence first, disabled ones included.
    pub layers: Vec<Layer>,
    /// The rules of projects that the user trusts.
    pub project_rules: Vec<RuleFile>,
    /// What project layers ask for that the user would have to review first.
    pub reviews: Vec<Review>,
    /// The enabled layers merged, without profile and overrides. Holds the keys no field here stands for, such as
    /// `mcp_servers`.
    pub merged: Table,
    pub(crate) suppress_unfinished: bool,
    /// Found when it is first asked for.
    pub(crate) off_limits: Arc<OnceLock<OffLimits>>,
    pub(crate) env: Env,
}

impl Config {
    /// What web search does under another sandbox than the configured one: without a sandbox it is live, if allowed.
    pub fn web_search_under(&self, sandbox: &SandboxPolicy) -> WebSearchMode {
        match (sandbox, self.tools.configured_web_search) {
            (SandboxPolicy::DangerFullAccess, WebSearchMode::Cached | WebSearchMode::Live) => {
                self.requirements.first_allowed_search([WebSearchMode::Live, WebSearchMode::Cached])
            }
            (_, mode) => mode,
        }
    }

    /// The folders of ours, the user's and the machine's whose `rules/*.rules` count, lowest precedence first. Those of
    /// projects are in `project_rules`.
    pub fn rule_folders(&self) -> Vec<PathBuf> {
        let is_project = |layer: &&Layer| matches!(layer.source, ConfigLayerSource::Project { .. });
        let enabled = self.layers.iter().filter(|layer| layer.is_enabled() && !is_project(layer));
        let of_layers = enabled.filter_map(|layer| layer.folder.clone());
        let mut folders: Vec<PathBuf> = of_layers.chain([self.home.state().to_owned()]).collect();
        let mut seen = std::collections::HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    /// What settings of projects are not used until the user reviews them.
    pub fn review_warnings(&self) -> impl Iterator<Item = ConfigWarning> + '_ {
        self.reviews.iter().filter_map(|review| review.warning(&self.home))
    }

    /// What to tell the user when flags are on that are not finished, unless that is switched off.
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

impl fmt::Debug for Config {
    /// Without the tables, which may hold secrets.
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

/// The model and how it is asked. None leaves the choice to the catalogue.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelOptions {
    pub name: Option<String>,
    /// The model for reviews.
    pub review: Option<String>,
    /// In tokens.
    pub context_window: Option<i64>,
    /// Tokens at which the history is compacted. The catalogue's owner caps it at 90 % of the window.
    pub auto_compact_token_limit: Option<i64>,
    /// Tokens of a tool's output that the model gets to see.
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

/// What may be done, and who is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Permissions {
    pub approval_policy: AskForApproval,
    pub approvals_reviewer: ApprovalsReviewer,
    pub sandbox_mode: SandboxMode,
    /// The mode with its details filled in.
    pub sandbox_policy: SandboxPolicy,
    /// What the user decided about the project, if anything.
    pub trust: Option<Trust>,
    /// Whether the model may ask for a login shell.
    pub allow_login_shell: bool,
    pub shell_environment: ShellEnvironmentPolicy,
}

/// Texts for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Instructions {
    /// Replaces the built-in instructions.
    pub base: Option<String>,
    /// Goes to the model in a developer message of its own.
    pub developer: Option<String>,
    /// Replaces the built-in prompt for compaction.
    pub compact_prompt: Option<String>,
    /// The co-author line for commits. An empty one means: none.
    pub commit_attribution: Option<String>,
}

/// Which AGENTS.md files are read, and how much of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectDocs {
    /// For all files together; 0 reads none.
    pub max_bytes: usize,
    /// File names to try after AGENTS.md.
    pub fallback_filenames: Vec<String>,
    /// What marks the root of a project. Empty: the working directory is the root.
    pub root_markers: Vec<String>,
    /// The root of the project of `cwd`.
    pub project_root: Option<PathBuf>,
}

/// Settings of built-in tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOptions {
    /// The mode under the configured sandbox. For another sandbox ask [`Config::web_search_under`].
    pub web_search: WebSearchMode,
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Whether the model may look at image files. None leaves it to the model's abilities.
    pub view_image: Option<bool>,
    /// The longest wait for output of a command that runs on.
    pub background_terminal_max_timeout_ms: u64,
    /// The mode before the sandbox is considered.
    pub(crate) configured_web_search: WebSearchMode,
}

/// Bounds on sub-agents, and the kinds of them that the user describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOptions {
    /// So many may be open at a time below one root.
    pub max_threads: usize,
    /// 1 for children that have no children.
    pub max_depth: usize,
    pub job_max_runtime_seconds: Option<u64>,
    pub roles: BTreeMap<String, AgentRole>,
}

/// A kind of sub-agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentRole {
    /// For the model: what it is for.
    pub description: Option<String>,
    /// Configuration that its agents have on top of their parent's.
    pub config_file: Option<PathBuf>,
    /// What its agents are called. Empty: as others are.
    pub nicknames: Vec<String>,
    /// The root of the project that `config_file` is part of, if it is.
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

/// Whether `history.jsonl` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryPersistence {
    #[default]
    SaveAll,
    None,
}

/// The prompts of all threads in one file, for clients that offer them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct History {
    pub persistence: HistoryPersistence,
    /// Old lines are dropped when the file grows beyond it.
    pub max_bytes: Option<u64>,
}

/// Folders for files of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    pub sqlite_home: PathBuf,
    pub log_dir: PathBuf,
}
