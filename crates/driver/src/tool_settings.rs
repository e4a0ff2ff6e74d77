//! The configuration of a thread's tools.

use std::collections::BTreeSet;
use std::path::PathBuf;

use config::AgentOptions;
use protocol::{WebSearchMode, WebSearchToolConfig};
use tools::Suggestion;

/// The configuration of a thread's tools.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// Keys of the enabled features.
    pub features: BTreeSet<String>,
    pub login_shell: bool,
    pub view_image: Option<bool>,
    /// With a sandbox, and without one.
    pub web_search: (WebSearchMode, WebSearchMode),
    pub web_search_options: Option<WebSearchToolConfig>,
    /// Which child agents may be started.
    pub agents: AgentOptions,
    /// The provider's wire supports hosted tools and tools with plain text input: only the Responses wire does.
    pub has_hosted_tools: bool,
    /// The provider takes images.
    pub takes_images: bool,
    /// The provider supports parallel tool calls.
    pub parallel_calls: bool,
    /// The Node.js program that runs scripts, if a feature needs it.
    pub node: Option<PathBuf>,
    /// Plugins that may be suggested to the user.
    pub suggestions: Vec<Suggestion>,
}

impl Default for ToolSettings {
    /// No feature is enabled, so only the basic tools are offered.
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
    /// Whether the feature with this key is enabled.
    pub fn has(&self, key: &str) -> bool {
        self.features.contains(key)
    }
}
