//! Settings from a role's file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::AgentRole;
use serde_json::Value;
use support::blocking;

use crate::error::RuntimeError;
use crate::open::config_request::{ConfigRequest, settings_of};
use crate::state::RuntimeState;
use driver::ThreadSettings;

/// The parent's settings with those of the role's file. A role does not change permissions.
pub(super) async fn with_role(
    state: &Arc<RuntimeState>,
    settings: ThreadSettings,
    role: &AgentRole,
) -> Result<ThreadSettings, RuntimeError> {
    if role.config_file.is_none() {
        return Ok(settings);
    }
    let (state, role, cwd) = (state.clone(), role.clone(), settings.cwd.clone());
    let read = move || -> Result<(ThreadSettings, BTreeMap<String, Value>), RuntimeError> {
        let keys = state.loader.keys_of_role(&role);
        let keys = keys.map_err(|error| RuntimeError::Config(format!("config_file of the role: {error}")))?;
        let config = ConfigRequest::of_child(&cwd, Some(keys.clone())).load(&state.loader)?;
        Ok((settings_of(&config, &state.catalogue), keys))
    };
    let (of_role, keys) = blocking(read).await??;
    Ok(merged(settings, of_role, &keys.keys().map(String::as_str).collect()))
}

fn merged(mut settings: ThreadSettings, of_role: ThreadSettings, named: &BTreeSet<&str>) -> ThreadSettings {
    if named.contains("model") {
        settings.model = of_role.model;
    }
    if named.contains("model_reasoning_effort") {
        settings.effort = of_role.effort;
    }
    if named.contains("model_reasoning_summary") {
        settings.summary = of_role.summary;
    }
    if named.contains("model_verbosity") {
        settings.verbosity = of_role.verbosity;
    }
    if named.contains("personality") {
        settings.personality = of_role.personality;
    }
    if named.contains("service_tier") {
        settings.service_tier = of_role.service_tier;
    }
    if named.contains("developer_instructions") {
        settings.developer_instructions = of_role.developer_instructions;
    }
    if named.contains("model_instructions_file") {
        settings.base_instructions = of_role.base_instructions;
    }
    settings
}
