//! The keys that are known to us or to the reference, with or without effect here.

use crate::features::{FEATURES, Feature};

/// Whether the key is known, at the top or in a profile.
pub(crate) fn is_known(key: &str) -> bool {
    KEYS.contains(&key) || PROFILE_KEYS.contains(&key) || OURS.contains(&key)
}

/// The keys that a table may have. None if any are allowed, or if parsing refuses unknown ones.
pub(crate) fn known_in(path: &[String]) -> Option<Vec<&'static str>> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        [] => Some(KEYS.iter().chain(OURS).chain(UNSHOWN).copied().collect()),
        ["features"] | ["profiles", _, "features"] => Some(feature_names()),
        ["profiles", _] => Some(PROFILE_KEYS.to_vec()),
        ["profiles", _, rest @ ..] => inner(rest),
        rest => inner(rest),
    }
}

/// The names under `[features]`, older ones included.
fn feature_names() -> Vec<&'static str> {
    FEATURES.iter().map(|feature| feature.key).chain(Feature::older_names()).collect()
}

fn inner(path: &[&str]) -> Option<Vec<&'static str>> {
    let fits = |pattern: &[&str]| {
        pattern.len() == path.len()
            && pattern.iter().zip(path).all(|(pattern, key)| *pattern == "*" || pattern == key)
    };
    TABLES.iter().find(|(pattern, _)| fits(pattern)).map(|(_, keys)| keys.to_vec())
}

/// The keys of nested tables, by their path; `*` is any name.
const TABLES: &[(&[&str], &[&str])] = &[
    (&["agents", "*"], &["config_file", "description", "nickname_candidates"]),
    (&["analytics"], &["enabled"]),
    (&["feedback"], &["enabled"]),
    (&["history"], &["max_bytes", "persistence"]),
    (&["host"], HOST_KEYS),
    (&["host", "budget"], &["day", "task"]),
    (&["host", "budget", "*"], &["tokens", "usd"]),
    (&["mcp_servers", "*"], MCP_SERVER_KEYS),
    (&["mcp_servers", "*", "tools", "*"], &["approval_mode"]),
    (&["memories"], MEMORY_KEYS),
    (&["projects", "*"], &["reviewed", "trust_level"]),
    (
        &["sandbox_workspace_write"],
        &["exclude_slash_tmp", "exclude_tmpdir_env_var", "network_access", "writable_roots"],
    ),
    (
        &["shell_environment_policy"],
        &["exclude", "experimental_use_profile", "ignore_default_excludes", "include_only", "inherit", "set"],
    ),
    (&["skills"], &["bundled", "config"]),
    (&["skills", "bundled"], &["enabled"]),
    (&["skills", "config"], &["enabled", "name", "path"]),
    (&["tools"], &["view_image", "web_search"]),
];

const HOST_KEYS: &[&str] = &[
    "audit_retention_days",
    "budget",
    "idle_after",
    "max_running",
    "models",
    "notify",
    "notify_after",
    "peer_address",
    "peer_listen",
    "peer_secret",
    "requests_per_minute",
    "retention_days",
    "suspend_after",
    "tokens",
];

const MCP_SERVER_KEYS: &[&str] = &[
    "args",
    "bearer_token",
    "bearer_token_env_var",
    "command",
    "cwd",
    "disabled_tools",
    "enabled",
    "enabled_tools",
    "env",
    "env_http_headers",
    "env_vars",
    "http_headers",
    "name",
    "oauth_resource",
    "required",
    "scopes",
    "startup_timeout_ms",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "tools",
    "type",
    "url",
];

const MEMORY_KEYS: &[&str] = &[
    "consolidation_model",
    "extract_model",
    "generate_memories",
    "max_raw_memories_for_consolidation",
    "max_rollout_age_days",
    "max_rollouts_per_startup",
    "max_unused_days",
    "min_rollout_idle_hours",
    "no_memories_if_mcp_or_web_search",
    "use_memories",
];

/// Our own keys, unknown to other programs that read the file. Shown if they are set.
pub(crate) const OURS: &[&str] = &["host", "placements", "prices", "sandbox", "strict_config"];

/// Known keys whose values are not shown to clients.
const UNSHOWN: &[&str] = &["hooks"];

/// Keys without effect unless a feature is on.
pub(crate) const OF_FEATURES: &[(&str, &str)] = &[
    ("agents", "multi_agent"),
    ("apps", "apps"),
    ("hooks", "codex_hooks"),
    ("js_repl_node_path", "js_repl"),
    ("memories", "memories"),
    ("plugins", "plugins"),
    ("realtime", "realtime_conversation"),
    ("tool_suggest", "tool_suggest"),
];

/// Keys of the reference for features that do not exist here.
pub(crate) const ABSENT: &[&str] = &[
    "analytics",
    "audio",
    "check_for_update_on_startup",
    "cli_auth_credentials_store",
    "commit_attribution",
    "disable_paste_burst",
    "experimental_realtime_start_instructions",
    "experimental_realtime_ws_startup_context",
    "file_opener",
    "ghost_snapshot",
    "history",
    "js_repl_node_module_dirs",
    "log_dir",
    "mcp_oauth_callback_url",
    "mcp_oauth_credentials_store",
    "otel",
    "show_raw_agent_reasoning",
    "sqlite_home",
    "tui",
    "windows",
    "windows_wsl_setup_acknowledged",
    "zsh_path",
];

/// The keys that are always shown.
pub(crate) const KEYS: &[&str] = &[
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
pub(crate) const PROFILE_KEYS: &[&str] = &[
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
