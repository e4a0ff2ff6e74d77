//! Limits project settings that the user has not reviewed: without a review of exactly these settings, none may exceed
//! what the user's own layers allow. Others are removed, listed, and offered for review.

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use policy::RuleFile;
use ring::digest::{Context, SHA256};
use toml::{Table, Value};

use crate::json::to_json;
use crate::{Feature, Home, SettingWarning, Trust};

/// Limit of settings in a warning.
const MAX_NAMED: usize = 12;
/// Limit of a displayed value.
const MAX_SHOWN: usize = 120;

/// Keys that are harmless in a project: the model and its texts, and limits of reading and display. The same in a
/// profile. A key in none of these lists needs a review, so new keys are restricted by default.
const HARMLESS: &[&str] = &[
    "model",
    "review_model",
    "model_context_window",
    "model_auto_compact_token_limit",
    "tool_output_token_limit",
    "model_reasoning_effort",
    "plan_mode_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "model_supports_reasoning_summaries",
    "service_tier",
    "personality",
    "instructions",
    "developer_instructions",
    "compact_prompt",
    "commit_attribution",
    "project_doc_max_bytes",
    "project_doc_fallback_filenames",
    "hide_agent_reasoning",
    "show_raw_agent_reasoning",
    "tools",
    "background_terminal_max_timeout",
    "history",
    "skills",
    "include_apply_patch_tool",
    "experimental_use_unified_exec_tool",
    "experimental_use_freeform_apply_patch",
];

/// Keys without effect here, or in a project.
const INERT: &[&str] = &["projects", "project_root_markers", "tui", "file_opener", "notice", "$schema"];

/// Keys with a file to read. Harmless if the file is in the project.
const FILES: &[&str] = &[
    "model_instructions_file",
    "experimental_instructions_file",
    "experimental_compact_prompt_file",
    "model_catalog_json",
];

/// Feature flags that change permissions, approvals or started programs. Switching them needs a review.
const GUARDED_FEATURES: &[&str] = &[
    "use_legacy_landlock",
    "exec_permission_approvals",
    "request_permissions_tool",
    "guardian_approval",
    "codex_hooks",
    "plugins",
    "apps",
    "skill_mcp_dependency_install",
    "web_search_request",
    "web_search_cached",
    "shell_zsh_fork",
    "js_repl",
    "code_mode",
    "code_mode_only",
    "memories",
];

/// Whether a dotted key may be set by anyone other than the user.
pub fn is_harmless_key(key: &str) -> bool {
    HARMLESS.contains(&key.split('.').next().unwrap_or_default())
}

/// The values of the user's own layers, and their folders.
#[derive(Debug)]
pub(crate) struct Own<'a> {
    pub(crate) settings: &'a Table,
    pub(crate) trust: Option<Trust>,
    pub(crate) root: &'a Path,
    pub(crate) home: &'a Home,
}

/// The settings in a project folder that exceed the user's own layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The `.codex` folder.
    pub settings: PathBuf,
    /// The root of the project.
    pub root: PathBuf,
    /// Digest of the content to be accepted.
    pub digest: String,
    /// `key = value`, one each. Empty if only rules need a review.
    pub asked: Vec<String>,
    /// The rule files of the folder, which may allow commands.
    pub rules: Vec<RuleFile>,
}

impl Review {
    pub(crate) fn how_to_accept(&self, home: &Home) -> String {
        format!(
            "To accept exactly this content, run `oarlock trust {}`, or add to {}:\n[projects.{:?}.reviewed]\n{:?} = {:?}",
            self.settings.parent().unwrap_or(&self.settings).display(),
            home.own_config_file().display(),
            self.root.to_string_lossy(),
            self.settings.to_string_lossy(),
            self.digest,
        )
    }

