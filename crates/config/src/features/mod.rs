//! The feature flags: their table, and which are enabled.

mod runtime;

use std::collections::BTreeMap;

use protocol::{ExperimentalFeature, ExperimentalFeatureStage as Stage};

pub(crate) use runtime::RuntimeFeatures;

/// One flag. The texts are set for `beta` flags only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Its key under `[features]`.
    pub key: &'static str,
    pub stage: Stage,
    pub default_enabled: bool,
    pub display_name: Option<&'static str>,
    pub description: Option<&'static str>,
    pub announcement: Option<&'static str>,
}

impl Feature {
    const fn on(key: &'static str, stage: Stage) -> Self {
        Self { default_enabled: true, ..Self::off(key, stage) }
    }

    const fn off(key: &'static str, stage: Stage) -> Self {
        Self { key, stage, default_enabled: false, display_name: None, description: None, announcement: None }
    }

    /// Off by default. Without an announcement if the text is empty.
    const fn beta(
        key: &'static str,
        display_name: &'static str,
        description: &'static str,
        announcement: &'static str,
    ) -> Self {
        Self {
            display_name: Some(display_name),
            description: Some(description),
            announcement: Some(announcement),
            ..Self::off(key, Stage::Beta)
        }
    }

    /// The flag with this key or older name.
    pub fn find(key: &str) -> Option<&'static Self> {
        let key = Self::newer_name(key).unwrap_or(key);
        FEATURES.iter().find(|feature| feature.key == key)
    }

    /// Older names that still work.
    pub(crate) fn older_names() -> impl Iterator<Item = &'static str> {
        ALIASES.iter().map(|(alias, _)| *alias)
    }

    /// The current name of a flag with this older name.
    pub(crate) fn newer_name(key: &str) -> Option<&'static str> {
        ALIASES.iter().find(|(alias, _)| *alias == key).map(|(_, key)| *key)
    }
}

/// All flags, in the order of clients' lists.
pub const FEATURES: &[Feature] = &[
    Feature::off("undo", Stage::Stable),
    Feature::on("shell_tool", Stage::Stable),
    Feature::on("unified_exec", Stage::Stable),
    Feature::off("shell_zsh_fork", Stage::UnderDevelopment),
    Feature::on("shell_snapshot", Stage::Stable),
    Feature::beta(
        "js_repl",
        "JavaScript prompt",
        "Gives the agent a JavaScript prompt that keeps its state between calls. Node 18 or newer must be installed.",
        "A JavaScript prompt is available to try. Threads started after it is switched on can use it.",
    ),
    Feature::off("code_mode", Stage::UnderDevelopment),
    Feature::off("code_mode_only", Stage::UnderDevelopment),
    Feature::off("js_repl_tools_only", Stage::UnderDevelopment),
    Feature::off("web_search_request", Stage::Deprecated),
    Feature::off("web_search_cached", Stage::Deprecated),
    Feature::off("search_tool", Stage::Removed),
    Feature::off("codex_git_commit", Stage::UnderDevelopment),
    Feature::off("runtime_metrics", Stage::UnderDevelopment),
    Feature::on("sqlite", Stage::Removed),
    Feature::off("memories", Stage::UnderDevelopment),
    Feature::off("child_agents_md", Stage::UnderDevelopment),
    Feature::off("image_detail_original", Stage::UnderDevelopment),
    Feature::off("apply_patch_freeform", Stage::UnderDevelopment),
    Feature::off("exec_permission_approvals", Stage::UnderDevelopment),
    Feature::off("codex_hooks", Stage::UnderDevelopment),
    Feature::off("request_permissions_tool", Stage::UnderDevelopment),
    Feature::off("use_linux_sandbox_bwrap", Stage::Removed),
    Feature::off("use_legacy_landlock", Stage::Stable),
    Feature::off("request_rule", Stage::Removed),
    Feature::off("experimental_windows_sandbox", Stage::Removed),
    Feature::off("elevated_windows_sandbox", Stage::Removed),
    Feature::off("remote_models", Stage::Removed),
    Feature::on("enable_request_compression", Stage::Stable),
    Feature::on("multi_agent", Stage::Stable),
    Feature::off("multi_agent_v2", Stage::UnderDevelopment),
    Feature::off("enable_fanout", Stage::UnderDevelopment),
    Feature::on("apps", Stage::Stable),
    Feature::off("tool_search", Stage::UnderDevelopment),
    Feature::on("tool_suggest", Stage::Stable),
    Feature::on("plugins", Stage::Stable),
    Feature::off("image_generation", Stage::UnderDevelopment),
    Feature::on("skill_mcp_dependency_install", Stage::Stable),
    Feature::off("skill_env_var_dependency_prompt", Stage::UnderDevelopment),
    Feature::on("steer", Stage::Removed),
    Feature::off("default_mode_request_user_input", Stage::UnderDevelopment),
    Feature::beta(
        "guardian_approval",
        "Reviewed approvals",
        "Has no effect here: the setting `approvals_reviewer` alone says who answers approval requests.",
        "",
    ),
    Feature::on("collaboration_modes", Stage::Removed),
    Feature::on("tool_call_mcp_elicitation", Stage::Stable),
    Feature::on("personality", Stage::Stable),
    Feature::off("artifact", Stage::UnderDevelopment),
    Feature::on("fast_mode", Stage::Stable),
    Feature::off("voice_transcription", Stage::UnderDevelopment),
    Feature::off("realtime_conversation", Stage::UnderDevelopment),
    Feature::on("tui_app_server", Stage::Stable),
    Feature::beta(
        "prevent_idle_sleep",
        "Stay awake while working",
        "Has no effect here: this program does not keep the computer awake.",
        "",
    ),
    Feature::off("responses_websockets", Stage::Removed),
    Feature::off("responses_websockets_v2", Stage::Removed),
];

