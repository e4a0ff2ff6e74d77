//! The choices that a host makes for a thread when it starts it. A turn records them, so that they survive a restart.

use std::collections::HashSet;
use std::sync::Arc;

use engine::{Step, ToolKind};
use journal::ThreadHistory;
use protocol::{ModelCapabilities, ThreadStartParams, ToolSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::Registry;

use crate::HostSession;

/// Settings that no turn changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostChoices {
    /// Exactly these built-in tools. Unset: from the model and the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builtin_tools: Option<Vec<String>>,
    /// The checked tools and their approvers. Replaces `builtin_tools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_set: Option<Box<ToolSet>>,
    /// Ask a client about every call that allows it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub manual_tool_execution: bool,
    /// The model provider is run by the host, and known only to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_bridged: bool,
    /// The host carries the thread's model requests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_delegated: bool,
    /// The capabilities of the host's provider, if the host carries the requests. Agreed again each time the thread is
    /// opened.
    #[serde(skip)]
    pub capabilities: Option<Arc<ModelCapabilities>>,
}

/// The key in the recorded settings of a turn.
const KEY: &str = "host";

impl HostChoices {
    /// `Err` names the built-in tool that does not exist.
    pub fn of_start(params: &ThreadStartParams) -> Result<Self, String> {
        Ok(Self {
            builtin_tools: params.builtin_tools.as_deref().map(check_builtin_tools).transpose()?,
            tool_set: None,
            manual_tool_execution: params.manual_tool_execution,
            is_bridged: params.sdk_delegation.is_some(),
            is_delegated: false,
            capabilities: None,
        })
    }

    pub fn of(history: &ThreadHistory) -> Self {
        let Some(noted) = &history.host else { return Self::default() };
        protocol::from_value(noted).unwrap_or_else(|error| {
            tracing::error!(%error, "the host's choices for a thread cannot be read, so it gets no tools");
            Self {
                builtin_tools: Some(Vec::new()),
                tool_set: None,
                manual_tool_execution: true,
                is_bridged: true,
                is_delegated: true,
                capabilities: None,
            }
        })
    }

    /// Limits the built-in tools to those of a step.
    pub fn only(&self, step: &Step) -> Self {
        let mut choices = self.clone();
        if choices.tool_set.is_none() && choices.builtin_tools.is_none() {
            let offered =
                step.tools.iter().filter(|tool| tool.kind != ToolKind::Dynamic && tool.json.is_some());
            choices.builtin_tools = Some(offered.map(|tool| tool.name.clone()).collect());
        }
        choices
    }

    /// Adds what follows from the host's session, if there is one.
    pub fn carried_by(mut self, session: Option<&HostSession>) -> Self {
        self.is_delegated = session.is_some_and(HostSession::carries_requests);
        self.is_bridged &= !self.is_delegated;
        self.capabilities = session.and_then(|session| session.capabilities()).cloned().map(Arc::new);
        self
    }

    /// The capabilities of the host's provider, if the host carries the requests.
    pub fn capabilities(&self) -> Option<&ModelCapabilities> {
        self.capabilities.as_deref()
    }

    /// The field in the recorded settings of a turn. `None` if the host chose nothing.
    pub fn recorded(&self) -> Option<(&'static str, Arc<Value>)> {
        if *self == Self::default() {
            return None;
        }
        let choices = serde_json::to_value(self).ok()?;
        let is_empty = choices.as_object().is_none_or(|fields| fields.is_empty());
        (!is_empty).then(|| (KEY, Arc::new(choices)))
    }
}

/// Returns the names under which an offer lists them.
fn check_builtin_tools(names: &[String]) -> Result<Vec<String>, String> {
    let registry = Registry::builtin();
    let (mut seen, mut listed) = (HashSet::new(), Vec::new());
    for name in names {
        let problem = if name.trim().is_empty() {
            "builtin tool name must not be empty".to_owned()
        } else if name.trim() != name {
            format!("builtin tool name has leading/trailing whitespace: {name}")
        } else if !seen.insert(name) {
            format!("duplicate builtin tool name: {name}")
        } else if let Some(name) = registry.listed_name(name) {
            listed.push(name.to_owned());
            continue;
        } else {
            format!("unknown builtin tool name: {name}")
        };
        return Err(problem);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(names: &[&str], expected: Result<&[&str], &str>) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let found = check_builtin_tools(&owned(names));
        assert_eq!(found, expected.map(owned).map_err(str::to_owned));
    }

    #[test]
    fn names_of_tools_are_checked_one_by_one() {
        check(&[], Ok(&[]));
        check(&["exec_command", "write_stdin"], Ok(&["exec_command", "write_stdin"]));
        check(&["local_shell"], Ok(&["shell"]));
        check(&["update_plan", ""], Err("builtin tool name must not be empty"));
        check(&["  "], Err("builtin tool name must not be empty"));
        check(&["update_plan "], Err("builtin tool name has leading/trailing whitespace: update_plan "));
        check(&["shell", "update_plan", "shell"], Err("duplicate builtin tool name: shell"));
        check(&["fly"], Err("unknown builtin tool name: fly"));
        check(&["user_shell"], Err("unknown builtin tool name: user_shell"));
    }

    #[test]
    fn choices_are_recorded_and_read_and_none_are_recorded_as_nothing() {
        let recorded =
            |choices: &HostChoices| choices.recorded().map(|(name, value)| json!({ name: *value }));
        let choices = HostChoices { builtin_tools: Some(Vec::new()), ..HostChoices::default() };
        assert_eq!(recorded(&HostChoices::default()), None);
        assert_eq!(recorded(&choices), Some(json!({ "host": { "builtinTools": [] } })));
        let found = |host| HostChoices::of(&ThreadHistory { host, ..ThreadHistory::default() });
        assert_eq!(found(Some(json!({ "builtinTools": [] }))), choices);
        assert_eq!(found(None), HostChoices::default());
        assert!(found(Some(json!({ "builtinTools": 5 }))).manual_tool_execution);
        let tool_set = json!({ "mode": "replace", "builtin": { "allow": ["update_plan"] }, "dynamic": [] });
        let choices = found(Some(json!({ "toolSet": tool_set })));
        assert_eq!(recorded(&choices), Some(json!({ "host": { "toolSet": tool_set } })));
    }
}
