//! Owns configuration: where the files are, their layers, profiles, overrides and requirements, turned into typed
//! options; and the stored API key. Must not know threads or the wire.

mod config;
mod credentials;
mod edit;
mod effective;
mod env;
mod error;
mod features;
mod flags;
pub mod fuzzing;
mod git;
mod home;
mod keys;
mod layer;
mod loader;
mod mask;
mod merge;
mod off_limits;
mod paths;
mod project;
mod provider;
mod read;
mod requirements;
mod review;
mod rule_file;
mod secret;
mod shell_environment;
mod skills;
mod typed;
mod warning;

pub use config::{
    AgentOptions, AgentRole, Config, History, HistoryPersistence, Instructions, Login, ModelOptions, Paths,
    Permissions, ProjectDocs, ToolOptions,
};
pub use credentials::Credentials;
pub use edit::{fill_config, missing_keys};
pub use env::Env;
pub use error::ConfigError;
pub use features::{FEATURES, Feature, Features};
pub use flags::parse_flag;
pub use git::is_marker;
pub use home::{Home, create_private};
pub use layer::Layer;
pub use loader::{LoadRequest, Loader, LoaderOptions, Overrides, Startup};
pub use mask::without_secrets;
pub use policy::RuleFile;
pub use project::Trust;
pub use provider::{Caller, ProviderConfig, ProviderKind};
pub use requirements::Requirements;
pub use review::Review;
pub use secret::Secret;
pub use shell_environment::{Inherit, ShellEnvironmentPolicy};
pub use skills::{SkillRules, SkillSelector};
pub use warning::{ConfigWarning, Deprecation};
