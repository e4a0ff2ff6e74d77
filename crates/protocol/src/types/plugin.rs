//! Plugins: the marketplaces that offer them, what is in them, and installing them.

use super::prelude::*;

/// Lists the plugins of every marketplace found. One that cannot be read does not hide the others.
#[wire(omit_null)]
pub struct PluginListParams {
    /// Folders whose own marketplaces count too.
    pub cwds: Option<Vec<AbsolutePath>>,
    /// First bring the local state in line with the remote one.
    #[serde(default)]
    pub force_remote_sync: bool,
}

/// Reads one plugin with all it contains.
#[wire]
pub struct PluginReadParams {
    /// The marketplace's file, as in `plugin/list`.
    pub marketplace_path: AbsolutePath,
    pub plugin_name: String,
}

/// Copies a plugin into place and switches it on.
#[wire]
pub struct PluginInstallParams {
    /// The marketplace's file, as in `plugin/list`.
    pub marketplace_path: AbsolutePath,
    pub plugin_name: String,
    /// Switch it on at the remote service first.
    #[serde(default)]
    pub force_remote_sync: bool,
}

/// Removes a plugin. One that is not there is fine.
#[wire]
pub struct PluginUninstallParams {
    /// `<plugin>@<marketplace>`.
    pub plugin_id: String,
    /// Remove it at the remote service first.
    #[serde(default)]
    pub force_remote_sync: bool,
}

/// How to show a marketplace.
#[wire]
pub struct MarketplaceInterface {
    pub display_name: Option<String>,
}

/// A marketplace that could not be read.
#[wire]
pub struct MarketplaceLoadErrorInfo {
    pub marketplace_path: AbsolutePath,
    pub message: String,
}

/// When the user connects the plugin's apps.
#[wire(screaming)]
pub enum PluginAuthPolicy {
    OnInstall,
    OnUse,
}

/// Whether a plugin can be installed.
#[wire(screaming)]
pub enum PluginInstallPolicy {
    NotAvailable,
    Available,
    InstalledByDefault,
}

/// How to show a plugin.
#[wire]
pub struct PluginInterface {
    pub display_name: Option<String>,
    pub short_description: Option<String>,
    pub long_description: Option<String>,
    pub developer_name: Option<String>,
    pub category: Option<String>,
    pub capabilities: Vec<String>,
    pub website_url: Option<String>,
    pub privacy_policy_url: Option<String>,
    pub terms_of_service_url: Option<String>,
    /// Prompts to suggest: at most three, of 128 characters each.
    pub default_prompt: Option<Vec<String>>,
    pub brand_color: Option<String>,
    pub composer_icon: Option<AbsolutePath>,
    pub logo: Option<AbsolutePath>,
    pub screenshots: Vec<AbsolutePath>,
}

/// One marketplace with its plugins.
#[wire]
pub struct PluginMarketplaceEntry {
    pub name: String,
    /// Its file.
    pub path: AbsolutePath,
    pub interface: Option<MarketplaceInterface>,
    pub plugins: Vec<PluginSummary>,
}

/// Where a plugin is copied from.
#[wire(tag = "type")]
pub enum PluginSource {
    Local { path: AbsolutePath },
}

/// A plugin in brief.
#[wire]
pub struct PluginSummary {
    /// `<plugin>@<marketplace>`.
    pub id: String,
    pub name: String,
    pub source: PluginSource,
    pub installed: bool,
    /// As the user's config file says; project files have no say.
    pub enabled: bool,
    pub install_policy: PluginInstallPolicy,
    pub auth_policy: PluginAuthPolicy,
    pub interface: Option<PluginInterface>,
}

#[wire]
pub struct PluginListResponse {
    pub marketplaces: Vec<PluginMarketplaceEntry>,
    #[serde(default)]
    pub marketplace_load_errors: Vec<MarketplaceLoadErrorInfo>,
    /// Set when the sync failed; the lists are then the local ones.
    pub remote_sync_error: Option<String>,
    /// Plugins to point out.
    #[serde(default)]
    pub featured_plugin_ids: Vec<String>,
}

/// A plugin with all it contains.
#[wire]
pub struct PluginDetail {
    pub marketplace_name: String,
    pub marketplace_path: AbsolutePath,
    pub summary: PluginSummary,
    pub description: Option<String>,
    /// Named `<plugin>:<skill>`.
    pub skills: Vec<SkillSummary>,
    pub apps: Vec<AppSummary>,
    /// Names of its MCP servers.
    pub mcp_servers: Vec<String>,
}

#[wire]
pub struct PluginReadResponse {
    pub plugin: PluginDetail,
}

#[wire]
pub struct PluginInstallResponse {
    pub auth_policy: PluginAuthPolicy,
    /// Apps the user still has to connect.
    pub apps_needing_auth: Vec<AppSummary>,
}

#[wire]
pub struct PluginUninstallResponse {}
