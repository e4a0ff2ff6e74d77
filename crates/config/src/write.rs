//! `config/value/write` and `config/batchWrite`: changes of the user's file that result in a valid configuration, or
//! are refused.

use std::path::{Path, PathBuf};

use protocol::{
    ConfigBatchWriteParams, ConfigEdit, ConfigLayerSource, ConfigWriteResponse, OverriddenMetadata,
    WriteStatus,
};
use serde_json::{Map, Value as Json};
use toml::{Table, Value};
use toml_edit::DocumentMut;

use crate::edit::{clear_value, edit_file, set_value};
use crate::flags::{MAX_PARTS, shown_key};
use crate::home::create_private;
use crate::json::to_json;
use crate::keys::Keys;
use crate::layer::{SettingsLayer, absolute_path, read_optional};
use crate::paths::{PathBase, normalize};
use crate::typed::typed;
use crate::{ConfigError, LoadRequest, Loader, Requirements, ResolvedConfig, mask};

/// Why nothing was written. Each variant has a code on the wire.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConfigWriteError {
    #[error("Only writes to the user config are allowed")]
    ReadOnlyLayer,
    #[error("Configuration was modified since last read. Fetch latest version and retry.")]
    VersionConflict,
    /// The value, or the resulting configuration, is invalid.
    #[error("Invalid configuration: {0}")]
    Invalid(String),
    #[error("`{0}` cannot be cleared: there is no table around it")]
    PathNotFound(String),
    #[error(transparent)]
    Failed(#[from] ConfigError),
}

impl Loader {
    /// Makes all of the edits or none. The file is replaced as a whole, with a lock against other writers.
    pub fn write(&self, params: &ConfigBatchWriteParams) -> Result<ConfigWriteResponse, ConfigWriteError> {
        let edits = params.edits.iter().map(PlannedEdit::new).collect::<Result<Vec<_>, _>>()?;
        let file = self.target(params.file_path.as_deref())?;
        let folder = file.parent().unwrap_or(&file);
        create_private(folder).map_err(|error| ConfigError::write(folder, error))?;
        // The editor's closure can only return configuration errors, so the reason is passed separately.
        let mut refused = None;
        let written = edit_file(&file, |document| {
            let outcome = self.change(&file, document, &edits, params.expected_version.as_deref());
            outcome.map_err(|error| {
                refused = Some(error);
                ConfigError::value("nothing was written")
            })
        });
        match (written, refused) {
            (_, Some(refused)) => Err(refused),
            (Ok(layer), None) => self.response(&file, &layer, &edits),
            (Err(invalid @ ConfigError::Invalid { .. }), None) => {
                Err(ConfigWriteError::Invalid(invalid.to_string()))
            }
            (Err(error), None) => Err(error.into()),
        }
    }

