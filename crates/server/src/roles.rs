//! Who may do what at a host, by the roles in the table of methods.

use protocol::CLIENT_REQUESTS;
pub use protocol::ClientRole;
use runtime::config::PATH_KEYS;
use serde_json::{Value, json};

use crate::wire_error::WireError;

/// The least role that may use the method. An unknown one is for nobody but an admin.
pub(crate) fn role_of(method: &str) -> ClientRole {
    let found = CLIENT_REQUESTS.iter().find(|row| row.name == method);
    found.and_then(|row| row.role).unwrap_or(ClientRole::Admin)
}

pub(crate) fn check_role(role: ClientRole, method: &str) -> Result<(), WireError> {
    let needed = role_of(method);
    if role >= needed {
        return Ok(());
    }
    Err(forbidden(format!("{method} is for {}, and this connection is {}", needed.word(), role.word())))
}

pub(crate) fn forbidden(message: String) -> WireError {
    WireError::invalid_request(message).with_data(json!({ "code": "forbidden" }))
}

/// The beginnings of methods that run commands and use files where the host itself is.
const OF_THE_MACHINE: &[&str] =
    &["command/exec", "externalAgentConfig/", "fs/", "fuzzyFileSearch", "gitDiffToRemote", "plugin/read"];

/// Methods that read folders of the host's machine when one of these fields names any.
const NAMING_FOLDERS: &[(&str, &[&str])] = &[
    ("config/read", &["cwd"]),
    ("hooks/list", &["cwds"]),
    ("plugin/list", &["cwds"]),
    ("skills/list", &["cwds", "perCwdExtraUserRoots"]),
];

fn is_of_machine(method: &str, params: Option<&str>) -> bool {
    if OF_THE_MACHINE.iter().any(|beginning| method.starts_with(beginning)) {
        return true;
    }
    let Some((_, fields)) = NAMING_FOLDERS.iter().find(|(name, _)| *name == method) else { return false };
    // Params that are no JSON are refused where they are read.
    let params: Value = params.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    fields.iter().any(|field| params.get(field).is_some_and(|value| !is_empty(value)))
}

/// Where tasks run in places of their own, the host's machine is out of reach for whoever comes over the network.
pub(crate) fn check_machine(
    is_local: bool,
    method: &str,
    params: Option<&str>,
    default_placement: &str,
) -> Result<(), WireError> {
    if is_local || default_placement == "local" || !is_of_machine(method, params) {
        return Ok(());
    }
    Err(forbidden(format!(
        "{method} is carried out on the host's machine, and this host's tasks run in {default_placement}; use a task there"
    )))
}

/// Keys of `config` that say how a thread works. Every other one may make the host's machine run programs, read files,
/// send what it has elsewhere or lend its keys.
const THREAD_KEYS: &[&str] = &[
    "agents",
    "approval_policy",
    "approvals_reviewer",
    "commit_attribution",
    "compact_prompt",
    "developer_instructions",
    "experimental_use_freeform_apply_patch",
    "experimental_use_unified_exec_tool",
    "features",
    "hide_agent_reasoning",
    "include_apply_patch_tool",
    "instructions",
    "memories",
    "model",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_provider",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_supports_reasoning_summaries",
    "model_verbosity",
    "personality",
    "plan_mode_reasoning_effort",
    "project_doc_max_bytes",
    "review_model",
    "sandbox_mode",
    "sandbox_workspace_write",
    "service_tier",
    "show_raw_agent_reasoning",
    "skills",
    "strict_config",
    "suppress_unstable_features_warning",
    "tool_output_token_limit",
    "tools",
    "web_search",
];

/// Of these keys, the one whose paths say what commands may write to, and name no file that is read.
const WRITABLE_ROOTS: &str = "sandbox_workspace_write";

