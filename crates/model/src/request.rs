//! A model request, ready to be sent by anybody.

use std::sync::Arc;

use protocol::{ReasoningEffort, ReasoningSummary, ResponseItem, ThreadId, TurnId, Verbosity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request and what its carrier needs to know beside the body.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedRequest {
    pub body: Arc<RequestBody>,
    pub metadata: Metadata,
}

/// Correlation for headers and logs; never part of the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub purpose: Purpose,
    /// The sandbox of this turn's tools: `none`, `external` or the mechanism.
    pub sandbox: &'static str,
    /// The state that the provider returned earlier in the same turn, to be echoed.
    pub turn_state: Option<String>,
    /// Which request of the turn this is, from 0, counted for each purpose alone. A retry has the same number.
    pub segment: u32,
    /// From 1 within the segment.
    pub attempt: u32,
    /// From the root agent to the one that asks.
    pub agent_path: Arc<[String]>,
    /// Over the tools that are offered and who approves them.
    pub tool_set_digest: Arc<str>,
    /// The git repositories that the turn works in, by their roots.
    pub workspaces: Option<Arc<Value>>,
}

impl Metadata {
    /// The first attempt at the first request of a turn, by an agent of its own with no tools.
    pub fn first(thread_id: ThreadId, turn_id: TurnId) -> Self {
        Self {
            thread_id,
            turn_id,
            purpose: Purpose::Turn,
            sandbox: "none",
            turn_state: None,
            segment: 0,
            attempt: 1,
            agent_path: Arc::new(["root".to_owned()]),
            tool_set_digest: Arc::from(""),
            workspaces: None,
        }
    }
}

/// Why the model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Turn,
    Compaction,
    Review,
    /// Making memories, beside whatever turn runs.
    Memory,
}

/// The body of `POST /responses`. Fields are sent in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestBody {
    pub model: String,
    pub instructions: String,
    /// Shared with the history, so that preparing a request copies no text.
    pub input: Vec<Arc<ResponseItem>>,
    pub tools: Vec<Arc<Value>>,
    pub tool_choice: ToolChoice,
    pub parallel_tool_calls: bool,
    /// Sent as null where the model has no reasoning to configure.
    pub reasoning: Option<Reasoning>,
    pub store: bool,
    pub stream: bool,
    pub include: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    pub prompt_cache_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextOptions>,
}

/// The only choice the runtime makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    Auto,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReasoningSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
}

/// The shape the final answer must have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat {
    JsonSchema { strict: bool, schema: Value, name: String },
}
