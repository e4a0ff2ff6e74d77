//! Configuration: effective values, the layers they come from, writes to the user's file, and what is
//! required.

use super::prelude::*;

/// Reads the effective configuration, fresh from disk.
#[wire(omit_null)]
pub struct ConfigReadParams {
    /// Also return every layer.
    #[serde(default)]
    pub include_layers: bool,
    /// The folder whose project layers count; none count when unset.
    pub cwd: Option<String>,
}

/// How a written value meets the one in the file.
#[wire]
pub enum MergeStrategy {
    /// It takes the old value's place.
    Replace,
    /// Tables are merged key by key; anything else takes the old value's place.
    Upsert,
}

/// Writes one value to the user's config file; a null `value` removes the key. Comments in the file stay.
#[wire(omit_null)]
pub struct ConfigValueWriteParams {
    /// Keys joined by dots. There is no quoting, so a key with a dot in it cannot be reached.
    pub key_path: String,
    pub value: Value,
    pub merge_strategy: MergeStrategy,
    /// The user's config file, which is also meant when unset. Others are refused.
    pub file_path: Option<String>,
    /// The user layer's `version` as last read. The write fails when the file has changed since.
    pub expected_version: Option<String>,
}

/// One value to write. A null `value` removes the key.
#[wire]
pub struct ConfigEdit {
    /// Keys joined by dots. There is no quoting, so a key with a dot in it cannot be reached.
    pub key_path: String,
    pub value: Value,
    pub merge_strategy: MergeStrategy,
}

/// Writes several values to the user's config file, all or none.
#[wire(omit_null)]
pub struct ConfigBatchWriteParams {
    pub edits: Vec<ConfigEdit>,
    /// The user's config file, which is also meant when unset. Others are refused.
    pub file_path: Option<String>,
    /// The user layer's `version` as last read. The write fails when the file has changed since.
    pub expected_version: Option<String>,
    /// Also hand the new values to the threads that are loaded.
    #[serde(default)]
    pub reload_user_config: bool,
}

