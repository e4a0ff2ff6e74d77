//! One model of the catalogue, and what a turn needs to know of it.

use std::borrow::Cow;

use engine::{ModelInfo, Truncation};
use protocol::{
    InputModality, Model, ModelUpgradeInfo, Personality, ReasoningEffort, ReasoningEffortOption,
    ReasoningSummary, Verbosity,
};
use serde::Deserialize;

/// Retries of a broken stream, unless the provider's settings differ.
const STREAM_MAX_RETRIES: u32 = 5;

/// Converts an output limit from tokens to bytes.
const BYTES_PER_TOKEN: usize = 4;

/// A model with its properties.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelEntry {
    /// The name in requests.
    pub slug: Cow<'static, str>,
    pub display_name: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// Lower is listed first.
    pub priority: i64,
    /// Offered by clients.
    pub listed: bool,
    /// Whether users of an API key may use it.
    pub supported_in_api: bool,
    pub default_effort: Option<ReasoningEffort>,
    pub efforts: Vec<ReasoningEffortOption>,
    pub supports_reasoning_summaries: bool,
    pub default_summary: ReasoningSummary,
    pub supports_verbosity: bool,
    pub default_verbosity: Option<Verbosity>,
    pub shell_type: ShellType,
    pub apply_patch: Option<ApplyPatchType>,
    pub web_search: WebSearchContent,
    /// It searches for tools in the provider's own form.
    pub searches_tools: bool,
    pub truncation: Truncation,
    pub supports_parallel_tool_calls: bool,
    pub context_window: Option<i64>,
    /// The usable part of the window, in per cent.
    pub effective_window_percent: i64,
    pub auto_compact_token_limit: Option<i64>,
    pub input_modalities: Vec<InputModality>,
    /// Further tools it was trained with.
    pub experimental_tools: Vec<Cow<'static, str>>,
    /// Whether the model's instructions depend on the personality.
    pub supports_personality: bool,
    /// Unset: the runtime's own.
    pub instructions: Option<Instructions>,
    pub upgrade: Option<Upgrade>,
    /// The name is unknown; the values are assumptions, of which the user should be warned once.
    pub is_fallback: bool,
}

/// The shell tool a model was trained with. The runtime may offer a better one instead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellType {
    /// `shell`, with a list of words.
    #[default]
    Default,
    /// The provider's own `local_shell`.
    Local,
    /// `exec_command` and `write_stdin`.
    UnifiedExec,
    /// `shell_command`, with one string.
    ShellCommand,
    /// None.
    Disabled,
}

/// How a model writes a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyPatchType {
    /// As free text, held to a grammar.
    Freeform,
    /// As a JSON argument.
    Function,
}

/// The kinds of results of a web search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebSearchContent {
    #[default]
    Text,
    TextAndImage,
}

/// A catalogue's base instructions for its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    pub(super) template: String,
    /// For `{{ personality }}` in the template: unset, friendly, pragmatic.
    pub(super) tones: [String; 3],
}

impl Instructions {
    pub(super) const PLACE: &'static str = "{{ personality }}";

    /// With the chosen personality.
    pub fn render(&self, personality: Option<Personality>) -> String {
        let tone = match personality {
            None => self.tones[0].as_str(),
            Some(Personality::None) => "",
            Some(Personality::Friendly) => &self.tones[1],
            Some(Personality::Pragmatic) => &self.tones[2],
        };
        self.template.replace(Self::PLACE, tone)
    }
}

/// A newer model to suggest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    pub model: Cow<'static, str>,
    /// The changes, in Markdown. Unset: the runtime's own text.
    pub markdown: Option<String>,
}

/// Configuration values that override the catalogue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub context_window: Option<i64>,
    pub auto_compact_token_limit: Option<i64>,
    pub tool_output_token_limit: Option<usize>,
    /// Only `true` has an effect: an existing ability is not removed.
    pub supports_reasoning_summaries: Option<bool>,
    pub stream_max_retries: Option<u32>,
}

