//! Models: which there are, how hard they think, and how they are served.

use super::prelude::*;

/// The tone the agent takes.
#[wire]
pub enum Personality {
    /// No tone is asked for.
    None,
    Friendly,
    Pragmatic,
}

/// How a provider serves requests.
#[wire]
pub enum ServiceTier {
    /// With priority.
    Fast,
    /// When there is room for it.
    Flex,
    /// A tier only the provider knows.
    #[serde(untagged)]
    Other(String),
}

/// How much the model thinks before it answers. `model/list` names only those from `none` to `xhigh`.
#[wire]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
    Ultra,
    Persistent,
}

/// How the model's reasoning is summed up for readers.
#[wire]
pub enum ReasoningSummary {
    /// As the model sees fit.
    Auto,
    Concise,
    Detailed,
    /// Not at all.
    None,
}

/// Lists models, a page at a time.
#[wire(omit_null)]
pub struct ModelListParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most models on one page.
    pub limit: Option<u32>,
    /// Also list models that clients do not offer. False when unset.
    pub include_hidden: Option<bool>,
}

/// A kind of input that a model takes.
#[wire]
pub enum InputModality {
    Text,
    Image,
}

/// One model of the catalogue.
#[wire]
pub struct Model {
    pub id: String,
    /// The name to use in requests.
    pub model: String,
    /// A newer model to suggest instead.
    pub upgrade: Option<String>,
    /// How to suggest it.
    pub upgrade_info: Option<ModelUpgradeInfo>,
    /// A note for users to whom the model is new.
    pub availability_nux: Option<ModelAvailabilityNux>,
    pub display_name: String,
    pub description: String,
    /// Clients do not offer it; listed only with `includeHidden`.
    pub hidden: bool,
    pub supported_reasoning_efforts: Vec<ReasoningEffortOption>,
    pub default_reasoning_effort: ReasoningEffort,
    #[serde(default)]
    pub input_modalities: Vec<InputModality>,
    /// Whether `personality` has an effect.
    #[serde(default)]
    pub supports_personality: bool,
    /// True for exactly one model.
    pub is_default: bool,
}

/// A note for users to whom a model is new.
#[wire]
pub struct ModelAvailabilityNux {
    pub message: String,
}

/// How to suggest a newer model.
#[wire]
pub struct ModelUpgradeInfo {
    /// The newer model.
    pub model: String,
    /// The text to show.
    pub upgrade_copy: Option<String>,
    /// A page about the newer model.
    pub model_link: Option<String>,
    /// The changes for the user, in Markdown.
    pub migration_markdown: Option<String>,
}

/// An effort a model offers.
#[wire]
pub struct ReasoningEffortOption {
    pub reasoning_effort: ReasoningEffort,
    /// For display.
    pub description: String,
}

#[wire]
pub struct ModelListResponse {
    pub data: Vec<Model>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

/// Why another model answers.
#[wire]
pub enum ModelRerouteReason {
    /// The provider took the task for a risky one in computer security.
    HighRiskCyberActivity,
}

/// Sent when another model than the requested one answers, at most once a turn. The turn continues.
#[wire]
pub struct ModelReroutedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub from_model: String,
    pub to_model: String,
    pub reason: ModelRerouteReason,
}
