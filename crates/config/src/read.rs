//! The answer to `config/read`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use protocol::{ConfigLayer, ConfigLayerMetadata, ConfigReadResponse};
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value};
use toml::Value as Toml;

use crate::features::RUNTIME_CONTROLLED;
use crate::keys::Keys;
use crate::typed::{Misfit, typed};
use crate::{Config, ConfigError, Layer, mask};

impl Config {
    /// The merged values under their keys, with null for the rest, and where each comes from. Secrets show as `***`.
    pub fn read_response(&self, include_layers: bool) -> Result<ConfigReadResponse, ConfigError> {
        let mut shown = self.shown()?;
        mask::hide(&mut shown);
        let config = protocol::from_value(&shown).map_err(|error| unshowable(&error))?;
        let layers = include_layers.then(|| self.layers.iter().rev().map(Layer::shown).collect());
        Ok(ConfigReadResponse { config, origins: self.origins(), layers })
    }

    /// Every known key. Others are to be seen in the layers.
    fn shown(&self) -> Result<Value, ConfigError> {
        let keys: Keys =
            typed(&self.merged).map_err(|misfit: Misfit| ConfigError::value(misfit.sentence()))?;
        let set = |key: &str| self.merged.get(key).map_or(Value::Null, to_json);
        let mut shown: Map<String, Value> = KEYS.iter().map(|key| ((*key).to_owned(), set(key))).collect();
        for table in ["profiles", "plugins", "mcp_servers"] {
            let value = shown.entry(table).or_insert(Value::Null);
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
        }
        insert(&mut shown, "model_providers", &keys.model_providers)?;
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

    /// The flags as they are set, known or not, and the value in effect of those that clients can switch.
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
            let holds = |layer: &&Layer| {
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

impl Layer {
    /// `sha256:` and the hash of the values as JSON with sorted keys.
    pub fn version(&self) -> String {
        let hash = digest(&SHA256, self.to_json().to_string().as_bytes());
        hash.as_ref().iter().fold("sha256:".to_owned(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
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

/// `tools.web_search = true` says nothing, and shows as unset.
fn drop_bare_switch(tools: &mut Value) {
    if let Some(search) = tools.get_mut("web_search").filter(|value| value.is_boolean()) {
        *search = Value::Null;
    }
}

/// Keys come out sorted, whatever order the table has.
pub(crate) fn to_json(value: &Toml) -> Value {
    match value {
        Toml::String(text) => Value::String(text.clone()),
        Toml::Integer(number) => Value::from(*number),
        Toml::Float(number) => Value::from(*number),
        Toml::Boolean(value) => Value::Bool(*value),
        Toml::Datetime(time) => Value::String(time.to_string()),
        Toml::Array(values) => Value::Array(values.iter().map(to_json).collect()),
        Toml::Table(table) => {
            let sorted: BTreeMap<_, _> =
                table.iter().map(|(key, value)| (key.clone(), to_json(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
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

/// Whether the key means something to us or to the reference, at the top or in a profile.
pub(crate) fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || PROFILE_KEYS.contains(&key)
}

/// The keys that are always shown.
const KEYS: &[&str] = &[
    "agents",
    "allow_login_shell",
    "analytics",
    "approval_policy",
    "approvals_reviewer",
    "apps",
    "audio",
    "background_terminal_max_timeout",
    "chatgpt_base_url",
    "check_for_update_on_startup",
    "cli_auth_credentials_store",
    "commit_attribution",
    "compact_prompt",
    "default_permissions",
    "developer_instructions",
    "disable_paste_burst",
    "experimental_compact_prompt_file",
    "experimental_instructions_file",
    "experimental_realtime_start_instructions",
    "experimental_realtime_ws_backend_prompt",
    "experimental_realtime_ws_base_url",
    "experimental_realtime_ws_model",
    "experimental_realtime_ws_startup_context",
    "experimental_use_freeform_apply_patch",
    "experimental_use_unified_exec_tool",
    "features",
    "feedback",
    "file_opener",
    "forced_chatgpt_workspace_id",
    "forced_login_method",
    "ghost_snapshot",
    "hide_agent_reasoning",
    "history",
    "instructions",
    "js_repl_node_module_dirs",
    "js_repl_node_path",
    "log_dir",
    "mcp_oauth_callback_port",
    "mcp_oauth_callback_url",
    "mcp_oauth_credentials_store",
    "mcp_servers",
    "memories",
    "model",
    "model_auto_compact_token_limit",
    "model_catalog_json",
    "model_context_window",
    "model_instructions_file",
    "model_provider",
    "model_providers",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_supports_reasoning_summaries",
    "model_verbosity",
    "notice",
    "notify",
    "openai_base_url",
    "oss_provider",
    "otel",
    "permissions",
    "personality",
    "plan_mode_reasoning_effort",
    "plugins",
    "profile",
    "profiles",
    "project_doc_fallback_filenames",
    "project_doc_max_bytes",
    "project_root_markers",
    "projects",
    "realtime",
    "review_model",
    "sandbox_mode",
    "sandbox_workspace_write",
    "service_tier",
    "shell_environment_policy",
    "show_raw_agent_reasoning",
    "skills",
    "sqlite_home",
    "suppress_unstable_features_warning",
    "tool_output_token_limit",
    "tool_suggest",
    "tools",
    "tui",
    "web_search",
    "windows",
    "windows_wsl_setup_acknowledged",
    "zsh_path",
];

/// The keys that are always shown of a profile.
const PROFILE_KEYS: &[&str] = &[
    "analytics",
    "approval_policy",
    "approvals_reviewer",
    "chatgpt_base_url",
    "experimental_compact_prompt_file",
    "experimental_instructions_file",
    "experimental_use_freeform_apply_patch",
    "experimental_use_unified_exec_tool",
    "features",
    "include_apply_patch_tool",
    "js_repl_node_module_dirs",
    "js_repl_node_path",
    "model",
    "model_catalog_json",
    "model_instructions_file",
    "model_provider",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "oss_provider",
    "personality",
    "plan_mode_reasoning_effort",
    "sandbox_mode",
    "service_tier",
    "tools",
    "tools_view_image",
    "web_search",
    "windows",
    "zsh_path",
];
