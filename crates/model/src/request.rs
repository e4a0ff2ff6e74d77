//! A model request, ready for any transport.

use std::sync::Arc;

use protocol::{ReasoningEffort, ReasoningSummary, ResponseItem, ThreadId, TurnId, Verbosity};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request with the metadata that its transport needs.
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
    /// The provider's state from earlier in the same turn, to be sent back.
    pub turn_state: Option<String>,
    /// The number of the request in the turn, from 0, counted per purpose. A retry has the same number.
    pub segment: u32,
    /// Starts at 1 within the segment.
    pub attempt: u32,
    /// From the root agent to the requesting one.
    pub agent_path: Arc<[String]>,
    /// Digest of the offered tools and their approvers.
    pub tool_set_digest: Arc<str>,
    /// The turn's git repositories, by their roots.
    pub workspaces: Option<Arc<Value>>,
}

impl Metadata {
    /// The first attempt at the first request of a turn, for a root agent without tools.
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

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Turn,
    Compaction,
    Review,
    /// Making memories, independent of turns.
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
    /// Null if the model has no configurable reasoning.
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

/// The only value the runtime uses.
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

/// The required form of the final answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputFormat {
    JsonSchema { strict: bool, schema: Value, name: String },
}
