//! The keys of a configuration file. Values of the wrong kind are refused. Unknown keys are reported and ignored,
//! except where a misspelt one would be dangerous: in a provider's table, and near the keys that choose one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use protocol::{
    AnalyticsConfig, ApprovalsReviewer, AppsConfig, AskForApproval, ForcedLoginMethod, Personality,
    ReasoningEffort, ReasoningSummary, SandboxMode, SandboxWorkspaceWrite, ServiceTier, Verbosity,
    WebSearchMode, WebSearchToolConfig,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Table;

/// The top level.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Keys {
    pub(crate) model: Option<String>,
    pub(crate) review_model: Option<String>,
    pub(crate) model_provider: Option<String>,
    pub(crate) model_context_window: Option<i64>,
    pub(crate) model_auto_compact_token_limit: Option<i64>,
    pub(crate) tool_output_token_limit: Option<usize>,
    pub(crate) model_reasoning_effort: Option<ReasoningEffort>,
    pub(crate) plan_mode_reasoning_effort: Option<ReasoningEffort>,
    pub(crate) model_reasoning_summary: Option<ReasoningSummary>,
    pub(crate) model_verbosity: Option<Verbosity>,
    pub(crate) model_supports_reasoning_summaries: Option<bool>,
    pub(crate) model_catalog_json: Option<PathBuf>,
    pub(crate) service_tier: Option<ServiceTier>,
    pub(crate) personality: Option<Personality>,
    pub(crate) openai_base_url: Option<String>,
    pub(crate) chatgpt_base_url: Option<String>,
    pub(crate) oss_provider: Option<String>,
    pub(crate) approval_policy: Option<AskForApproval>,
    pub(crate) approvals_reviewer: Option<ApprovalsReviewer>,
    pub(crate) sandbox_mode: Option<SandboxMode>,
    pub(crate) sandbox_workspace_write: Option<SandboxWorkspaceWrite>,
    pub(crate) sandbox: Option<SandboxKeys>,
    pub(crate) default_permissions: Option<String>,
    pub(crate) permissions: Option<Table>,
    pub(crate) allow_login_shell: Option<bool>,
    pub(crate) shell_environment_policy: Option<ShellEnvironmentKeys>,
    pub(crate) instructions: Option<String>,
    pub(crate) developer_instructions: Option<String>,
    pub(crate) model_instructions_file: Option<PathBuf>,
    pub(crate) experimental_instructions_file: Option<PathBuf>,
    pub(crate) compact_prompt: Option<String>,
    pub(crate) experimental_compact_prompt_file: Option<PathBuf>,
    pub(crate) project_doc_max_bytes: Option<usize>,
    pub(crate) project_doc_fallback_filenames: Option<Vec<String>>,
    pub(crate) project_root_markers: Option<Vec<String>>,
    pub(crate) projects: Option<BTreeMap<String, ProjectKeys>>,
    pub(crate) profile: Option<String>,
    pub(crate) profiles: BTreeMap<String, ProfileKeys>,
    pub(crate) model_providers: BTreeMap<String, ProviderKeys>,
    pub(crate) prices: crate::Prices,
    pub(crate) notify: Option<Vec<String>>,
    pub(crate) hide_agent_reasoning: Option<bool>,
    pub(crate) web_search: Option<WebSearchMode>,
    pub(crate) tools: Option<ToolKeys>,
    pub(crate) background_terminal_max_timeout: Option<u64>,
    pub(crate) agents: Option<AgentKeys>,
    pub(crate) memories: Option<MemoryKeys>,
    pub(crate) mcp_servers: Table,
    pub(crate) forced_login_method: Option<ForcedLoginMethod>,
    pub(crate) forced_chatgpt_workspace_id: Option<String>,
    pub(crate) plugins: Table,
    pub(crate) apps: Option<AppsConfig>,
    pub(crate) analytics: Option<AnalyticsConfig>,
    pub(crate) feedback: Option<FeedbackKeys>,
    pub(crate) features: Option<BTreeMap<String, bool>>,
    pub(crate) suppress_unstable_features_warning: Option<bool>,
    /// Keys without effect are errors.
    pub(crate) strict_config: Option<bool>,
    pub(crate) experimental_use_unified_exec_tool: Option<bool>,
    pub(crate) experimental_use_freeform_apply_patch: Option<bool>,
}

/// One `[profiles.<name>]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProfileKeys {
    pub(crate) model: Option<String>,
    pub(crate) service_tier: Option<ServiceTier>,
    pub(crate) model_provider: Option<String>,
    pub(crate) approval_policy: Option<AskForApproval>,
    pub(crate) approvals_reviewer: Option<ApprovalsReviewer>,
    pub(crate) sandbox_mode: Option<SandboxMode>,
    pub(crate) model_reasoning_effort: Option<ReasoningEffort>,
    pub(crate) plan_mode_reasoning_effort: Option<ReasoningEffort>,
    pub(crate) model_reasoning_summary: Option<ReasoningSummary>,
    pub(crate) model_verbosity: Option<Verbosity>,
    pub(crate) model_catalog_json: Option<PathBuf>,
    pub(crate) personality: Option<Personality>,
    pub(crate) chatgpt_base_url: Option<String>,
    pub(crate) model_instructions_file: Option<PathBuf>,
    pub(crate) experimental_instructions_file: Option<PathBuf>,
    pub(crate) experimental_compact_prompt_file: Option<PathBuf>,
    pub(crate) tools: Option<ToolKeys>,
    pub(crate) web_search: Option<WebSearchMode>,
    pub(crate) analytics: Option<AnalyticsConfig>,
    pub(crate) features: Option<BTreeMap<String, bool>>,
    pub(crate) oss_provider: Option<String>,
    pub(crate) include_apply_patch_tool: Option<bool>,
    pub(crate) experimental_use_unified_exec_tool: Option<bool>,
    pub(crate) experimental_use_freeform_apply_patch: Option<bool>,
}

