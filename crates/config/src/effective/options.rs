//! The model, its texts, tools, and other options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use protocol::{Personality, ServiceTier, WebSearchMode};
use toml::Value;

use super::{Sources, first};
use crate::config::{
    AgentOptions, AgentRole, InstructionTexts, Login, MemoryOptions, ModelOptions, ProjectDocs, ToolOptions,
};
use crate::error::one_line;
use crate::keys::{AgentKeys, Keys, RoleKeys};
use crate::project::{project_of, read_named};
use crate::requirements::ChosenValue;
use crate::{ConfigError, Features, SettingWarning};

const PROJECT_DOC_MAX_BYTES: usize = 32 * 1024;
const CHATGPT_BASE_URL: &str = "https://chatgpt.com/backend-api/";
const TERMINAL_TIMEOUT_MS: u64 = 300_000;
const LEAST_TERMINAL_TIMEOUT_MS: u64 = 5_000;

impl Sources<'_> {
    pub(super) fn model(&self, features: &Features) -> ModelOptions {
        let (overrides, profile, keys) = (self.overrides, &self.profile, self.keys);
        let configured_tier = first([&profile.service_tier, &keys.service_tier]);
        let tier = overrides.service_tier.clone().apply(configured_tier);
        let default_personality = features.enabled("personality").then_some(Personality::Pragmatic);
        ModelOptions {
            name: first([&overrides.model, &profile.model, &keys.model]).filter(|name| !name.is_empty()),
            review: first([&overrides.review_model, &keys.review_model]),
            context_window: keys.model_context_window,
            auto_compact_token_limit: keys.model_auto_compact_token_limit,
            tool_output_token_limit: keys.tool_output_token_limit,
            effort: first([&overrides.effort, &profile.model_reasoning_effort, &keys.model_reasoning_effort]),
            plan_mode_effort: first([&profile.plan_mode_reasoning_effort, &keys.plan_mode_reasoning_effort]),
            summary: first([
                &overrides.summary,
                &profile.model_reasoning_summary,
                &keys.model_reasoning_summary,
            ]),
            verbosity: first([&profile.model_verbosity, &keys.model_verbosity]),
            supports_reasoning_summaries: keys.model_supports_reasoning_summaries,
            service_tier: tier.filter(|tier| match tier {
                ServiceTier::Fast => features.enabled("fast_mode"),
                ServiceTier::Flex => true,
                ServiceTier::Other(name) => !name.is_empty(),
            }),
            personality: first([&overrides.personality, &profile.personality, &keys.personality])
                .or(default_personality),
            catalog_json: not_blank(first([&profile.model_catalog_json, &keys.model_catalog_json])),
        }
    }

    pub(super) fn instructions(&self) -> Result<InstructionTexts, ConfigError> {
        let (overrides, profile, keys) = (self.overrides, &self.profile, self.keys);
        let base = match &overrides.base_instructions {
            Some(text) => Some(text.clone()),
            None => self.text_of(
                "model_instructions_file",
                first([&profile.model_instructions_file, &keys.model_instructions_file]),
            )?,
        };
        let prompt = first([&overrides.compact_prompt, &keys.compact_prompt]);
        let prompt = prompt.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let compact_prompt = match prompt {
            Some(text) => Some(text),
            None => self.text_of(
                "experimental_compact_prompt_file",
                first([&profile.experimental_compact_prompt_file, &keys.experimental_compact_prompt_file]),
            )?,
        };
        Ok(InstructionTexts {
            base,
            developer: first([&overrides.developer_instructions, &keys.developer_instructions]),
            compact_prompt,
        })
    }

    pub(super) fn project_docs(&self) -> ProjectDocs {
        let names = self.keys.project_doc_fallback_filenames.iter().flatten().map(|name| name.trim());
        ProjectDocs {
            max_bytes: self.keys.project_doc_max_bytes.unwrap_or(PROJECT_DOC_MAX_BYTES),
            fallback_filenames: names.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            root_markers: self.layers.root_markers.clone(),
            project_root: self.layers.project_root.clone(),
        }
    }

    pub(super) fn tools(&self, features: &Features, warnings: &mut Vec<SettingWarning>) -> ToolOptions {
        let (profile, keys) = (&self.profile, self.keys);
        let mode = first([&profile.web_search, &keys.web_search]);
        let older = if features.enabled("web_search_cached") {
            Some(WebSearchMode::Cached)
        } else {
            features.enabled("web_search_request").then_some(WebSearchMode::Live)
        };
        let mode = mode.or(older);
        let chosen = ChosenValue { explicit: mode.is_some(), value: mode.unwrap_or(WebSearchMode::Cached) };
        let mode = self.requirements.constrain_web_search(chosen, warnings);
        let tools = [&profile.tools, &keys.tools].map(Option::as_ref);
        ToolOptions {
            web_search: mode,
            configured_web_search: mode,
            web_search_options: tools.into_iter().flatten().find_map(|tools| tools.web_search.clone()),
            view_image: tools.into_iter().flatten().find_map(|tools| tools.view_image),
            background_terminal_max_timeout_ms: keys
                .background_terminal_max_timeout
                .unwrap_or(TERMINAL_TIMEOUT_MS)
                .max(LEAST_TERMINAL_TIMEOUT_MS),
        }
    }

    pub(super) fn login(&self) -> Login {
        let url = first([&self.profile.chatgpt_base_url, &self.keys.chatgpt_base_url]);
        Login {
            forced_method: self.keys.forced_login_method,
            forced_chatgpt_workspace_id: self
                .keys
                .forced_chatgpt_workspace_id
                .as_deref()
                .map(|id| id.trim().to_owned())
                .filter(|id| !id.is_empty()),
            chatgpt_base_url: url.unwrap_or_else(|| CHATGPT_BASE_URL.to_owned()),
        }
    }
}