    /// The user's file to write: our own one, unless the request names the other.
    fn target(&self, asked: Option<&str>) -> Result<PathBuf, ConfigWriteError> {
        let own = self.home().own_config_file();
        let Some(asked) = asked else { return Ok(own) };
        let asked = normalize(Path::new(asked));
        let users = [own, self.home().config_file()];
        let is_it = |file: &PathBuf| {
            let same = |one: &Path, other: &Path| matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other);
            *file == asked || same(file, &asked)
        };
        users.into_iter().find(is_it).ok_or(ConfigWriteError::ReadOnlyLayer)
    }

    /// Edits the document if its version is the expected one, and checks the result.
    fn change(
        &self,
        file: &Path,
        document: &mut DocumentMut,
        edits: &[PlannedEdit],
        expected: Option<&str>,
    ) -> Result<SettingsLayer, ConfigWriteError> {
        let before = self.layer_of(file, document.to_string())?;
        if expected.is_some_and(|expected| !self.is_version(expected, file, &before)) {
            return Err(ConfigWriteError::VersionConflict);
        }
        for edit in edits {
            edit.apply(document)?;
        }
        let after = self.layer_of(file, document.to_string())?;
        typed::<Keys>(&after.table).map_err(|misfit| ConfigWriteError::Invalid(misfit.lines()))?;
        let invalid = |error: ConfigError| ConfigWriteError::Invalid(error.to_string());
        let config = self.load_with(&after).map_err(invalid)?;
        // A value that was already forbidden is not this request's fault.
        let known = forbidden(&config.requirements, &before.table);
        match forbidden(&config.requirements, &after.table).into_iter().find(|one| !known.contains(one)) {
            Some(new) => Err(ConfigWriteError::Invalid(new)),
            None => Ok(after),
        }
    }

    fn layer_of(&self, file: &Path, text: String) -> Result<SettingsLayer, ConfigError> {
        let folder = file.parent().unwrap_or(file);
        let source = ConfigLayerSource::User { file: absolute_path(file)? };
        let mut layer = SettingsLayer::new(source, Some(folder.to_owned()));
        let user = self.user_home();
        layer.parse(file, text, PathBase { folder, user: user.as_deref() })?;
        Ok(layer)
    }

    /// Our own file is not listed before it exists; then the version of the user's other file is expected.
    fn is_version(&self, expected: &str, file: &Path, layer: &SettingsLayer) -> bool {
        let shared = self.home().config_file();
        let of_shared = || {
            let text = read_optional(&shared).ok()?.unwrap_or_default();
            Some(self.layer_of(&shared, text).ok()?.version())
        };
        layer.version() == expected
            || (shared != *file && !file.exists() && of_shared().as_deref() == Some(expected))
    }

    /// The configuration with this layer in place of the file.
    fn load_with(&self, layer: &SettingsLayer) -> Result<ResolvedConfig, ConfigError> {
        let request = LoadRequest::default();
        let mut layers = self.layers(&request)?;
        let is_it = |other: &SettingsLayer| other.source == layer.source;
        match layers.layers.iter_mut().find(|other| is_it(other)) {
            Some(place) => *place = layer.clone(),
            None => {
                let is_user = |other: &SettingsLayer| matches!(other.source, ConfigLayerSource::User { .. });
                let at = layers.layers.iter().rposition(is_user).map_or(0, |at| at + 1);
                layers.layers.insert(at, layer.clone());
            }
        }
        self.combine(layers, &request)
    }

    fn response(
        &self,
        file: &Path,
        layer: &SettingsLayer,
        edits: &[PlannedEdit],
    ) -> Result<ConfigWriteResponse, ConfigWriteError> {
        let config = self.load(&LoadRequest::default())?;
        let overridden_metadata = edits.iter().find_map(|edit| overridden(&config, layer, &edit.path));
        Ok(ConfigWriteResponse {
            status: match overridden_metadata {
                Some(_) => WriteStatus::OkOverridden,
                None => WriteStatus::Ok,
            },
            version: layer.version(),
            file_path: absolute_path(file)?,
            overridden_metadata,
        })
    }
}

/// One parsed edit. `value` is none to clear.
struct PlannedEdit {
    key: String,
    path: Vec<String>,
    value: Option<Value>,
    strategy: protocol::MergeStrategy,
}

impl PlannedEdit {
    fn new(edit: &ConfigEdit) -> Result<Self, ConfigWriteError> {
        let key = edit.key_path.clone();
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) || path.len() > MAX_PARTS {
            let message =
                format!("keyPath `{}` has an empty part or too many; write it like a.b.c", shown_key(&key));
            return Err(ConfigWriteError::Invalid(message));
        }
        let value = match &edit.value {
            Json::Null => None,
            value => {
                let problem = |problem| ConfigWriteError::Invalid(format!("value of `{key}`: {problem}"));
                Some(from_json(value).map_err(problem)?)
            }
        };
        Ok(Self { key, path, value, strategy: edit.merge_strategy })
    }

    fn apply(&self, document: &mut DocumentMut) -> Result<(), ConfigWriteError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match &self.value {
            Some(value) => set_value(document, &path, value, self.strategy),
            None if clear_value(document, &path) => {}
            None => return Err(ConfigWriteError::PathNotFound(self.key.clone())),
        }
        Ok(())
    }
}

fn from_json(value: &Json) -> Result<Value, String> {
    Ok(match value {
        Json::Null => return Err("a null inside a value cannot be written; leave the key out".to_owned()),
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(float)) if number.is_f64() => Value::Float(float),
            _ => return Err(format!("{number} is too large for a file")),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(fields) => {
            let pairs = fields.iter().map(|(key, value)| Ok((key.clone(), from_json(value)?)));
            Value::Table(pairs.collect::<Result<Table, String>>()?)
        }
    })
}

