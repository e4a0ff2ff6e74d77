//! Plugins on this machine: their folders, and which are enabled.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use config::{Home, ResolvedConfig};
use protocol::ConfigLayerSource;

use crate::id::PluginId;
use crate::manifest::Manifest;

/// Inside a home folder: by marketplace, plugin and version.
pub(crate) const CACHE: &str = "plugins/cache";

/// The version of a plugin that was installed from a folder.
pub(crate) const LOCAL: &str = "local";

/// An installed and enabled plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct InstalledPlugin {
    pub id: PluginId,
    pub folder: PathBuf,
    pub manifest: Manifest,
}

impl InstalledPlugin {
    /// The prefix of its skills and tools.
    pub fn name(&self) -> &str {
        self.manifest.name.as_deref().unwrap_or(&self.id.plugin)
    }
}

/// By id. Project settings about plugins are ignored; a folder without a manifest is no plugin.
pub fn active_plugins(config: &ResolvedConfig) -> Vec<InstalledPlugin> {
    let switched = switched(config);
    if switched.is_empty() || !config.features.enabled("plugins") {
        return Vec::new();
    }
    let on = switched.into_iter().filter(|(_, enabled)| *enabled);
    let found = on.filter_map(|(id, _)| {
        let id = PluginId::parse(id).ok()?;
        let folder = active_folder(&config.home, &id)?;
        match Manifest::read(&id.plugin, &folder) {
            Ok(manifest) => Some(InstalledPlugin { id, folder, manifest }),
            Err(error) => {
                tracing::warn!(%error, "an installed plugin is left out");
                None
            }
        }
    });
    found.collect()
}

/// The settings in the user's own files; the last one counts.
fn switched(config: &ResolvedConfig) -> BTreeMap<&str, bool> {
    let users = config.layers.iter().filter(|layer| matches!(layer.source, ConfigLayerSource::User { .. }));
    let mut switched = BTreeMap::new();
    for table in users.filter_map(|layer| layer.table.get("plugins")?.as_table()) {
        for (id, plugin) in table {
            let enabled = plugin.get("enabled").and_then(toml::Value::as_bool);
            switched.extend(enabled.map(|enabled| (id.as_str(), enabled)));
        }
    }
    switched
}

pub(crate) fn is_enabled(config: &ResolvedConfig, id: &PluginId) -> bool {
    switched(config).get(id.to_string().as_str()).copied().unwrap_or(false)
}

/// The installed folder. Ours precedes that of another program in the same home.
pub(crate) fn active_folder(home: &Home, id: &PluginId) -> Option<PathBuf> {
    [home.state(), home.reading()].into_iter().find_map(|home| newest(&versions(home, id)))
}

/// The possible folders of an installed plugin. Empty for an invalid id.
pub fn install_folders(home: &Home, id: &str) -> Vec<PathBuf> {
    let id = PluginId::parse(id).ok();
    let folders = id.map(|id| [home.state(), home.reading()].map(|home| versions(home, &id)));
    folders.into_iter().flatten().collect()
}

pub(crate) fn versions(home: &Path, id: &PluginId) -> PathBuf {
    home.join(CACHE).join(&id.marketplace).join(&id.plugin)
}

fn newest(versions: &Path) -> Option<PathBuf> {
    let local = versions.join(LOCAL);
    if local.is_dir() {
        return Some(local);
    }
    let listed = fs::read_dir(versions).ok()?.flatten();
    let folders = listed.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.file_name()).max().map(|newest| versions.join(newest))
}