/// One `[model_providers.<id>]`. Serialised for `config/read`, which shows every key. A misspelt key could send prompts
/// and keys to the wrong server, so it is refused.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderKeys {
    /// Empty: that of the known provider with the id, else the id.
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) base_url: Option<String>,
    pub(crate) env_key: Option<String>,
    pub(crate) env_key_instructions: Option<String>,
    pub(crate) experimental_bearer_token: Option<String>,
    /// Unset: that of the known provider with the id, else Responses.
    pub(crate) wire_api: Option<WireApi>,
    pub(crate) query_params: Option<BTreeMap<String, String>>,
    pub(crate) http_headers: Option<BTreeMap<String, String>>,
    pub(crate) env_http_headers: Option<BTreeMap<String, String>>,
    pub(crate) request_max_retries: Option<u64>,
    pub(crate) stream_max_retries: Option<u64>,
    pub(crate) stream_idle_timeout_ms: Option<u64>,
    pub(crate) websocket_connect_timeout_ms: Option<u64>,
    #[serde(default)]
    pub(crate) requires_openai_auth: bool,
    #[serde(default)]
    pub(crate) supports_websockets: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) text_tool_calls: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking: Option<ThinkingMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_messages: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<AuthKeys>,
}

/// `[model_providers.<id>.auth]`: a command that prints the token of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthKeys {
    pub(crate) command: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) args: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cwd: Option<PathBuf>,
}

/// The wire of the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireApi {
    #[default]
    Responses,
    /// OpenAI-compatible chat completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

/// How thinking is requested on the messages wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingMode {
    /// Not at all.
    Never,
    /// With a budget of tokens, as models up to 4.5 take it.
    Budget,
    /// Decided by the model.
    Adaptive,
}

/// `[sandbox]`. A misspelt key would leave a path accessible, so it is refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxKeys {
    pub(crate) deny_read: Vec<PathBuf>,
    pub(crate) allow_read: Vec<PathBuf>,
    pub(crate) unix_sockets: Vec<PathBuf>,
}

/// Which variables of the server commands inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Inherit {
    /// Every variable of the server.
    #[default]
    All,
    /// Commonly needed variables: the core ones, and those about tools and the locale.
    Common,
    /// Only those that a shell needs.
    Core,
    None,
}

/// `[shell_environment_policy]`. Serialised for `config/read`, which shows every key.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ShellEnvironmentKeys {
    pub(crate) inherit: Option<Inherit>,
    pub(crate) ignore_default_excludes: Option<bool>,
    pub(crate) exclude: Option<Vec<String>>,
    pub(crate) set: Option<BTreeMap<String, String>>,
    pub(crate) include_only: Option<Vec<String>>,
    pub(crate) experimental_use_profile: Option<bool>,
}

/// The user's decision about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// One `[projects."<path>"]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProjectKeys {
    pub(crate) trust_level: Option<Trust>,
    /// Digests of reviewed settings, by their folder.
    pub(crate) reviewed: BTreeMap<String, String>,
}

/// `[memories]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryKeys {
    pub(crate) generate_memories: Option<bool>,
    pub(crate) use_memories: Option<bool>,
    pub(crate) no_memories_if_mcp_or_web_search: Option<bool>,
    pub(crate) max_rollouts_per_startup: Option<i64>,
    pub(crate) max_rollout_age_days: Option<i64>,
    pub(crate) min_rollout_idle_hours: Option<i64>,
    pub(crate) max_raw_memories_for_consolidation: Option<i64>,
    pub(crate) max_unused_days: Option<i64>,
    pub(crate) extract_model: Option<String>,
    pub(crate) consolidation_model: Option<String>,
}

/// `[tools]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolKeys {
    #[serde(deserialize_with = "web_search_tool")]
    pub(crate) web_search: Option<WebSearchToolConfig>,
    pub(crate) view_image: Option<bool>,
}

/// A boolean was an older form of the switch; it is accepted and has no effect.
fn web_search_tool<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<WebSearchToolConfig>, D::Error> {
    match toml::Value::deserialize(deserializer)? {
        toml::Value::Boolean(_) => Ok(None),
        value => {
            value.try_into().map(Some).map_err(|error: toml::de::Error| D::Error::custom(error.message()))
        }
    }
}

/// `[agents]`; every other entry is a role.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AgentKeys {
    pub(crate) max_threads: Option<i64>,
    pub(crate) max_depth: Option<i64>,
    pub(crate) job_max_runtime_seconds: Option<i64>,
    #[serde(flatten)]
    pub(crate) roles: Table,
}

/// One `[agents.<role>]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, expecting = "a table")]
pub(crate) struct RoleKeys {
    pub(crate) description: Option<String>,
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) nickname_candidates: Option<Vec<String>>,
}

/// `[feedback]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FeedbackKeys {
    pub(crate) enabled: Option<bool>,
}
