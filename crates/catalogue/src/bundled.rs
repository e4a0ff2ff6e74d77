//! The built-in models. Add a new model as one more row.

use std::borrow::Cow;

use engine::Truncation;
use protocol::ReasoningEffort::{self, High, Low, Medium, Minimal, Xhigh};
use protocol::{InputModality, ReasoningEffortOption, ReasoningSummary, Verbosity};

use super::entry::{ApplyPatchType, ModelEntry, ShellType, Upgrade, WebSearchContent, about_effort};

/// A row of the table, with the differences between models.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    slug: &'static str,
    about: &'static str,
    listed: bool,
    priority: i64,
    efforts: &'static [ReasoningEffort],
    /// The default reasoning summary.
    summary: ReasoningSummary,
    context_window: i64,
    truncation: Truncation,
    parallel: bool,
    /// Set if the model has a verbosity: its default.
    verbosity: Option<Option<Verbosity>>,
    apply_patch: Option<ApplyPatchType>,
    shell: ShellType,
    modalities: &'static [InputModality],
    experimental_tools: &'static [&'static str],
    personality: bool,
    upgrade: Option<&'static str>,
}

const TOKENS: Truncation = Truncation::Tokens(10_000);
const BYTES: Truncation = Truncation::Bytes(10_000);
const WINDOW: i64 = 272_000;
/// The usable part of a window.
const EFFECTIVE_PERCENT: i64 = 95;
const ALL_MODALITIES: &[InputModality] = &[InputModality::Text, InputModality::Image];

/// The most common values: a hidden coding model.
const CODING: Row = Row {
    slug: "",
    about: "",
    listed: false,
    priority: 0,
    efforts: &[Low, Medium, High],
    summary: ReasoningSummary::Auto,
    context_window: WINDOW,
    truncation: TOKENS,
    parallel: false,
    verbosity: None,
    apply_patch: Some(ApplyPatchType::Freeform),
    shell: ShellType::ShellCommand,
    modalities: ALL_MODALITIES,
    experimental_tools: &[],
    personality: false,
    upgrade: Some("gpt-5.3-codex"),
};

const OPEN_WEIGHT: Row = Row {
    priority: 11,
    context_window: 128_000,
    truncation: BYTES,
    verbosity: Some(None),
    shell: ShellType::Default,
    modalities: &[InputModality::Text],
    upgrade: None,
    ..CODING
};

/// By priority; rows of equal priority in list order.
pub(super) static ROWS: &[Row] = &[
    Row {
        slug: "gpt-5.3-codex",
        about: "The default for coding: strong on long tasks with tools.",
        listed: true,
        priority: 0,
        efforts: &[Low, Medium, High, Xhigh],
        summary: ReasoningSummary::None,
        parallel: true,
        verbosity: Some(Some(Verbosity::Low)),
        personality: true,
        upgrade: Some("gpt-5.4"),
        ..CODING
    },
    Row {
        slug: "gpt-5.4",
        about: "The newest general model, for coding and other professional work.",
        listed: true,
        priority: 0,
        efforts: &[Low, Medium, High, Xhigh],
        summary: ReasoningSummary::None,
        parallel: true,
        verbosity: Some(Some(Verbosity::Low)),
        personality: true,
        upgrade: None,
        ..CODING
    },
    Row {
        slug: "gpt-5.2-codex",
        about: "A coding model of the generation before.",
        listed: true,
        priority: 3,
        efforts: &[Low, Medium, High, Xhigh],
        parallel: true,
        personality: true,
        upgrade: Some("gpt-5.4"),
        ..CODING
    },
    Row {
        slug: "gpt-5.1-codex-max",
        about: "An earlier coding model that thinks deeply.",
        listed: true,
        priority: 4,
        efforts: &[Low, Medium, High, Xhigh],
        upgrade: Some("gpt-5.4"),
        ..CODING
    },
    Row { slug: "gpt-5.1-codex", about: "An earlier coding model.", priority: 5, ..CODING },
    Row {
        slug: "gpt-5.2",
        about: "A general model of the generation before.",
        listed: true,
        priority: 6,
        efforts: &[Low, Medium, High, Xhigh],
        truncation: BYTES,
        parallel: true,
        verbosity: Some(Some(Verbosity::Low)),
        upgrade: Some("gpt-5.4"),
        ..CODING
    },
    Row {
        slug: "gpt-5.1",
        about: "An earlier general model.",
        priority: 7,
        truncation: BYTES,
        parallel: true,
        verbosity: Some(Some(Verbosity::Low)),
        ..CODING
    },
    Row { slug: "gpt-5-codex", about: "The first coding model of its series.", priority: 10, ..CODING },
    Row {
        slug: "gpt-5",
        about: "The first general model of its series.",
        priority: 11,
        efforts: &[Minimal, Low, Medium, High],
        truncation: BYTES,
        verbosity: Some(None),
        apply_patch: None,
        shell: ShellType::Default,
        ..CODING
    },
    Row {
        slug: "gpt-oss-120b",
        about: "A model with open weights and 120 billion parameters.",
        ..OPEN_WEIGHT
    },
    Row { slug: "gpt-oss-20b", about: "A model with open weights and 20 billion parameters.", ..OPEN_WEIGHT },
    Row {
        slug: "gpt-5.1-codex-mini",
        about: "A small coding model: cheaper and faster, and less able.",
        listed: true,
        priority: 12,
        efforts: &[Medium, High],
        upgrade: Some("gpt-5.4"),
        ..CODING
    },
    Row {
        slug: "gpt-5-codex-mini",
        about: "The first small coding model of its series.",
        priority: 13,
        efforts: &[Medium, High],
        ..CODING
    },
];