/// The values of one layer that the administrator's requirements forbid, each as a sentence.
fn forbidden(requirements: &Requirements, table: &Table) -> Vec<String> {
    let profiles = table.get("profiles").and_then(Value::as_table).into_iter().flatten();
    let tables = profiles.filter_map(|(_, profile)| profile.as_table()).chain([table]);
    tables.flat_map(|table| forbidden_in(requirements, table)).collect()
}

fn forbidden_in(requirements: &Requirements, table: &Table) -> Vec<String> {
    let value = |key: &str| table.get(key).cloned();
    let policy = value("approval_policy").and_then(|policy| policy.try_into().ok());
    let mode = value("sandbox_mode").and_then(|mode| mode.try_into().ok());
    let search = value("web_search").and_then(|mode| mode.try_into().ok());
    let refusals = [
        policy.and_then(|policy| requirements.allow_approval_policy(&policy).err()),
        mode.and_then(|mode| requirements.allow_sandbox_mode(mode).err()),
        search.and_then(|mode| requirements.allow_web_search(mode).err()),
    ];
    let mut found: Vec<String> = refusals.into_iter().flatten().map(|error| error.to_string()).collect();
    let features = table.get("features").and_then(Value::as_table);
    for (key, enabled) in features.into_iter().flatten() {
        let key = crate::Feature::find(key).map_or(key.as_str(), |feature| feature.key);
        let fixed = requirements.features().find(|(fixed, _)| *fixed == key);
        if let Some((_, fixed)) = fixed.filter(|(_, fixed)| enabled.as_bool() != Some(*fixed)) {
            let file = requirements.features_file().unwrap_or(Path::new("requirements.toml"));
            found.push(format!("features.{key} is fixed to {fixed} in {}", file.display()));
        }
    }
    found
}

/// Set if another layer overrides the written value.
fn overridden(config: &ResolvedConfig, user: &SettingsLayer, path: &[String]) -> Option<OverriddenMetadata> {
    let effective = value_at(&config.merged, path);
    match (value_at(&user.table, path), effective) {
        (Some(written), Some(effective)) if holds(effective, written) => return None,
        (None, None) => return None,
        _ => {}
    }
    let enabled = config.layers.iter().rev().filter(|layer| layer.is_enabled());
    let layer = enabled.filter(|layer| layer.source != user.source).find(|layer| {
        value_at(&layer.table, path).is_some_and(|value| effective.is_some_and(|all| holds(all, value)))
    })?;
    Some(OverriddenMetadata {
        message: message(&layer.source),
        overriding_layer: layer.metadata(),
        effective_value: effective.map_or(Json::Null, |value| shown(path, value)),
    })
}

/// Whether `whole` contains every value of `part`.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Table(whole), Value::Table(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| holds(whole, value)))
        }
        (whole, part) => whole == part,
    }
}

fn value_at<'a>(table: &'a Table, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(table.get(first)?, |value, key| value.as_table()?.get(key))
}

/// The value as in `config/read`: without secrets, which depend on the parent keys.
fn shown(path: &[String], value: &Value) -> Json {
    let wrap = |inner: Json, key: &String| Json::Object(Map::from_iter([(key.clone(), inner)]));
    let mut whole = path.iter().rev().fold(to_json(value), wrap);
    mask::hide(&mut whole);
    path.iter().try_fold(&whole, |value, key| value.get(key)).cloned().unwrap_or(Json::Null)
}

fn message(source: &ConfigLayerSource) -> String {
    match source {
        ConfigLayerSource::Mdm { domain, key } => format!("Overridden by managed policy ({domain}/{key})"),
        ConfigLayerSource::System { file } => format!("Overridden by managed config (system): {file}"),
        ConfigLayerSource::User { file } => format!("Overridden by user config: {file}"),
        ConfigLayerSource::Project { dot_codex_folder } => {
            format!("Overridden by project config: {dot_codex_folder}/config.toml")
        }
        ConfigLayerSource::SessionFlags => "Overridden by session flags".to_owned(),
        ConfigLayerSource::LegacyManagedConfigTomlFromFile { file } => {
            format!("Overridden by legacy managed_config.toml: {file}")
        }
        ConfigLayerSource::LegacyManagedConfigTomlFromMdm => {
            "Overridden by legacy managed configuration (MDM)".to_owned()
        }
    }
}