impl Sources<'_> {
    /// The trimmed text of a file named by a key; must not be empty.
    fn text_of(&self, key: &'static str, path: Option<PathBuf>) -> Result<Option<String>, ConfigError> {
        let Some(path) = not_blank(path) else { return Ok(None) };
        let text = read_named(&path, self.layers.project_root.as_deref(), self.home)
            .map_err(ConfigError::unreadable)?;
        match text.trim() {
            "" => Err(ConfigError::BlankFile { key, path }),
            text => Ok(Some(text.to_owned())),
        }
    }
}

/// A request clears a path with an empty text.
fn not_blank(path: Option<PathBuf>) -> Option<PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

/// Numbers out of range are clamped, like in the reference.
pub(super) fn memories(keys: &Keys) -> MemoryOptions {
    let keys = keys.memories.clone().unwrap_or_default();
    let defaults = MemoryOptions::default();
    let count = |value: Option<i64>, default: usize, most: i64| {
        value.and_then(|value| usize::try_from(value.clamp(0, most)).ok()).unwrap_or(default)
    };
    MemoryOptions {
        generate: keys.generate_memories.unwrap_or(defaults.generate),
        is_used: keys.use_memories.unwrap_or(defaults.is_used),
        none_with_foreign_results: keys
            .no_memories_if_mcp_or_web_search
            .unwrap_or(defaults.none_with_foreign_results),
        max_threads_per_start: count(keys.max_rollouts_per_startup, defaults.max_threads_per_start, 128),
        max_age_days: keys.max_rollout_age_days.map_or(defaults.max_age_days, |days| days.clamp(0, 90)),
        min_idle_hours: keys
            .min_rollout_idle_hours
            .map_or(defaults.min_idle_hours, |hours| hours.clamp(1, 48)),
        max_raw_memories: count(keys.max_raw_memories_for_consolidation, defaults.max_raw_memories, 4_096),
        max_unused_days: keys.max_unused_days.map_or(defaults.max_unused_days, |days| days.clamp(0, 365)),
        extract_model: keys.extract_model.filter(|model| !model.is_empty()),
        consolidation_model: keys.consolidation_model.filter(|model| !model.is_empty()),
    }
}

impl Sources<'_> {
    pub(super) fn agents(&self) -> Result<AgentOptions, ConfigError> {
        let mut agents = agents(self.keys.agents.as_ref())?;
        let root = self.layers.project_root.as_deref();
        for role in agents.roles.values_mut() {
            let file = role.config_file.as_deref();
            role.project = file.and_then(|file| project_of(file, root, self.home)).map(Path::to_owned);
        }
        Ok(agents)
    }
}

fn agents(keys: Option<&AgentKeys>) -> Result<AgentOptions, ConfigError> {
    let at_least_one = |key: &str, value: Option<i64>| match value {
        Some(value) if value < 1 => Err(ConfigError::value(format!("agents.{key} must be at least 1"))),
        value => Ok(value),
    };
    let keys = keys.cloned().unwrap_or_default();
    let count = |value: Option<i64>| value.and_then(|value| usize::try_from(value).ok());
    let defaults = AgentOptions::default();
    let runtime = at_least_one("job_max_runtime_seconds", keys.job_max_runtime_seconds)?;
    Ok(AgentOptions {
        max_threads: count(at_least_one("max_threads", keys.max_threads)?).unwrap_or(defaults.max_threads),
        max_depth: count(at_least_one("max_depth", keys.max_depth)?).unwrap_or(defaults.max_depth),
        job_max_runtime_seconds: runtime.and_then(|seconds| u64::try_from(seconds).ok()),
        roles: keys.roles.into_iter().map(role).collect::<Result<_, _>>()?,
    })
}

fn role((name, value): (String, Value)) -> Result<(String, AgentRole), ConfigError> {
    let invalid = |problem: &dyn std::fmt::Display| ConfigError::value(format!("agents.{name}: {problem}"));
    let keys: RoleKeys =
        value.try_into().map_err(|error: toml::de::Error| invalid(&one_line(&error.to_string())))?;
    if keys.config_file.as_ref().is_some_and(|file| file.as_os_str().is_empty()) {
        return Err(invalid(&"config_file is empty: name the file of the role, or leave config_file out"));
    }
    let nicknames = keys.nickname_candidates.unwrap_or_default();
    let mut seen = BTreeSet::new();
    if let Some(bad) = nicknames.iter().find(|name| name.trim().is_empty() || !seen.insert(name.trim())) {
        return Err(invalid(&format_args!("nickname_candidates has `{bad}`, which is empty or there twice")));
    }
    let nicknames = nicknames.iter().map(|name| name.trim().to_owned()).collect();
    Ok((
        name,
        AgentRole { description: keys.description, config_file: keys.config_file, nicknames, project: None },
    ))
}
