//! The tool calls of a response.

use protocol::{FunctionCallOutputBody, LocalShellAction, ResponseItem};
use serde_json::json;

use crate::Proposal;

/// A call to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub call_id: String,
    pub name: String,
    pub namespace: Option<String>,
    pub payload: ToolPayload,
}

/// What the model gave the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolPayload {
    /// JSON, not yet parsed: what is wrong with it is for the model to read.
    Function { arguments: String },
    /// Free text.
    Custom { input: String },
}

/// A call with what became of it.
#[derive(Debug, Clone)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    pub(crate) began_ms: i64,
    pub(crate) runner: Runner,
    /// May run beside others that may too.
    pub(crate) parallel: bool,
    /// What it is about to do, or does.
    pub(crate) doing: Option<Box<Doing>>,
    pub(crate) output: Option<FunctionCallOutputBody>,
}

/// Who was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    /// Nobody yet: others have to end first.
    Waiting,
    Tool,
    Client,
    /// The host was asked whether it may be called.
    Gate,
    Nobody,
}

/// The proposal at hand.
#[derive(Debug, Clone)]
pub(crate) struct Doing {
    pub(crate) proposal: Proposal,
    pub(crate) stage: Stage,
    /// From 1. More when an outcome was lost and it was decided to try again.
    pub(crate) attempt: u32,
    /// Clients saw the item begin and not yet end.
    pub(crate) item_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A client was asked.
    Asked,
    /// In the record as begun.
    Begun,
    Over,
}

impl OpenCall {
    /// The item that goes back to the model.
    pub(crate) fn answer(&self, output: FunctionCallOutputBody) -> ResponseItem {
        let call_id = self.call.call_id.clone();
        match self.call.payload {
            ToolPayload::Function { .. } => ResponseItem::FunctionCallOutput { call_id, output },
            ToolPayload::Custom { .. } => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
        }
    }

    /// What the model reads of a call that was stopped.
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

/// Why a call that ran runs no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    User,
    /// The process ends, or the turn waits for its host to come back.
    Departure,
    /// Nothing it did could be kept.
    Record,
}

/// The call in a finished item, if it is one the runtime answers.
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
        ResponseItem::CustomToolCall { call_id, name, input, .. } => Some(ToolCall {
            call_id: call_id.clone(),
            name: name.clone(),
            namespace: None,
            payload: ToolPayload::Custom { input: input.clone() },
        }),
        _ => None,
    }
}

/// The provider's own way to ask for a command, in the words of the `shell` tool.
fn local_shell_arguments(action: &LocalShellAction) -> String {
    let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
    json!({ "command": command, "timeout_ms": timeout_ms, "workdir": working_directory }).to_string()
}

/// What the model reads of a call to a tool it was not offered.
pub(crate) fn unsupported(call: &ToolCall) -> FunctionCallOutputBody {
    FunctionCallOutputBody::Text(match call.payload {
        ToolPayload::Function { .. } => format!("unsupported call: {}", call.name),
        ToolPayload::Custom { .. } => format!("unsupported custom tool call: {}", call.name),
    })
}
