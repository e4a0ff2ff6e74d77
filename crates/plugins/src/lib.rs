//! Owns plugins: marketplaces that offer them, their manifests, their local copies, and the contents of installed ones.
//! Nothing of a plugin runs here. Must not know threads, models or how skills and MCP servers work.

mod apps;
mod bundle;
mod copy;
mod error;
mod git;
mod id;
mod install;
mod installed;
mod manifest;
mod marketplace;

pub use apps::{app_page, app_summary, apps};
pub use bundle::{PluginApp, mcp_servers, plugin_apps, plugin_mcp_servers};
pub use error::PluginError;
pub use id::PluginId;
pub use install::{install, uninstall};
pub use installed::{InstalledPlugin, active_plugins, install_folders};
pub use manifest::Manifest;
pub use marketplace::{
    MarketplaceSearch, OfferedPlugin, find_plugin, list_marketplaces, plugin_folder, summary,
};
