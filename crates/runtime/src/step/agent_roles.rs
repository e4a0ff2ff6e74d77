//! The roles of agents: three built-in ones, and those of the user.

use std::collections::BTreeMap;

use config::AgentRole;

/// Names and descriptions.
const BUILT_IN: [(&str, &str); 3] = [
    ("default", "for anything."),
    ("explorer", "to find something out about the code and report it, without changing anything."),
    ("worker", "to carry out a well-defined change. Say which files are its own."),
];

/// Every role with its description. The user's description overrides.
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

/// The role of that name; `Some(None)` for one without settings.
pub(crate) fn find_role<'a>(
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
