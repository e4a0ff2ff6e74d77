//! A catalogue file: `{"models": [...]}`, as named by `model_catalog_json`.

use std::borrow::Cow;

use engine::Truncation;
use protocol::{InputModality, ReasoningEffort, ReasoningEffortOption, ReasoningSummary, Verbosity};
use serde::Deserialize;

use super::bundled::fallback;
use super::entry::{
    ApplyPatchType, Instructions, ModelEntry, ShellType, Upgrade, WebSearchContent, about_effort,
};

/// Unknown fields are ignored: newer catalogues have more.
#[derive(Debug, Deserialize)]
pub(super) struct CatalogueFile {
    pub(super) models: Vec<FileEntry>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FileEntry {
    slug: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    visibility: FileVisibility,
    #[serde(default = "yes")]
    supported_in_api: bool,
    #[serde(default)]
    default_reasoning_level: Option<ReasoningEffort>,
    #[serde(default)]
    supported_reasoning_levels: Vec<FileEffort>,
    #[serde(default)]
    supports_reasoning_summaries: bool,
    #[serde(default)]
    default_reasoning_summary: Option<ReasoningSummary>,
    #[serde(default)]
    support_verbosity: bool,
    #[serde(default)]
    default_verbosity: Option<Verbosity>,
    #[serde(default)]
    shell_type: ShellType,
    #[serde(default)]
    apply_patch_tool_type: Option<ApplyPatchType>,
    #[serde(default)]
    web_search_tool_type: WebSearchContent,
    #[serde(default)]
    supports_search_tool: bool,
    #[serde(default)]
    truncation_policy: Option<FileTruncation>,
    #[serde(default)]
    supports_parallel_tool_calls: bool,
    #[serde(default)]
    context_window: Option<i64>,
    #[serde(default)]
    effective_context_window_percent: Option<i64>,
    #[serde(default)]
    auto_compact_token_limit: Option<i64>,
    #[serde(default)]
    input_modalities: Option<Vec<InputModality>>,
    #[serde(default)]
    experimental_supported_tools: Vec<String>,
    #[serde(default)]
    base_instructions: Option<String>,
    #[serde(default)]
    model_messages: Option<FileMessages>,
    #[serde(default)]
    upgrade: Option<FileUpgrade>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileVisibility {
    #[default]
    List,
    Hide,
    None,
}

#[derive(Debug, Deserialize)]
struct FileEffort {
    effort: ReasoningEffort,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode", content = "limit")]
enum FileTruncation {
    Bytes(usize),
    Tokens(usize),
}

#[derive(Debug, Deserialize)]
struct FileMessages {
    #[serde(default)]
    instructions_template: Option<String>,
    #[serde(default)]
    instructions_variables: Option<FileTones>,
}

#[derive(Debug, Default, Deserialize)]
struct FileTones {
    personality_default: Option<String>,
    personality_friendly: Option<String>,
    personality_pragmatic: Option<String>,
}

#[derive(Debug, Deserialize)]
struct FileUpgrade {
    model: String,
    #[serde(default)]
    migration_markdown: Option<String>,
}

fn yes() -> bool {
    true
}

impl FileEntry {
    /// The problem, with the name of the field.
    pub(super) fn problem(&self) -> Option<String> {
        let wrong = |field: &str, rule: &str| Some(format!("`{field}` of `{}` {rule}", self.slug));
        if self.slug.trim().is_empty() {
            return Some("a model has no `slug`".to_owned());
        }
        if self.context_window.is_some_and(|window| window <= 0) {
            return wrong("context_window", "must be above 0");
        }
        if self.auto_compact_token_limit.is_some_and(|limit| limit <= 0) {
            return wrong("auto_compact_token_limit", "must be above 0");
        }
        if self.effective_context_window_percent.is_some_and(|percent| !(1..=100).contains(&percent)) {
            return wrong("effective_context_window_percent", "must be from 1 to 100");
        }
        None
    }

    /// Missing fields are those of an unknown model.
    pub(super) fn into_entry(self) -> ModelEntry {
        let unknown = fallback(&self.slug);
        let supports_personality = self.model_messages.as_ref().is_some_and(FileMessages::chooses_a_tone);
        let instructions = instructions(self.base_instructions, self.model_messages);
        ModelEntry {
            display_name: Cow::Owned(self.display_name.unwrap_or_else(|| self.slug.clone())),
            slug: Cow::Owned(self.slug),
            description: Cow::Owned(self.description.unwrap_or_default()),
            priority: self.priority,
            listed: self.visibility == FileVisibility::List,
            supported_in_api: self.supported_in_api,
            default_effort: self.default_reasoning_level,
            efforts: self.supported_reasoning_levels.into_iter().map(FileEffort::option).collect(),
            supports_reasoning_summaries: self.supports_reasoning_summaries,
            default_summary: self.default_reasoning_summary.unwrap_or(unknown.default_summary),
            supports_verbosity: self.support_verbosity,
            default_verbosity: self.default_verbosity,
            shell_type: self.shell_type,
            apply_patch: self.apply_patch_tool_type,
            web_search: self.web_search_tool_type,
            searches_tools: self.supports_search_tool,
            truncation: self.truncation_policy.map_or(unknown.truncation, Into::into),
            supports_parallel_tool_calls: self.supports_parallel_tool_calls,
            context_window: self.context_window.or(unknown.context_window),
            effective_window_percent: self
                .effective_context_window_percent
                .unwrap_or(unknown.effective_window_percent),
            auto_compact_token_limit: self.auto_compact_token_limit,
            input_modalities: self.input_modalities.unwrap_or(unknown.input_modalities),
            experimental_tools: self.experimental_supported_tools.into_iter().map(Cow::Owned).collect(),
            supports_personality,
            instructions,
            upgrade: self.upgrade.map(|upgrade| Upgrade {
                model: Cow::Owned(upgrade.model),
                markdown: upgrade.migration_markdown,
            }),
            is_fallback: false,
        }
    }
}

impl FileEffort {
    fn option(self) -> ReasoningEffortOption {
        let description = self.description.unwrap_or_else(|| about_effort(self.effort).to_owned());
        ReasoningEffortOption { reasoning_effort: self.effort, description }
    }
}

impl FileMessages {
    /// The template has a placeholder, and every personality a text.
    fn chooses_a_tone(&self) -> bool {
        let place =
            self.instructions_template.as_ref().is_some_and(|text| text.contains(Instructions::PLACE));
        let complete = self.instructions_variables.as_ref().is_some_and(|tones| {
            tones.personality_default.is_some()
                && tones.personality_friendly.is_some()
                && tones.personality_pragmatic.is_some()
        });
        place && complete
    }
}

/// A template overrides plain instructions; blank ones count as none.
fn instructions(base: Option<String>, messages: Option<FileMessages>) -> Option<Instructions> {
    let (template, tones) = messages
        .map(|messages| (messages.instructions_template, messages.instructions_variables))
        .unwrap_or_default();
    let template = template.or(base).filter(|text| !text.trim().is_empty())?;
    let tones = tones.unwrap_or_default();
    let tones = [tones.personality_default, tones.personality_friendly, tones.personality_pragmatic];
    Some(Instructions { template, tones: tones.map(Option::unwrap_or_default) })
}

impl From<FileTruncation> for Truncation {
    fn from(truncation: FileTruncation) -> Self {
        match truncation {
            FileTruncation::Bytes(limit) => Self::Bytes(limit),
            FileTruncation::Tokens(limit) => Self::Tokens(limit),
        }
    }
}
