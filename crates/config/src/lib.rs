//! Owns configuration: the locations of the files, their layers, profiles, overrides and requirements, resolved to
//! typed options; and the stored login. Must not know threads or the wire.

mod accept;
mod config;
mod credentials;
mod edit;
mod effective;
mod env;
mod error;
mod external_agent;
mod features;
mod flags;
pub mod fuzzing;
mod git;
mod home;
mod hook_file;
mod json;
mod keys;
mod known_keys;
mod layer;
mod loader;
mod mask;
mod mcp;
mod merge;
mod off_limits;
mod paths;
mod prices;
mod project;
mod provider;
mod read;
mod redact;
mod requirements;
mod review;
mod rule_file;
mod secret;
mod shell_environment;
mod skills;
mod typed;
mod warning;
mod write;

pub use config::{
    AgentOptions, AgentRole, InstructionTexts, Login, MemoryOptions, ModelOptions, PermissionOptions,
    ProjectDocs, ResolvedConfig, ToolOptions,
};
pub use credentials::{ChatgptTokens, Credentials, write_secret_file};
pub use edit::{forget_plugin, switch_plugin_on};
pub use effective::key_problem;
pub use env::Env;
pub use error::ConfigError;
pub use external_agent::{ExternalAgentError, detect_external_agent, import_external_agent};
pub use features::{FEATURES, Feature, Features};
pub use flags::{parse_flag, value_of_flag};
pub use home::Home;
pub use hook_file::{HookFile, HookOrigin};
pub use keys::{Inherit, ThinkingMode, Trust, WireApi};
pub use layer::SettingsLayer;
pub use loader::{LoadRequest, Loader, LoaderOptions, RequestOverrides, Startup};
pub use mask::without_secrets;
pub use mcp::{
    McpApprovalMode, McpServer, McpServerProblem, McpTransport, approve_mcp_tool, remove_mcp_server,
    write_mcp_server,
};
pub use off_limits::{confinement, hidden_in};
pub use paths::PATH_KEYS;
pub use policy::RuleFile;
pub use prices::{Price, Prices};
pub use provider::{AuthCommand, CredentialCaller, ProviderConfig, ProviderKind, ProviderReason};
pub use redact::CredentialFilter;
pub use requirements::Requirements;
pub use review::{Review, is_harmless_key};
pub use secret::SecretText;
pub use shell_environment::{ShellEnvironmentPolicy, closed_search_path, system_search_path};
pub use skills::{SkillRules, SkillSelector};
pub use typed::nearest;
pub use warning::{Deprecation, SettingWarning};
pub use write::ConfigWriteError;
