//! The events of `exec --json`: the words of their lines.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ExecEvent {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        usage: ExecUsage,
        /// Only where prices are configured.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<ExecCost>,
    },
    #[serde(rename = "turn.failed")]
    TurnFailed { error: ExecProblem },
    #[serde(rename = "turn.interrupted")]
    TurnInterrupted,
    #[serde(rename = "item.started")]
    ItemStarted { item: Item },
    #[serde(rename = "item.updated")]
    ItemUpdated { item: Item },
    #[serde(rename = "item.completed")]
    ItemCompleted { item: Item },
    #[serde(rename = "error")]
    Error { message: String },
}

/// Tokens of the whole thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ExecUsage {
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    pub output_tokens: i64,
    pub reasoning_output_tokens: i64,
    /// The provider gave no count, for some of it at least.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

/// By the configured prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExecCost {
    pub amount: f64,
    /// Some tokens were not counted by the provider.
    pub is_estimated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExecProblem {
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// `item_0`, `item_1`, … in the order in which they appear in this run.
    pub id: String,
    #[serde(flatten)]
    pub details: Details,
    /// The flag that would have allowed what was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Details {
    AgentMessage {
        text: String,
    },
    Reasoning {
        text: String,
    },
    CommandExecution {
        command: String,
        aggregated_output: String,
        exit_code: Option<i32>,
        status: ItemStatus,
    },
    FileChange {
        changes: Vec<Change>,
        status: ItemStatus,
        /// Why it was refused or not applied.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    McpToolCall {
        server: String,
        tool: String,
        arguments: Value,
        result: Option<McpResult>,
        error: Option<ExecProblem>,
        status: ItemStatus,
    },
    CollabToolCall {
        tool: &'static str,
        sender_thread_id: String,
        receiver_thread_ids: Vec<String>,
        prompt: Option<String>,
        agents_states: BTreeMap<String, AgentState>,
        status: ItemStatus,
    },
    WebSearch {
        query: String,
        action: SearchAction,
    },
    TodoList {
        items: Vec<Todo>,
    },
    Error {
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    InProgress,
    Completed,
    Failed,
    Declined,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    pub path: String,
    pub kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McpResult {
    pub content: Vec<Value>,
    pub structured_content: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentState {
    pub status: &'static str,
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Todo {
    pub text: String,
    pub completed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SearchAction {
    Search { query: Option<String>, queries: Option<Vec<String>> },
    OpenPage { url: Option<String> },
    FindInPage { url: Option<String>, pattern: Option<String> },
    Other,
}

impl Details {
    /// Of something that was begun and never told to have ended.
    pub fn abandoned(mut self) -> Self {
        match &mut self {
            Self::CommandExecution { status, .. }
            | Self::FileChange { status, .. }
            | Self::McpToolCall { status, .. }
            | Self::CollabToolCall { status, .. } => *status = ItemStatus::Failed,
            Self::AgentMessage { .. }
            | Self::Reasoning { .. }
            | Self::WebSearch { .. }
            | Self::TodoList { .. }
            | Self::Error { .. } => {}
        }
        self
    }
}
