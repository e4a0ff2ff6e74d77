//! Sources of hooks: `hooks.json` in a layer's folder, and `[hooks]` in its config file. Other crates parse the
//! contents.

use std::path::{Path, PathBuf};

use protocol::ConfigLayerSource;
use serde_json::Value;
use toml::Value as Toml;

use crate::SettingsLayer;
use crate::json::to_json;
use crate::layer::read_optional;

pub(crate) const HOOKS: &str = "hooks.json";

/// Far more than any real file of hooks.
pub(crate) const MAX_HOOK_BYTES: u64 = 1 << 20;

/// The layer of the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOrigin {
    System,
    User,
    Project,
    /// The administrator's, which override all others.
    Managed,
    /// Flags of the command line, or a request.
    Session,
}

/// The hooks of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct HookFile {
    pub path: PathBuf,
    pub origin: HookOrigin,
    /// The object of events, or why there is none.
    pub events: Result<Value, String>,
    /// False for a project's hooks that the user has not reviewed: they are listed and never run.
    pub is_accepted: bool,
}

impl HookFile {
    /// `text` is an error where the file cannot be read.
    pub(crate) fn new(path: PathBuf, origin: HookOrigin, text: Result<String, String>) -> Self {
        let events = text.and_then(|text| match serde_json::from_str::<Value>(&text) {
            Ok(Value::Object(mut file)) => Ok(file.remove("hooks").unwrap_or_default()),
            Ok(_) => Err("it is not an object with the key `hooks`".to_owned()),
            Err(error) => Err(error.to_string()),
        });
        Self { path, origin, events, is_accepted: true }
    }

    /// Every command in it, for a review.
    pub(crate) fn commands(&self) -> Vec<String> {
        fn collect(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.get("command").and_then(Value::as_str).map(str::to_owned));
                    fields.values().for_each(|value| collect(value, found));
                }
                Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        if let Ok(events) = &self.events {
            collect(events, &mut found);
        }
        found
    }
}

/// The hooks of all active layers, lowest first. Those of projects were read with the project.
pub(crate) fn hook_files(
    layers: &[SettingsLayer],
    state: &Path,
    of_projects: Vec<HookFile>,
) -> Vec<HookFile> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut of_projects = Some(of_projects);
    for layer in layers {
        let origin = origin(&layer.source);
        if origin == HookOrigin::Project {
            found.extend(of_projects.take().into_iter().flatten());
        } else if let Some(folder) = layer.folder.clone().filter(|folder| !folders.contains(folder)) {
            // Two layers may share a folder and its file.
            found.extend(in_folder(&folder, origin));
            folders.push(folder);
        }
        if layer.is_enabled() {
            found.extend(in_table(layer, origin));
        }
    }
    if !folders.iter().any(|folder| folder == state) {
        found.extend(in_folder(state, HookOrigin::User));
    }
    found.extend(of_projects.into_iter().flatten());
    found
}

fn in_folder(folder: &Path, origin: HookOrigin) -> Option<HookFile> {
    let path = folder.join(HOOKS);
    let text = read_optional(&path).map_err(|error| error.to_string()).transpose()?;
    Some(HookFile::new(path, origin, text))
}

/// A project's table contains only reviewed hooks here; others were removed.
fn in_table(layer: &SettingsLayer, origin: HookOrigin) -> Option<HookFile> {
    let hooks = layer.table.get("hooks").filter(|hooks| matches!(hooks, Toml::Table(_)))?;
    let path = match &layer.source {
        ConfigLayerSource::SessionFlags => PathBuf::from("/<session-flags>/config.toml"),
        _ => layer.file()?.to_owned(),
    };
    Some(HookFile { path, origin, events: Ok(to_json(hooks)), is_accepted: true })
}

fn origin(source: &ConfigLayerSource) -> HookOrigin {
    match source {
        ConfigLayerSource::System { .. } => HookOrigin::System,
        ConfigLayerSource::User { .. } => HookOrigin::User,
        ConfigLayerSource::Project { .. } => HookOrigin::Project,
        ConfigLayerSource::SessionFlags => HookOrigin::Session,
        ConfigLayerSource::Mdm { .. }
        | ConfigLayerSource::LegacyManagedConfigTomlFromFile { .. }
        | ConfigLayerSource::LegacyManagedConfigTomlFromMdm => HookOrigin::Managed,
    }
}