/// Whether usage statistics are collected.
#[wire]
pub struct AnalyticsConfig {
    pub enabled: Option<bool>,
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Settings of one app.
#[wire(snake_case)]
pub struct AppConfig {
    /// For tools without a setting of their own.
    pub default_tools_approval_mode: Option<AppToolApproval>,
    /// For tools without a setting of their own.
    pub default_tools_enabled: Option<bool>,
    /// Whether tools marked as destructive may be used.
    pub destructive_enabled: Option<bool>,
    #[serde(default = "crate::yes")]
    pub enabled: bool,
    /// Whether tools marked as open-world may be used.
    pub open_world_enabled: Option<bool>,
    pub tools: Option<AppToolsConfig>,
}

/// When a call of the tool asks the user.
#[wire]
pub enum AppToolApproval {
    /// When the tool's own hints say that it may change or reach something.
    Auto,
    /// Always.
    Prompt,
    /// Never.
    Approve,
}

/// Settings of one tool. Null falls back to those of the app.
#[wire(snake_case)]
pub struct AppToolConfig {
    pub approval_mode: Option<AppToolApproval>,
    pub enabled: Option<bool>,
}

/// Settings by tool name.
#[wire]
pub struct AppToolsConfig {
    #[serde(flatten)]
    pub tools: BTreeMap<String, AppToolConfig>,
}

/// Settings by app id.
#[wire]
pub struct AppsConfig {
    /// For apps without an entry of their own.
    #[serde(rename = "_default")]
    pub default: Option<AppsDefaultConfig>,
    /// By app id.
    #[serde(flatten)]
    pub apps: BTreeMap<String, AppConfig>,
}

/// Settings of apps without an entry of their own.
#[wire(snake_case)]
pub struct AppsDefaultConfig {
    #[serde(default = "crate::yes")]
    pub enabled: bool,
    /// Whether tools marked as destructive may be used.
    #[serde(default = "crate::yes")]
    pub destructive_enabled: bool,
    /// Whether tools marked as open-world may be used.
    #[serde(default = "crate::yes")]
    pub open_world_enabled: bool,
}

/// The effective configuration under the snake_case keys of the config file. A key that is not set is null.
#[wire(snake_case)]
pub struct Config {
    pub model: Option<String>,
    /// The model for reviews.
    pub review_model: Option<String>,
    /// In tokens. Overrides the model catalogue.
    pub model_context_window: Option<i64>,
    /// Tokens at which the history is compacted. At most 90 % of the context window, which is also the
    /// default.
    pub model_auto_compact_token_limit: Option<i64>,
    /// Id of the provider.
    pub model_provider: Option<String>,
    /// When null, an untrusted project gets `untrusted` and any other `on-request`.
    pub approval_policy: Option<AskForApproval>,
    #[experimental("config/read.approvalsReviewer", listed)]
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    /// When null, a project whose trust was decided gets `workspace-write` and any other `read-only`.
    pub sandbox_mode: Option<SandboxMode>,
    /// Details of the `workspace-write` mode.
    pub sandbox_workspace_write: Option<SandboxWorkspaceWrite>,
    /// Only logins to this workspace are accepted.
    pub forced_chatgpt_workspace_id: Option<String>,
    /// Only this kind of login is accepted.
    pub forced_login_method: Option<ForcedLoginMethod>,
    pub web_search: Option<WebSearchMode>,
    pub tools: Option<ToolsV2>,
    /// The profile in use, a key of `profiles`.
    pub profile: Option<String>,
    #[serde(default)]
    pub profiles: BTreeMap<String, ProfileV2>,
    /// Read, but not used in prompts.
    pub instructions: Option<String>,
    /// Given to the model in a developer message of its own.
    pub developer_instructions: Option<String>,
    /// Replaces the built-in prompt for compaction.
    pub compact_prompt: Option<String>,
    pub model_reasoning_effort: Option<ReasoningEffort>,
    pub model_reasoning_summary: Option<ReasoningSummary>,
    /// Sent only to models that support it.
    pub model_verbosity: Option<Verbosity>,
    pub service_tier: Option<ServiceTier>,
    pub analytics: Option<AnalyticsConfig>,
    #[experimental("config/read.apps")]
    pub apps: Option<AppsConfig>,
    /// Every other key, `features` among them.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// One source of configuration. `config` holds its own values, before any merging.
#[wire]
pub struct ConfigLayer {
    pub name: ConfigLayerSource,
    /// `sha256:` and the hash of the layer's content.
    pub version: String,
    pub config: Value,
    /// Set when the layer is listed without counting, as for an untrusted project.
    #[omit]
    pub disabled_reason: Option<String>,
}

/// Names the layer a value comes from.
#[wire]
pub struct ConfigLayerMetadata {
    pub name: ConfigLayerSource,
    /// `sha256:` and the hash of the layer's content.
    pub version: String,
}

/// Where a layer comes from. Later ones in this list win over earlier ones.
#[wire(tag = "type")]
pub enum ConfigLayerSource {
    /// Device management.
    Mdm { domain: String, key: String },
    /// The machine's config file.
    System { file: AbsolutePath },
    /// The user's config file, the only one that can be written through the server.
    User { file: AbsolutePath },
    /// A folder between the project's root and the working directory; the nearer one wins.
    Project { dot_codex_folder: AbsolutePath },
    /// Flags of the command line and the `config` of a request.
    SessionFlags,
    /// A managed config file of the machine.
    LegacyManagedConfigTomlFromFile { file: AbsolutePath },
    /// A managed config file that comes by device management.
    LegacyManagedConfigTomlFromMdm,
}

/// The only kind of login that is accepted.
#[wire]
pub enum ForcedLoginMethod {
    Chatgpt,
    Api,
}

/// A named set of values that win over the top-level ones while the profile is in use.
#[wire(snake_case)]
pub struct ProfileV2 {
    pub model: Option<String>,
    pub model_provider: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub service_tier: Option<ServiceTier>,
    pub model_reasoning_effort: Option<ReasoningEffort>,
    pub model_reasoning_summary: Option<ReasoningSummary>,
    pub model_verbosity: Option<Verbosity>,
    pub web_search: Option<WebSearchMode>,
    pub tools: Option<ToolsV2>,
    pub chatgpt_base_url: Option<String>,
    /// Every other key of the profile.
    #[serde(flatten)]
    pub extra: BTreeMap<String, Value>,
}

/// Permissions of the `workspace-write` mode beside the working directory.
#[wire(snake_case)]
pub struct SandboxWorkspaceWrite {
    /// More folders that may be written to.
    #[serde(default)]
    pub writable_roots: Vec<String>,
    #[serde(default)]
    pub network_access: bool,
    /// Do not make the folder in `TMPDIR` writable.
    #[serde(default)]
    pub exclude_tmpdir_env_var: bool,
    /// Do not make `/tmp` writable.
    #[serde(default)]
    pub exclude_slash_tmp: bool,
}

/// Settings of built-in tools.
#[wire(snake_case)]
pub struct ToolsV2 {
    pub web_search: Option<WebSearchToolConfig>,
    /// Whether the model may look at image files.
    pub view_image: Option<bool>,
}

/// How long the model's answers are to be.
#[wire]
pub enum Verbosity {
    Low,
    Medium,
    High,
}

/// How much of what was found the model gets to read.
#[wire]
pub enum WebSearchContextSize {
    Low,
    Medium,
    High,
}

/// Where the user is, roughly, so that results fit.
#[wire(closed)]
pub struct WebSearchLocation {
    pub country: Option<String>,
    pub region: Option<String>,
    pub city: Option<String>,
    pub timezone: Option<String>,
}

/// Whether the model may search the web, and how fresh the results are.
#[wire]
pub enum WebSearchMode {
    Disabled,
    Cached,
    Live,
}

/// Settings of the web search tool.
#[wire(snake_case, closed)]
pub struct WebSearchToolConfig {
    pub context_size: Option<WebSearchContextSize>,
    /// Only these domains are searched; null for all.
    pub allowed_domains: Option<Vec<String>>,
    pub location: Option<WebSearchLocation>,
}

#[wire]
pub struct ConfigReadResponse {
    pub config: Config,
    /// The layer each value comes from, by dotted path. Positions in arrays are numbers.
    pub origins: BTreeMap<String, ConfigLayerMetadata>,
    /// Left out unless asked for. Highest precedence first, disabled ones included.
    #[omit]
    pub layers: Option<Vec<ConfigLayer>>,
}

/// Why a value that was written has no effect. `effectiveValue` is what counts instead.
#[wire]
pub struct OverriddenMetadata {
    /// For display.
    pub message: String,
    pub overriding_layer: ConfigLayerMetadata,
    pub effective_value: Value,
}

/// Whether what was written counts.
#[wire]
pub enum WriteStatus {
    Ok,
    /// Written, but a higher layer sets another value.
    OkOverridden,
}

#[wire]
pub struct ConfigWriteResponse {
    pub status: WriteStatus,
    /// Of the user layer after the write, for the next `expectedVersion`.
    pub version: String,
    /// The file that was written.
    pub file_path: AbsolutePath,
    /// Set with `okOverridden`.
    pub overridden_metadata: Option<OverriddenMetadata>,
}

/// Limits set by an administrator. A null field restricts nothing.
#[wire]
pub struct ConfigRequirements {
    pub allowed_approval_policies: Option<Vec<AskForApproval>>,
    pub allowed_sandbox_modes: Option<Vec<SandboxMode>>,
    /// Always contains `disabled`.
    pub allowed_web_search_modes: Option<Vec<WebSearchMode>>,
    /// Feature flags that are fixed, by name.
    pub feature_requirements: Option<BTreeMap<String, bool>>,
    /// The region that data must stay in.
    pub enforce_residency: Option<ResidencyRequirement>,
    #[experimental("configRequirements/read.network")]
    pub network: Option<NetworkRequirements>,
}

/// Requirements and permissions of the managed network proxy.
#[wire]
pub struct NetworkRequirements {
    pub enabled: Option<bool>,
    /// Port of its HTTP side.
    pub http_port: Option<u16>,
    /// Port of its SOCKS side.
    pub socks_port: Option<u16>,
    pub allow_upstream_proxy: Option<bool>,
    /// Whether it may listen beyond loopback.
    pub dangerously_allow_non_loopback_proxy: Option<bool>,
    pub dangerously_allow_all_unix_sockets: Option<bool>,
    pub allowed_domains: Option<Vec<String>>,
    pub denied_domains: Option<Vec<String>>,
    /// Paths of the sockets that may be reached.
    pub allow_unix_sockets: Option<Vec<String>>,
    pub allow_local_binding: Option<bool>,
}

/// A region that data must stay in.
#[wire]
pub enum ResidencyRequirement {
    Us,
}

#[wire]
pub struct ConfigRequirementsReadResponse {
    /// Null when nothing is required.
    pub requirements: Option<ConfigRequirements>,
}