/// For connections that come over the network.
pub(crate) fn check_config<'a>(
    config: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> Result<(), WireError> {
    let reaches = |(key, value): &(&'a String, &'a Value)| {
        let parts: Vec<&str> = key.split('.').collect();
        let is_quoted = key.contains(['"', '\'']);
        is_quoted
            || !parts.first().is_some_and(|first| THREAD_KEYS.contains(first))
            || names_file(&parts, value)
    };
    match config.into_iter().find(reaches) {
        None => Ok(()),
        Some((key, _)) => Err(forbidden(format!(
            "config.{key}: only connections on the host's own machine may set it; put it into the host's configuration"
        ))),
    }
}

/// Whether a value names a file that the host's machine would read.
fn names_file(key: &[&str], value: &Value) -> bool {
    let patterns = PATH_KEYS.iter().filter(|pattern| pattern.first() != Some(&WRITABLE_ROOTS));
    patterns.into_iter().any(|pattern| is_at(key, value, pattern))
}

/// Whether there is anything at the place that a pattern names: first along the key, then inside the value.
fn is_at(key: &[&str], value: &Value, pattern: &[&str]) -> bool {
    let Some((part, pattern)) = pattern.split_first() else { return key.is_empty() && !value.is_null() };
    let fits = |name: &str| *part == "*" || *part == name;
    match (key.split_first(), value) {
        (Some((name, key)), _) => fits(name) && is_at(key, value, pattern),
        (None, Value::Object(table)) => {
            table.iter().any(|(name, value)| fits(name) && is_at(&[], value, pattern))
        }
        (None, Value::Array(values)) => *part == "*" && values.iter().any(|value| is_at(&[], value, pattern)),
        (None, _) => false,
    }
}