/// The built-in offline model. First, because it is the model in use whenever it is available.
pub(super) static OFFLINE: Row = Row {
    slug: "offline",
    about: "The built-in stand-in: answers without a network or a key, for demonstrations and tests.",
    listed: true,
    priority: i64::MIN,
    efforts: &[],
    parallel: true,
    experimental_tools: &["list_dir", "read_file", "grep_files"],
    upgrade: None,
    ..CODING
};

impl From<&Row> for ModelEntry {
    fn from(row: &Row) -> Self {
        let efforts = row.efforts.iter().map(|&reasoning_effort| ReasoningEffortOption {
            reasoning_effort,
            description: about_effort(reasoning_effort).to_owned(),
        });
        Self {
            slug: Cow::Borrowed(row.slug),
            display_name: Cow::Borrowed(row.slug),
            description: Cow::Borrowed(row.about),
            priority: row.priority,
            listed: row.listed,
            supported_in_api: true,
            default_effort: row.efforts.contains(&Medium).then_some(Medium),
            efforts: efforts.collect(),
            supports_reasoning_summaries: !row.efforts.is_empty(),
            default_summary: row.summary,
            supports_verbosity: row.verbosity.is_some(),
            default_verbosity: row.verbosity.flatten(),
            shell_type: row.shell,
            apply_patch: row.apply_patch,
            web_search: WebSearchContent::Text,
            searches_tools: false,
            truncation: row.truncation,
            supports_parallel_tool_calls: row.parallel,
            context_window: Some(row.context_window),
            effective_window_percent: EFFECTIVE_PERCENT,
            auto_compact_token_limit: None,
            input_modalities: row.modalities.to_vec(),
            experimental_tools: row.experimental_tools.iter().copied().map(Cow::Borrowed).collect(),
            supports_personality: row.personality,
            instructions: None,
            upgrade: row.upgrade.map(|model| Upgrade { model: Cow::Borrowed(model), markdown: None }),
            is_fallback: false,
        }
    }
}

/// Conservative assumptions about an unknown model.
pub(super) fn fallback(name: &str) -> ModelEntry {
    let row = Row {
        efforts: &[],
        truncation: BYTES,
        apply_patch: None,
        shell: ShellType::Default,
        experimental_tools: &[],
        ..OFFLINE
    };
    ModelEntry {
        slug: Cow::Owned(name.to_owned()),
        display_name: Cow::Owned(name.to_owned()),
        description: Cow::Borrowed(""),
        listed: false,
        priority: i64::MAX,
        supports_parallel_tool_calls: false,
        is_fallback: true,
        ..ModelEntry::from(&row)
    }
}
