//! Why a plugin cannot be read, installed or removed.

use std::path::PathBuf;

use config::ConfigError;

/// The messages that existing clients show. Each names its subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginError {
    #[error("plugins feature is disabled")]
    Disabled,
    #[error("invalid plugin key `{0}`; expected <plugin>@<marketplace>")]
    Key(String),
    #[error("marketplace file `{}` does not exist", .0.display())]
    NoMarketplace(PathBuf),
    #[error("invalid marketplace file `{}`: {problem}", path.display())]
    Marketplace { path: PathBuf, problem: String },
    #[error("plugin `{plugin}` was not found in marketplace `{marketplace}`")]
    NotFound { plugin: String, marketplace: String },
    #[error("plugin `{plugin}` is not available for install in marketplace `{marketplace}`")]
    NotAvailable { plugin: String, marketplace: String },
    #[error("plugin source path is not a directory: {}", .0.display())]
    NoSource(PathBuf),
    /// The plugin's files are invalid.
    #[error("plugin `{plugin}`: {problem}")]
    Content { plugin: String, problem: String },
    #[error("plugin `{plugin}` could not be fetched from {url}: {problem}")]
    Git { plugin: String, url: String, problem: String },
    /// An error of this machine.
    #[error("plugin `{plugin}` could not be stored: {problem}")]
    Store { plugin: String, problem: String },
    #[error("the configuration could not be written: {0}")]
    Config(String),
}

impl PluginError {
    pub(crate) fn content(plugin: &str, problem: &(impl ToString + ?Sized)) -> Self {
        Self::Content { plugin: plugin.to_owned(), problem: problem.to_string() }
    }

    pub(crate) fn store(plugin: &str, problem: &(impl ToString + ?Sized)) -> Self {
        Self::Store { plugin: plugin.to_owned(), problem: problem.to_string() }
    }
}

impl From<ConfigError> for PluginError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}