impl ModelEntry {
    pub fn info(&self, overrides: &Overrides) -> ModelInfo {
        ModelInfo {
            slug: self.slug.clone().into_owned(),
            context_window: overrides.context_window.or(self.context_window),
            effective_window_percent: self.effective_window_percent,
            auto_compact_token_limit: overrides.auto_compact_token_limit.or(self.auto_compact_token_limit),
            supports_reasoning_summaries: self.supports_reasoning_summaries
                || overrides.supports_reasoning_summaries == Some(true),
            supports_parallel_tool_calls: self.supports_parallel_tool_calls,
            truncation: match (overrides.tool_output_token_limit, self.truncation) {
                (None, catalogued) => catalogued,
                (Some(tokens), Truncation::Tokens(_)) => Truncation::Tokens(tokens),
                (Some(tokens), Truncation::Bytes(_)) => {
                    Truncation::Bytes(tokens.saturating_mul(BYTES_PER_TOKEN))
                }
            },
            stream_max_retries: overrides.stream_max_retries.unwrap_or(STREAM_MAX_RETRIES),
            price: None,
        }
    }

    pub fn takes_images(&self) -> bool {
        self.input_modalities.contains(&InputModality::Image)
    }

    /// In the form of `model/list`.
    pub(super) fn to_wire(&self, is_default: bool) -> Model {
        let upgrade_info = self.upgrade.as_ref().map(|upgrade| ModelUpgradeInfo {
            model: upgrade.model.clone().into_owned(),
            upgrade_copy: None,
            model_link: None,
            migration_markdown: Some(
                upgrade.markdown.clone().unwrap_or_else(|| self.suggestion(&upgrade.model)),
            ),
        });
        Model {
            id: self.slug.clone().into_owned(),
            model: self.slug.clone().into_owned(),
            upgrade: self.upgrade.as_ref().map(|upgrade| upgrade.model.clone().into_owned()),
            upgrade_info,
            availability_nux: None,
            display_name: self.display_name.clone().into_owned(),
            description: self.description.clone().into_owned(),
            hidden: !self.listed,
            supported_reasoning_efforts: self
                .efforts
                .iter()
                .filter(|option| is_listable(option.reasoning_effort))
                .cloned()
                .collect(),
            default_reasoning_effort: match self.default_effort {
                None => ReasoningEffort::None,
                Some(effort) if is_listable(effort) => effort,
                Some(_) => ReasoningEffort::Xhigh,
            },
            input_modalities: self.input_modalities.clone(),
            supports_personality: self.supports_personality,
            is_default,
        }
    }

    fn suggestion(&self, newer: &str) -> String {
        let own = &self.slug;
        format!(
            "**{newer}** is available and follows **{own}**.\n\nYou can go on using {own} if you prefer.\n"
        )
    }
}

/// Older clients cannot parse a list with other efforts.
fn is_listable(effort: ReasoningEffort) -> bool {
    match effort {
        ReasoningEffort::None
        | ReasoningEffort::Minimal
        | ReasoningEffort::Low
        | ReasoningEffort::Medium
        | ReasoningEffort::High
        | ReasoningEffort::Xhigh => true,
        ReasoningEffort::Max | ReasoningEffort::Ultra | ReasoningEffort::Persistent => false,
    }
}

/// The default description of an effort.
pub(super) fn about_effort(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None => "Answers at once",
        ReasoningEffort::Minimal => "Hardly thinks: the fastest with some thought",
        ReasoningEffort::Low => "Thinks briefly, for simple tasks",
        ReasoningEffort::Medium => "Thinks as much as everyday tasks need",
        ReasoningEffort::High => "Thinks longer, for hard tasks",
        ReasoningEffort::Xhigh => "Thinks longest, for the hardest tasks",
        ReasoningEffort::Max | ReasoningEffort::Ultra | ReasoningEffort::Persistent => {
            "Thinks without regard to time and cost"
        }
    }
}
