//! Installs and removes plugins: a copy in the state folder, and an entry in the user's settings.

use std::fs;
use std::io;
use std::path::Path;

use config::{Home, ResolvedConfig, forget_plugin, switch_plugin_on};

use crate::PluginError;
use crate::copy::{Staging, copy_folder};
use crate::id::PluginId;
use crate::installed::{LOCAL, versions};
use crate::manifest::Manifest;
use crate::marketplace::{OfferedPlugin, PluginOrigin, plugin_folder};

/// Copies and enables the plugin. Nothing of it runs. An existing version is replaced as a whole.
pub fn install(config: &ResolvedConfig, plugin: &OfferedPlugin) -> Result<(), PluginError> {
    plugin.check_available()?;
    let (home, name) = (&config.home, plugin.id.plugin.as_str());
    let from = plugin_folder(config, plugin)?;
    if !from.is_dir() {
        return Err(PluginError::NoSource(from));
    }
    Manifest::read(name, &from)?;
    home.create_state()?;
    let staging = Staging::new(home.state()).map_err(|error| PluginError::store(name, &error))?;
    copy_folder(&from, &staging.0.join("copy")).map_err(|problem| PluginError::content(name, &problem))?;
    // The copy is checked, because the copy is installed.
    Manifest::read(name, &staging.0.join("copy"))?;
    let version = match &plugin.source {
        PluginOrigin::Folder(_) => LOCAL,
        PluginOrigin::Git(source) => source.commit.as_str(),
    };
    let versions = versions(home.state(), &plugin.id);
    staging.put("copy", &versions.join(version)).map_err(|error| PluginError::store(name, &error))?;
    remove_others(&versions, version).map_err(|error| PluginError::store(name, &error))?;
    switch_plugin_on(home, &plugin.id.to_string())?;
    Ok(())
}

/// Only one version is installed at a time, so that the active one is certain.
fn remove_others(versions: &Path, version: &str) -> io::Result<()> {
    for entry in fs::read_dir(versions)? {
        let entry = entry?;
        if entry.file_name() != version {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Removes our copy and the entry in the settings. A missing plugin is no error.
pub fn uninstall(home: &Home, id: &str) -> Result<(), PluginError> {
    let id = PluginId::parse(id)?;
    forget_plugin(home, &id.to_string())?;
    match fs::remove_dir_all(versions(home.state(), &id)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(PluginError::store(&id.plugin, &error)),
        _ => Ok(()),
    }
}
