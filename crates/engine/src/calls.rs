//! The tool calls of a response.

use std::sync::Arc;

use protocol::{FunctionCallOutputBody, LocalShellAction, ResponseItem};
use serde_json::{Value, json};

use crate::{Proposal, Step};

/// The tool that answers searches in the provider's own format.
pub const TOOL_SEARCH: &str = "tool_search";

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub call_id: String,
    pub name: String,
    pub namespace: Option<String>,
    pub payload: ToolPayload,
}

/// The arguments that the model gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPayload {
    /// JSON, not yet parsed: the model reads the errors in it.
    Function { arguments: String },
    /// Free text.
    Custom { input: String },
    /// A tool search in the provider's own format, with JSON arguments.
    Search { arguments: String },
}

/// A call and its state.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    pub(crate) began_ms: i64,
    pub(crate) runner: Runner,
    /// May run in parallel with other such calls.
    pub(crate) parallel: bool,
    /// The proposal that is being decided or carried out.
    pub(crate) active: Option<Box<ActiveProposal>>,
    pub(crate) output: Option<FunctionCallOutputBody>,
    /// The turn's step with the script's environments, for a call of a script that began in other ones.
    pub(crate) step: Option<Arc<Step>>,
}

/// Who the call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// None yet: other calls have to end first.
    Waiting,
    Tool,
    Client,
    /// The host, which decides whether the tool may be called.
    Gate,
    Nobody,
}

/// The latest proposal of a call, and its state.
#[derive(Debug, Clone)]
pub(crate) struct ActiveProposal {
    pub(crate) proposal: Proposal,
    pub(crate) stage: ProposalStage,
    /// Starts at 1. Larger when the outcome of an attempt was lost and the host decided to try again.
    pub(crate) attempt: u32,
    /// Clients were notified of the item's start and not of its end.
    pub(crate) item_open: bool,
    /// A question asked while the call runs. It is not an operation: it ends with the call.
    pub(crate) beside: Option<Box<Proposal>>,
    /// Set while the automatic reviewer decides instead of a client.
    pub(crate) assessment: Option<Box<Assessment>>,
}

/// A request to the automatic reviewer that is not answered yet.
#[derive(Debug, Clone)]
pub(crate) struct Assessment {
    pub(crate) attempt: u64,
    /// The answer received so far.
    pub(crate) text: String,
    /// The judged action, for clients.
    pub(crate) action: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProposalStage {
    /// A client was asked.
    Asked,
    /// Recorded as started.
    Begun,
    Over,
}

impl OpenCall {
    /// The output item for the model.
    pub(crate) fn answer(&self, output: FunctionCallOutputBody) -> ResponseItem {
        let call_id = self.call.call_id.clone();
        match self.call.payload {
            ToolPayload::Function { .. } => ResponseItem::FunctionCallOutput { call_id, output },
            ToolPayload::Custom { .. } => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
            ToolPayload::Search { .. } => ResponseItem::ToolSearchOutput {
                call_id: Some(call_id),
                status: "completed".to_owned(),
                execution: "client".to_owned(),
                tools: found_tools(&output),
            },
        }
    }

    /// The output of a call that was stopped.
    pub(crate) fn stopped_after(&self, now_ms: i64, by: StoppedBy) -> FunctionCallOutputBody {
        let seconds = ((now_ms - self.began_ms).max(100)) as f64 / 1_000.0;
        let cause = match by {
            StoppedBy::User => "aborted by user",
            StoppedBy::Departure => "stopped because the program that ran it was shut down or lost its host",
            StoppedBy::Record => "stopped because the thread's record could not be written",
        };
        let mut text = match self.call.name.as_str() {
            "shell" | "container.exec" | "local_shell" | "shell_command" => {
                format!("Wall time: {seconds:.1} seconds\n{cause}")
            }
            _ => format!("{cause} after {seconds:.1}s"),
        };
        if by != StoppedBy::User {
            text.push_str(
                "\nIt may have done part of its work: look at how things stand before you repeat it.",
            );
        }
        FunctionCallOutputBody::Text(text)
    }
}

/// Why a running call was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    User,
    /// The process stops, or the turn waits for its host to reconnect.
    Departure,
    /// The record failed, so its results could not be saved.
    Record,
}

/// The call in a finished item, if the runtime has to answer it.
pub(crate) fn call_in(item: &ResponseItem) -> Option<ToolCall> {
    match item {
        ResponseItem::FunctionCall { name, namespace, arguments, call_id, .. } => Some(ToolCall {
            call_id: call_id.clone(),
            name: name.clone(),
            namespace: namespace.clone(),
            payload: ToolPayload::Function { arguments: arguments.clone() },
        }),
        ResponseItem::LocalShellCall { call_id, id, action, .. } => Some(ToolCall {
            call_id: call_id.clone().or_else(|| id.clone())?,
            name: "local_shell".to_owned(),
            namespace: None,
            payload: ToolPayload::Function { arguments: local_shell_arguments(action) },
        }),
        ResponseItem::ToolSearchCall { call_id: Some(call_id), execution, arguments, .. }
            if execution == "client" =>
        {
            Some(ToolCall {
                call_id: call_id.clone(),
                name: TOOL_SEARCH.to_owned(),
                namespace: None,
                payload: ToolPayload::Search { arguments: arguments.to_string() },
            })
        }
        ResponseItem::CustomToolCall { call_id, name, input, .. } => Some(ToolCall {
            call_id: call_id.clone(),
            name: name.clone(),
            namespace: None,
            payload: ToolPayload::Custom { input: input.clone() },
        }),
        _ => None,
    }
}

/// The tools in the output of a search. A failed search found none.
fn found_tools(output: &FunctionCallOutputBody) -> Vec<Value> {
    match output {
        FunctionCallOutputBody::Text(text) => serde_json::from_str(text).unwrap_or_default(),
        FunctionCallOutputBody::Content(_) => Vec::new(),
    }
}

/// The provider's built-in command call, converted to the arguments of the `shell` tool.
fn local_shell_arguments(action: &LocalShellAction) -> String {
    let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
    json!({ "command": command, "timeout_ms": timeout_ms, "workdir": working_directory }).to_string()
}

/// The output of a call to a tool that was not offered.
pub(crate) fn unsupported(call: &ToolCall) -> FunctionCallOutputBody {
    FunctionCallOutputBody::Text(match call.payload {
        ToolPayload::Function { .. } | ToolPayload::Search { .. } => {
            format!("unsupported call: {}", call.name)
        }
        ToolPayload::Custom { .. } => format!("unsupported custom tool call: {}", call.name),
    })
}