/// Following is for viewers; changing how the thread runs, or running its tools, is not.
pub(crate) fn check_follow(role: ClientRole, params: &Value) -> Result<(), WireError> {
    const READS: &[&str] = &["threadId", "excludeTurns", "after", "includeOpenItems", "resync"];
    if role >= ClientRole::Operator {
        return Ok(());
    }
    let is_set = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let fields = params.as_object().into_iter().flatten();
    let changed =
        fields.filter(|(name, value)| !READS.contains(&name.as_str()) && is_set(value)).map(|(name, _)| name);
    match changed.into_iter().next() {
        None => Ok(()),
        Some(field) => {
            Err(forbidden(format!("{field}: a {} follows the thread as it is; leave it out", role.word())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The whole table, as each role meets it.
    #[test]
    fn each_role_may_do_its_part_of_the_table_and_no_more() {
        let allowed = |role: ClientRole| {
            CLIENT_REQUESTS.iter().filter(|row| check_role(role, row.name).is_ok()).count()
        };
        let counts =
            [ClientRole::Viewer, ClientRole::Approver, ClientRole::Operator, ClientRole::Admin].map(allowed);
        assert!(counts.is_sorted_by(|less, more| less < more), "{counts:?}");
        assert_eq!(counts[3], CLIENT_REQUESTS.len());
        for row in CLIENT_REQUESTS {
            for role in [ClientRole::Viewer, ClientRole::Approver, ClientRole::Operator] {
                if let Err(error) = check_role(role, row.name) {
                    assert!(role < role_of(row.name), "{}", row.name);
                    assert_eq!(error.data, Some(json!({ "code": "forbidden" })), "{}", row.name);
                }
            }
            let changes = ["write", "start", "remove", "exec", "install", "delete", "set"];
            if changes.iter().any(|word| row.name.to_lowercase().ends_with(word)) {
                assert!(role_of(row.name) >= ClientRole::Operator, "{} changes something", row.name);
            }
        }
    }

    #[test]
    fn the_network_may_not_set_what_runs_on_the_host() {
        let set = |key: &str, value: Value| {
            let config = BTreeMap::from([("model".to_owned(), json!("m")), (key.to_owned(), value)]);
            check_config(&config)
        };
        for (key, value) in [
            ("features.memories", json!(true)),
            ("tools.web", json!(true)),
            ("agents", json!({"x": {"description": "d"}})),
            ("skills.config", json!([{"name": "n", "enabled": false}])),
            ("sandbox_workspace_write.writable_roots", json!(["/srv/data"])),
        ] {
            assert!(set(key, value).is_ok(), "{key}");
        }
        for (key, value) in [
            ("agents.x.config_file", json!("/etc/passwd")),
            ("agents.x", json!({"config_file": "/etc/passwd"})),
            ("agents", json!({"x": {"config_file": "/etc/passwd"}})),
            ("agents.\"x.y\".config_file", json!("/etc/passwd")),
            ("skills.config", json!([{"name": "n"}, {"path": "/etc"}])),
            ("skills", json!({"config": [{"path": "/etc"}]})),
        ] {
            let refused = set(key, value).expect_err(key);
            assert_eq!(refused.data, Some(json!({ "code": "forbidden" })), "{key}");
        }
        for key in [
            "model_providers.x.base_url",
            "placements",
            "host.notify",
            "mcp_servers.a.command",
            "prices",
            "notify",
            "model_instructions_file",
            "profiles.x.model_instructions_file",
            "openai_base_url",
            "hooks",
            "otel.exporter",
            "\"mcp_servers\".a.command",
        ] {
            let refused = set(key, json!("x")).expect_err(key);
            assert!(refused.message.contains(key), "{refused:?}");
        }
    }

    #[test]
    fn the_network_does_not_reach_the_machine_of_a_host_whose_tasks_run_elsewhere() {
        let (folder, folders) = (r#"{"cwd": "/etc"}"#, r#"{"cwds": ["/etc"]}"#);
        for (method, params) in [
            ("command/exec", None),
            ("command/exec/write", None),
            ("fs/readFile", None),
            ("fuzzyFileSearch/sessionStart", None),
            ("plugin/read", None),
            ("externalAgentConfig/detect", None),
            ("config/read", Some(folder)),
            ("skills/list", Some(folders)),
            ("skills/list", Some(r#"{"perCwdExtraUserRoots": [{}]}"#)),
            ("hooks/list", Some(folders)),
            ("plugin/list", Some(folders)),
        ] {
            let refused = check_machine(false, method, params, "docker").expect_err(method);
            assert_eq!(refused.data, Some(json!({ "code": "forbidden" })));
            assert!(check_machine(false, method, params, "local").is_ok(), "{method}");
            assert!(check_machine(true, method, params, "docker").is_ok(), "{method}");
        }
        for (method, params) in [
            ("thread/start", Some(folder)),
            ("skills/list", None),
            ("skills/list", Some(r#"{"cwds": []}"#)),
            ("config/read", Some(r#"{"cwd": null}"#)),
        ] {
            assert!(check_machine(false, method, params, "docker").is_ok(), "{method}");
        }
    }

    /// Whoever lets a host answer one more method about its machine says which kind it is.
    #[test]
    fn every_method_that_the_host_answers_itself_is_sorted() {
        const TELLS_NO_FILES: &[&str] = &[
            "model/list",
            "collaborationMode/list",
            "app/list",
            "experimentalFeature/list",
            "configRequirements/read",
            "account/read",
            "account/rateLimits/read",
            "getAuthStatus",
            "mcpServerStatus/list",
            "mock/experimentalMethod",
        ];
        for method in crate::host_face::LOCAL {
            let names_folders = NAMING_FOLDERS.iter().any(|(name, _)| name == method);
            let kinds = [is_of_machine(method, None), names_folders, TELLS_NO_FILES.contains(method)];
            assert_eq!(kinds.iter().filter(|is_kind| **is_kind).count(), 1, "{method}: {kinds:?}");
        }
    }

    #[test]
    fn a_viewer_follows_and_changes_nothing() {
        let follow = json!({"threadId": "t", "excludeTurns": true, "includeOpenItems": true, "model": null, "persistExtendedHistory": false});
        assert!(check_follow(ClientRole::Viewer, &follow).is_ok());
        for field in
            ["model", "delegation", "provides", "config", "toolSet", "serviceTier", "persistExtendedHistory"]
        {
            let mut params = follow.clone();
            params[field] = json!({});
            assert!(check_follow(ClientRole::Viewer, &params).is_err(), "{field}");
            assert!(check_follow(ClientRole::Operator, &params).is_ok());
        }
    }
}
