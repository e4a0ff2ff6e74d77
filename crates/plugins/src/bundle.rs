//! Contents of installed plugins other than skills: MCP servers and apps.

use std::path::{Path, PathBuf};

use config::ResolvedConfig;
use serde_json::{Map, Value};

use crate::installed::active_plugins;
use crate::manifest::{MAX_JSON_BYTES, Manifest, reader_of};

/// An app that a plugin uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginApp {
    pub name: String,
    pub id: String,
}

/// The servers of all enabled plugins, as tables of `[mcp_servers]`, each with its plugin. Of two with the same name
/// the first counts.
pub fn mcp_servers(config: &ResolvedConfig) -> Vec<(String, toml::Table, String)> {
    let mut all: Vec<(String, toml::Table, String)> = Vec::new();
    for plugin in active_plugins(config) {
        for (name, table) in plugin_mcp_servers(&plugin.folder, &plugin.manifest) {
            match all.iter().find(|(known, ..)| *known == name) {
                None => all.push((name, table, plugin.name().to_owned())),
                Some((.., first)) => {
                    tracing::warn!(
                        server = name,
                        first,
                        second = plugin.name(),
                        "two plugins bring one MCP server"
                    );
                }
            }
        }
    }
    all
}

/// The servers of one plugin, by name.
pub fn plugin_mcp_servers(folder: &Path, manifest: &Manifest) -> Vec<(String, toml::Table)> {
    let servers = entries(folder, manifest.mcp_servers.as_deref(), ".mcp.json", "mcpServers");
    let mut servers: Vec<_> = servers
        .into_iter()
        .filter_map(|(name, server)| match table_of(folder, server) {
            Ok(table) => Some((name, table)),
            Err(problem) => {
                tracing::warn!(server = name, problem, "an MCP server of a plugin is left out");
                None
            }
        })
        .collect();
    servers.sort_by(|one, other| one.0.cmp(&other.0));
    servers
}

/// The apps of one plugin, by name.
pub fn plugin_apps(folder: &Path, manifest: &Manifest) -> Vec<PluginApp> {
    let apps = entries(folder, manifest.apps.as_deref(), ".app.json", "apps");
    let app = |(name, app): (String, Value)| {
        let id = app.get("id").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty())?.to_owned();
        Some(PluginApp { name, id })
    };
    apps.into_iter().filter_map(app).collect()
}

/// The object under `key` in a file of the plugin. Empty without the file.
fn entries(folder: &Path, named: Option<&Path>, usual: &str, key: &str) -> Map<String, Value> {
    let file = folder.join(named.unwrap_or(Path::new(usual)));
    let read = reader_of(folder).and_then(|reader| match reader.read_whole(&file, MAX_JSON_BYTES) {
        Ok(text) => serde_json::from_slice::<Value>(&text).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.to_string()),
    });
    match read {
        Ok(Some(mut json)) => match json.get_mut(key).map(Value::take) {
            Some(Value::Object(entries)) => entries,
            _ => Map::new(),
        },
        Ok(None) => Map::new(),
        Err(problem) => {
            tracing::warn!(file = %file.display(), problem, "a file of a plugin is left out");
            Map::new()
        }
    }
}

fn table_of(folder: &Path, server: Value) -> Result<toml::Table, String> {
    let Value::Object(mut server) = server else { return Err("it is not an object".to_owned()) };
    // Keys of other programs without effect here.
    for key in ["type", "oauth"] {
        server.remove(key);
    }
    server.retain(|_, value| !value.is_null());
    if let Some(cwd) = server.get_mut("cwd") {
        let relative = cwd.as_str().map(PathBuf::from).ok_or("its cwd is not text")?;
        *cwd = Value::String(folder.join(relative).to_string_lossy().into_owned());
    }
    toml::Table::try_from(server).map_err(|error| error.to_string())
}
