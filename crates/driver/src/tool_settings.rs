//! The configuration of a thread's tools.

use std::collections::BTreeSet;
use std::path::PathBuf;

use config::AgentOptions;
use protocol::{WebSearchMode, WebSearchToolConfig};
use tools::Suggestion;

/// The configuration of a thread's tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// Keys of the features that are on.
    pub features: BTreeSet<String>,
    pub login_shell: bool,
    pub view_image: Option<bool>,
    /// Under the sandbox at hand, and without any.
    pub web_search: (WebSearchMode, WebSearchMode),
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Which child agents there may be.
    pub agents: AgentOptions,
    /// The provider's wire has tools that the provider runs and tools that take plain text: the Responses wire alone.
    pub has_hosted_tools: bool,
    /// The provider takes images.
    pub takes_images: bool,
    /// The provider lets a model make several calls at once.
    pub parallel_calls: bool,
    /// Runs scripts, where a feature has any.
    pub node: Option<PathBuf>,
    /// Plugins that may be suggested to the user.
    pub suggestions: Vec<Suggestion>,
}

impl Default for ToolSettings {
    /// No feature is on, so only what every model has is offered.
    fn default() -> Self {
        Self {
            features: BTreeSet::new(),
            login_shell: true,
            view_image: None,
            web_search: (WebSearchMode::Disabled, WebSearchMode::Disabled),
            web_search_options: None,
            agents: AgentOptions::default(),
            has_hosted_tools: true,
            takes_images: true,
            parallel_calls: true,
            node: None,
            suggestions: Vec::new(),
        }
    }
}

impl ToolSettings {
    /// Whether the feature of this key is on.
    pub fn has(&self, key: &str) -> bool {
        self.features.contains(key)
    }
}
