//! The response to `config/read`.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use protocol::{ConfigLayer, ConfigLayerMetadata, ConfigReadResponse};
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value};
use toml::Value as Toml;

use crate::features::RUNTIME_CONTROLLED;
use crate::json::to_json;
use crate::keys::Keys;
use crate::known_keys::{KEYS, OURS, PROFILE_KEYS};
use crate::typed::{TypeMismatch, typed};
use crate::{ConfigError, ResolvedConfig, SettingsLayer, mask};

impl ResolvedConfig {
    /// The merged values under their keys, with null for others, and their origins. Secrets show as `***`.
    pub fn read_response(&self, include_layers: bool) -> Result<ConfigReadResponse, ConfigError> {
        let mut shown = self.shown()?;
        mask::hide(&mut shown);
        let config = protocol::from_value(&shown).map_err(|error| unshowable(&error))?;
        let layers = include_layers.then(|| self.layers.iter().rev().map(SettingsLayer::shown).collect());
        Ok(ConfigReadResponse { config, origins: self.origins(), layers })
    }

    /// Every known key. Others are in the layers.
    fn shown(&self) -> Result<Value, ConfigError> {
        let keys: Keys =
            typed(&self.merged).map_err(|misfit: TypeMismatch| ConfigError::value(misfit.sentence()))?;
        let set = |key: &str| self.merged.get(key).map_or(Value::Null, to_json);
        let mut shown: Map<String, Value> = KEYS.iter().map(|key| ((*key).to_owned(), set(key))).collect();
        let ours = OURS.iter().filter(|key| self.merged.contains_key(**key));
        shown.extend(ours.map(|key| ((*key).to_owned(), set(key))));
        for table in ["profiles", "plugins", "mcp_servers"] {
            let value = shown.entry(table).or_insert(Value::Null);
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
        }
        let mut providers = keys.model_providers;
        for (id, table) in &mut providers {
            if let Some(provider) = self.providers.get(id) {
                (table.name, table.wire_api) = (provider.name.clone(), Some(provider.wire));
            }
        }
        insert(&mut shown, "model_providers", &providers)?;
        insert(&mut shown, "shell_environment_policy", &keys.shell_environment_policy.unwrap_or_default())?;
        insert(&mut shown, "features", &self.shown_features(keys.features.unwrap_or_default()))?;
        shown.entry("tools").and_modify(drop_bare_switch);
        for (_, profile) in shown.get_mut("profiles").and_then(Value::as_object_mut).into_iter().flatten() {
            let Some(profile) = profile.as_object_mut() else { continue };
            for key in PROFILE_KEYS {
                profile.entry(*key).or_insert(Value::Null);
            }
            profile.entry("tools").and_modify(drop_bare_switch);
        }
        Ok(Value::Object(shown))
    }

    /// The flags as set, known or not, with the current value of those that clients can switch.
    fn shown_features(&self, mut features: BTreeMap<String, bool>) -> BTreeMap<String, bool> {
        features.extend(RUNTIME_CONTROLLED.iter().map(|key| ((*key).to_owned(), self.features.enabled(key))));
        features
    }

    /// The layer of each value, by the path to it.
    fn origins(&self) -> BTreeMap<String, ConfigLayerMetadata> {
        let layers: Vec<_> = self.layers.iter().rev().filter(|layer| layer.is_enabled()).collect();
        let metadata: Vec<_> = layers.iter().map(|layer| layer.metadata()).collect();
        let mut paths = Vec::new();
        for (key, value) in &self.merged {
            leaves(value, vec![key.clone()], &mut paths);
        }
        let origin = |path: &Vec<String>| {
            let (first, rest) = path.split_first()?;
            let holds = |layer: &&SettingsLayer| {
                layer
                    .table
                    .get(first)
                    .and_then(|value| rest.iter().try_fold(value, step))
                    .is_some_and(is_leaf)
            };
            let index = layers.iter().position(holds)?;
            Some((path.join("."), metadata.get(index)?.clone()))
        };
        paths.iter().filter_map(origin).collect()
    }
}

impl SettingsLayer {
    /// `sha256:` and the hash of the values as JSON with sorted keys.
    pub fn version(&self) -> String {
        let hash = digest(&SHA256, self.to_json().to_string().as_bytes());
        format!("sha256:{}", HEXLOWER.encode(hash.as_ref()))
    }

    fn to_json(&self) -> Value {
        to_json(&Toml::Table(self.table.clone()))
    }

    fn shown(&self) -> ConfigLayer {
        let mut config = self.to_json();
        mask::hide(&mut config);
        let ConfigLayerMetadata { name, version } = self.metadata();
        ConfigLayer { name, version, config, disabled_reason: self.disabled_reason.clone() }
    }
}

fn insert(shown: &mut Map<String, Value>, key: &str, value: &impl Serialize) -> Result<(), ConfigError> {
    shown.insert(key.to_owned(), serde_json::to_value(value).map_err(|error| unshowable(&error))?);
    Ok(())
}

fn unshowable(error: &serde_json::Error) -> ConfigError {
    ConfigError::value(format!("the configuration cannot be shown: {error}"))
}

/// `tools.web_search = true` has no effect, and shows as unset.
fn drop_bare_switch(tools: &mut Value) {
    if let Some(search) = tools.get_mut("web_search").filter(|value| value.is_boolean()) {
        *search = Value::Null;
    }
}

fn leaves(value: &Toml, path: Vec<String>, found: &mut Vec<Vec<String>>) {
    let below = |key: String| path.iter().cloned().chain([key]).collect();
    match value {
        Toml::Table(table) => table.iter().for_each(|(key, value)| leaves(value, below(key.clone()), found)),
        Toml::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.for_each(|(index, value)| leaves(value, below(index.to_string()), found));
        }
        _ => found.push(path),
    }
}

fn is_leaf(value: &Toml) -> bool {
    !value.is_table() && !value.is_array()
}

fn step<'a>(value: &'a Toml, key: &String) -> Option<&'a Toml> {
    match value {
        Toml::Table(table) => table.get(key),
        Toml::Array(values) => values.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}