    /// None if no setting was removed.
    pub(crate) fn warning(&self, home: &Home) -> Option<SettingWarning> {
        let more = self.asked.len().saturating_sub(MAX_NAMED);
        let mut lines: Vec<String> = self.asked.iter().take(MAX_NAMED).cloned().collect();
        lines.extend((more > 0).then(|| format!("and {more} more")));
        lines.push(self.how_to_accept(home));
        let summary = format!(
            "{} asks for more than your own configuration allows; these settings are not used.",
            self.settings.join("config.toml").display()
        );
        let warning = SettingWarning::with_details(summary, lines.join("\n"));
        let path = Some(self.settings.join("config.toml"));
        (!self.asked.is_empty()).then_some(SettingWarning { path, ..warning })
    }
}

/// Digest of a settings file with its rule files and hooks.
pub(crate) fn digest(text: Option<&str>, rules: &[RuleFile], hooks: Option<&str>) -> String {
    let mut context = Context::new(&SHA256);
    let mut part = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_le_bytes());
        context.update(bytes);
    };
    part(text.unwrap_or_default().as_bytes());
    for rule in rules {
        part(rule.path.file_name().unwrap_or_default().as_encoded_bytes());
        part(rule.text.as_deref().unwrap_or_default().as_bytes());
    }
    // Without hooks it equals the digest of earlier releases.
    if let Some(hooks) = hooks {
        part(b"hooks.json");
        part(hooks.as_bytes());
    }
    format!("sha256:{}", HEXLOWER.encode(context.finish().as_ref()))
}

/// A value on one line, for a review.
pub(crate) fn shorten(text: &str) -> String {
    let line = format!("{text:?}");
    let shown: String = line.chars().take(MAX_SHOWN).collect();
    let cut = if shown.len() < line.len() { "…" } else { "" };
    format!("{shown}{cut}")
}

/// Removes settings that exceed the user's from a project's table, and lists them.
pub(crate) fn restrict(table: &mut Table, own: &Own<'_>) -> Vec<String> {
    let mut asked = Vec::new();
    restrict_in(table, "", own.settings, own, &mut asked);
    asked
}

/// `below` are the values of the user's own layers in the same table.
fn restrict_in(table: &mut Table, prefix: &str, below: &Table, own: &Own<'_>, asked: &mut Vec<String>) {
    let keys: Vec<String> = table.keys().cloned().collect();
    for key in keys {
        let Some(value) = table.get_mut(&key) else { continue };
        let name = format!("{prefix}{key}");
        match (key.as_str(), &mut *value) {
            ("profiles", Value::Table(profiles)) if prefix.is_empty() => {
                for (profile, value) in profiles.iter_mut() {
                    let below = below.get("profiles").and_then(|profiles| profiles.get(profile));
                    let below = below.and_then(Value::as_table).cloned().unwrap_or_default();
                    let prefix = format!("profiles.{profile}.");
                    if let Value::Table(inner) = value {
                        restrict_in(inner, &prefix, &below, own, asked);
                    }
                }
            }
            ("sandbox_workspace_write" | "features" | "agents", Value::Table(inner)) => {
                let below = below.get(&key).or_else(|| own.settings.get(&key));
                let below = below.and_then(Value::as_table).cloned().unwrap_or_default();
                inner.retain(|inner_key, value| {
                    let is_kept = match key.as_str() {
                        "features" => is_kept_feature(inner_key, value, &below),
                        "agents" => is_kept_role(value, own),
                        _ => is_kept_workspace_key(inner_key, value, below.get(inner_key)),
                    };
                    if !is_kept {
                        name_leaves(&format!("{name}.{inner_key}"), value, asked);
                    }
                    is_kept
                });
            }
            (_, value) => {
                let below = below.get(&key).or_else(|| own.settings.get(&key));
                if !is_kept(&key, value, below, own) {
                    name_leaves(&name, value, asked);
                    table.remove(&key);
                }
            }
        }
    }
}

