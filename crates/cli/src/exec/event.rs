//! The events of `exec --json`: the words of their lines.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub(crate) enum ExecEvent {
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
pub(crate) struct ExecUsage {
    pub(crate) input_tokens: i64,
    pub(crate) cached_input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) reasoning_output_tokens: i64,
    /// The provider gave no count, for some of it at least.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_estimated: bool,
}

/// By the configured prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct ExecCost {
    pub(crate) amount: f64,
    /// Some tokens were not counted by the provider.
    pub(crate) is_estimated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ExecProblem {
    pub(crate) message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Item {
    /// `item_0`, `item_1`, … in the order in which they appear in this run.
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) details: Details,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Details {
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
pub(crate) enum ItemStatus {
    InProgress,
    Completed,
    Failed,
    Declined,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct McpResult {
    pub(crate) content: Vec<Value>,
    pub(crate) structured_content: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AgentState {
    pub(crate) status: &'static str,
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Todo {
    pub(crate) text: String,
    pub(crate) completed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum SearchAction {
    Search { query: Option<String>, queries: Option<Vec<String>> },
    OpenPage { url: Option<String> },
    FindInPage { url: Option<String>, pattern: Option<String> },
    Other,
}

impl Details {
    /// Of something that was begun and never told to have ended.
    pub(crate) fn abandoned(mut self) -> Self {
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