/// Older names that still work.
const ALIASES: &[(&str, &str)] = &[
    ("connectors", "apps"),
    ("collab", "multi_agent"),
    ("memory_tool", "memories"),
    ("request_permissions", "exec_permission_approvals"),
    ("experimental_use_unified_exec_tool", "unified_exec"),
    ("include_apply_patch_tool", "apply_patch_freeform"),
    ("experimental_use_freeform_apply_patch", "apply_patch_freeform"),
    ("web_search", "web_search_request"),
];

/// Flags of the reference without effect here. A value other than the default gives a warning.
pub(crate) const WITHOUT_EFFECT: &[&str] = &[
    "undo",
    "codex_git_commit",
    "runtime_metrics",
    "child_agents_md",
    "enable_request_compression",
    "multi_agent_v2",
    "skill_mcp_dependency_install",
    "skill_env_var_dependency_prompt",
    "guardian_approval",
    "tool_call_mcp_elicitation",
    "artifact",
    "voice_transcription",
    "tui_app_server",
    "prevent_idle_sleep",
];

/// Flags that a client can switch for the process's lifetime, unless they are configured.
pub(crate) const RUNTIME_CONTROLLED: &[&str] =
    &["apps", "plugins", "tool_search", "tool_suggest", "tool_call_mcp_elicitation"];

/// The enabled flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Features(BTreeMap<&'static str, bool>);

impl Default for Features {
    fn default() -> Self {
        Self(FEATURES.iter().map(|feature| (feature.key, feature.default_enabled)).collect())
    }
}

impl Features {
    /// False for an unknown flag.
    pub fn enabled(&self, key: &str) -> bool {
        self.0.get(key).copied().unwrap_or(false)
    }

    /// All flags by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        self.0.iter().map(|(key, enabled)| (*key, *enabled))
    }

    /// Every flag as clients see it, in the order of the table.
    pub fn list(&self) -> Vec<ExperimentalFeature> {
        let entry = |feature: &Feature| ExperimentalFeature {
            name: feature.key.to_owned(),
            stage: feature.stage,
            display_name: feature.display_name.map(str::to_owned),
            description: feature.description.map(str::to_owned),
            announcement: feature.announcement.map(str::to_owned),
            enabled: self.enabled(feature.key),
            default_enabled: feature.default_enabled,
        };
        FEATURES.iter().map(entry).collect()
    }

    /// Enabled flags of unfinished features.
    pub fn unfinished(&self) -> Vec<&'static str> {
        let unfinished = FEATURES.iter().filter(|feature| feature.stage == Stage::UnderDevelopment);
        unfinished.map(|feature| feature.key).filter(|key| self.enabled(key)).collect()
    }

    /// Sets a flag by its name or an older one. Unknown names are ignored.
    pub(crate) fn set(&mut self, key: &str, enabled: bool) {
        if let Some(feature) = Feature::find(key) {
            self.0.insert(feature.key, enabled);
        }
    }

    pub(crate) fn apply(&mut self, flags: Option<&BTreeMap<String, bool>>) {
        for (key, enabled) in flags.into_iter().flatten() {
            self.set(key, *enabled);
        }
    }

    /// Some flags require others, and some have no effect without another.
    pub(crate) fn settle(&mut self) {
        if self.enabled("enable_fanout") {
            self.set("multi_agent", true);
        }
        if self.enabled("code_mode_only") {
            self.set("code_mode", true);
        }
        if self.enabled("js_repl_tools_only") && !self.enabled("js_repl") {
            self.set("js_repl_tools_only", false);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Adds the product code in a folder: no tests, and not the lists of flags themselves.
    fn gather(folder: &Path, found: &mut String) {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && name != "tests" {
                gather(&path, found);
            } else if name.ends_with(".rs")
                && !name.contains("tests")
                && !["config/src/features/mod.rs", "config/src/review.rs", "config/src/known_keys.rs"]
                    .iter()
                    .any(|list| path.ends_with(list))
            {
                let text = fs::read_to_string(&path).expect("a file");
                found.push_str(text.split("mod tests {").next().unwrap_or_default());
            }
        }
    }

    #[test]
    fn every_flag_does_something_or_is_said_to_do_nothing() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates");
        let mut code = String::new();
        for entry in fs::read_dir(crates).expect("a folder").flatten() {
            if entry.path().join("src").is_dir() && entry.file_name() != "testkit" {
                gather(&entry.path().join("src"), &mut code);
            }
        }
        assert!(code.len() > 1 << 20, "only {} bytes of code", code.len());
        for feature in FEATURES.iter().filter(|feature| feature.stage != Stage::Removed) {
            let is_read = code.contains(&format!("\"{}\"", feature.key));
            assert_eq!(is_read, !WITHOUT_EFFECT.contains(&feature.key), "{}", feature.key);
        }
    }
}