fn is_kept(key: &str, value: &Value, below: Option<&Value>, own: &Own<'_>) -> bool {
    if below == Some(value) || HARMLESS.contains(&key) || INERT.contains(&key) {
        return true;
    }
    let text = value.as_str();
    let below_text = below.and_then(Value::as_str);
    match key {
        key if FILES.contains(&key) => is_in_project(text, own),
        "approval_policy" => {
            // The default, unless the user does not trust the project.
            let usual = if own.trust == Some(Trust::Untrusted) { "untrusted" } else { "on-request" };
            text == Some("untrusted") || below.is_none() && text == Some(usual)
        }
        "approvals_reviewer" => text == Some("user"),
        "sandbox_mode" => {
            let usual = if own.trust.is_some() { "workspace-write" } else { "read-only" };
            openness(text) <= openness(below_text.or(Some(usual)))
        }
        "allow_login_shell" => {
            value.as_bool() == Some(false) || below.is_none() && value.as_bool() == Some(true)
        }
        "web_search" => text == Some("disabled") || below.is_none() && text == Some("cached"),
        _ => false,
    }
}

/// An unknown mode counts as fully open; it is refused later if it is used.
fn openness(mode: Option<&str>) -> u8 {
    match mode {
        Some("read-only") => 0,
        Some("workspace-write") => 1,
        _ => 2,
    }
}

fn is_kept_workspace_key(key: &str, value: &Value, below: Option<&Value>) -> bool {
    let was_on = below.and_then(Value::as_bool).unwrap_or(false);
    match key {
        "network_access" => value.as_bool() == Some(false) || was_on,
        "exclude_slash_tmp" | "exclude_tmpdir_env_var" => value.as_bool() == Some(true) || !was_on,
        "writable_roots" => {
            let known = below.and_then(Value::as_array);
            let is_known = |root: &Value| known.is_some_and(|known| known.contains(root));
            value.as_array().is_some_and(|roots| roots.iter().all(is_known))
        }
        _ => false,
    }
}

fn is_kept_feature(key: &str, value: &Value, below: &Table) -> bool {
    let Some(feature) = Feature::find(key) else { return true };
    let is_guarded = GUARDED_FEATURES.contains(&feature.key);
    let was_on = below.get(key).and_then(Value::as_bool).unwrap_or(feature.default_enabled);
    !is_guarded || value.as_bool() == Some(was_on)
}

/// A number, or a role whose file is in the project. A role's file cannot change permissions.
fn is_kept_role(value: &Value, own: &Own<'_>) -> bool {
    match value.get("config_file") {
        Some(file) => is_in_project(file.as_str(), own),
        None => true,
    }
}

/// Keeps only a role's harmless keys, and those that name files of the project. A profile is removed, because it could
/// name other files and overrides these keys.
pub(crate) fn restrict_role(table: &mut Table, root: &Path, home: &Home) {
    let own = Own { settings: &Table::new(), trust: None, root, home };
    table.retain(|key, value| {
        HARMLESS.contains(&key) || FILES.contains(&key) && is_in_project(value.as_str(), &own)
    });
}

/// Checked by path; links out of the project are refused on reading.
fn is_in_project(path: Option<&str>, own: &Own<'_>) -> bool {
    let path = Path::new(path.unwrap_or_default());
    let is_ours = [own.home.reading(), own.home.state()].iter().any(|home| path.starts_with(home));
    path.starts_with(own.root) && !is_ours
}

/// Lists every value below a key, as written in a file.
fn name_leaves(name: &str, value: &Value, asked: &mut Vec<String>) {
    match value {
        Value::Table(table) if !table.is_empty() => {
            for (key, value) in table {
                name_leaves(&format!("{name}.{key}"), value, asked);
            }
        }
        value => {
            let text = to_json(value).to_string();
            let shown: String = text.chars().take(MAX_SHOWN).collect();
            let cut = if shown.len() < text.len() { "…" } else { "" };
            asked.push(format!("{name} = {shown}{cut}"));
        }
    }
}
