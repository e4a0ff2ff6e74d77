//! The Step: one frozen view per model request. What the model is told, the tools it is offered and the place its calls
//! run in all come from here.

use std::sync::Arc;

use protocol::{
    AskForApproval, CollaborationMode, Personality, ReasoningEffort, ReasoningSummary, SandboxPolicy,
    Verbosity,
};
use serde_json::Value;

/// Captured by the driver before a model request; never changed afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub model: ModelInfo,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    /// As the provider spells it.
    pub service_tier: Option<String>,
    pub base_instructions: Arc<str>,
    pub developer_instructions: Option<Arc<str>>,
    /// How to ask for a summary, instead of the built-in way.
    pub compact_prompt: Option<Arc<str>>,
    /// What the AGENTS.md files say, joined.
    pub project_instructions: Option<Arc<str>>,
    pub collaboration_mode: Option<CollaborationMode>,
    pub personality: Option<Personality>,
    pub approval_policy: AskForApproval,
    pub sandbox: SandboxPolicy,
    pub cwd: String,
    pub shell: String,
    /// Local, `YYYY-MM-DD`.
    pub current_date: String,
    pub timezone: String,
    pub tools: Vec<ToolSpec>,
    /// Tools the model can look for; not yet advertised, so not callable.
    pub deferred: Vec<ToolSpec>,
}

impl Step {
    /// Offers the deferred tools that were looked for and found.
    pub fn reveal(&mut self, found: &[String]) {
        for name in found {
            if let Some(at) = self.deferred.iter().position(|tool| tool.name == *name) {
                self.tools.push(self.deferred.remove(at));
            }
        }
    }

    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// A tool as offered to the model in this step.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub kind: ToolKind,
    /// As it stands in the request. Unset for another name of a tool, which answers without being advertised.
    pub json: Option<Arc<Value>>,
    /// May run beside others that may too.
    pub parallel: bool,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// The runtime.
    Builtin,
    /// The client that brought it.
    Dynamic,
    /// The model provider.
    Hosted,
}

/// What the turn needs to know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub slug: String,
    pub context_window: Option<i64>,
    /// How much of the window is counted on, in per cent.
    pub effective_window_percent: i64,
    pub auto_compact_token_limit: Option<i64>,
    pub supports_reasoning_summaries: bool,
    pub supports_parallel_tool_calls: bool,
    pub truncation: Truncation,
    /// How often a broken stream is tried again.
    pub stream_max_retries: u32,
}

impl ModelInfo {
    /// The window clients are told.
    pub fn usable_window(&self) -> Option<i64> {
        self.context_window.map(|window| window * self.effective_window_percent / 100)
    }

    /// Above this, the history is compacted.
    pub fn compaction_limit(&self) -> Option<i64> {
        let most = self.context_window.map(|window| window * 9 / 10);
        match (self.auto_compact_token_limit, most) {
            (Some(limit), Some(most)) => Some(limit.min(most)),
            (limit, most) => limit.or(most),
        }
    }
}

/// How much of a tool's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    Bytes(usize),
    Tokens(usize),
}
