//! The kinds of agents there are: three that come with the program, and those the user describes.

use std::collections::{BTreeMap, BTreeSet};

use config::AgentRole;

use crate::error::RuntimeError;
use crate::load::Wishes;
use crate::reading::off_worker;
use crate::runtime::Runtime;
use crate::settings::ThreadSettings;

/// With what they are for.
const BUILT_IN: [(&str, &str); 3] = [
    ("default", "for anything."),
    ("explorer", "to find something out about the code and report it, without changing anything."),
    ("worker", "to carry out a well-defined change. Say which files are its own."),
];

/// Every kind with what it is for. The user's own words win.
pub(crate) fn role_lines(roles: &BTreeMap<String, AgentRole>) -> Vec<(String, String)> {
    let built_in = BUILT_IN.iter().filter(|(name, _)| !roles.contains_key(*name));
    let mut lines: Vec<(String, String)> =
        built_in.map(|(name, about)| ((*name).to_owned(), (*about).to_owned())).collect();
    lines.extend(roles.iter().map(|(name, role)| {
        let about = role.description.clone().unwrap_or_else(|| "described by the user.".to_owned());
        (name.clone(), about)
    }));
    lines
}

/// The role of that name; `Some(None)` for one that adds nothing.
pub(super) fn find<'a>(
    roles: &'a BTreeMap<String, AgentRole>,
    name: Option<&str>,
) -> Result<Option<&'a AgentRole>, String> {
    let name = name.unwrap_or("default");
    match roles.get(name) {
        Some(role) => Ok(Some(role)),
        None if BUILT_IN.iter().any(|(known, _)| *known == name) => Ok(None),
        None => {
            let known: Vec<String> = role_lines(roles).into_iter().map(|(name, _)| name).collect();
            Err(format!("unknown agent_type '{name}': there are {}", known.join(", ")))
        }
    }
}

impl Runtime {
    /// What a role's file says about its agents, on top of what they have from their parent. What they may do is not
    /// for a role to say.
    pub(super) fn apply_role(
        &self,
        settings: &mut ThreadSettings,
        role: &AgentRole,
    ) -> Result<(), RuntimeError> {
        if role.config_file.is_none() {
            return Ok(());
        }
        let keys = off_worker(|| self.inner.loader.keys_of_role(role));
        let keys = keys.map_err(|error| RuntimeError::Config(format!("config_file of the role: {error}")))?;
        let config = self.load(&Wishes::of_child(&settings.cwd, Some(&keys)))?;
        let of_role = self.settings(&config);
        let named: BTreeSet<&str> = keys.keys().map(String::as_str).collect();
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
        Ok(())
    }
}
