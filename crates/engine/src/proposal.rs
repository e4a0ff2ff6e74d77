//! Proposals of running tools: shown and decided before they are carried out.

use protocol::{
    CommandExecutionRequestApprovalParams, CommandExecutionRequestApprovalResponse, DecisionOrigin,
    DynamicToolCallParams, FileChangeRequestApprovalParams, FileChangeRequestApprovalResponse,
    McpServerElicitationRequestParams, McpServerElicitationRequestResponse, OperationType,
    PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, ThreadItem, ToolEffects,
    ToolRequestApprovalParams, ToolRequestApprovalResponse, ToolRequestUserInputParams,
    ToolRequestUserInputResponse,
};
use serde_json::Value;

/// One operation that a call wants to do. It starts only after the decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Starts at 0 within the call: each retry needs a new decision.
    pub number: u32,
    pub kind: OperationType,
    pub effects: ToolEffects,
    /// The item that clients see while it runs, if any.
    pub item: Option<Box<ThreadItem>>,
    /// The item ends with `Input::ItemEnded`, possibly after the turn.
    pub outlives: bool,
    /// Arguments of the operation, for the record.
    pub arguments: Value,
    /// Digest of everything that determines the operation, so that an approval covers exactly this.
    pub digest: String,
    /// The question to ask a client. Unset: the policy already approved.
    pub question: Option<Box<Question>>,
    /// A client that approved all of these for the session is not asked again.
    pub session_keys: Vec<String>,
}

/// A question for a client. The engine fills in thread, turn and item.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    DynamicTool(DynamicToolCallParams),
    Command(CommandExecutionRequestApprovalParams),
    FileChange(FileChangeRequestApprovalParams),
    Permissions(PermissionsRequestApprovalParams),
    UserInput(ToolRequestUserInputParams),
    /// Of an MCP server, or about a call of one of its tools.
    Elicitation(McpServerElicitationRequestParams),
    /// Whether a tool without its own question may be called.
    Tool(ToolRequestApprovalParams),
}

/// A client's answer to the question of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Command(CommandExecutionRequestApprovalResponse),
    FileChange(FileChangeRequestApprovalResponse),
    Permissions(PermissionsRequestApprovalResponse),
    UserInput(ToolRequestUserInputResponse),
    Elicitation(McpServerElicitationRequestResponse),
    Tool(ToolRequestApprovalResponse),
}

impl Reply {
    /// Removes who decided, if the host reports it: that is for the record and not for the tool.
    pub(crate) fn take_origin(&mut self) -> Option<DecisionOrigin> {
        match self {
            Self::Command(answer) => answer.origin.take(),
            Self::FileChange(answer) => answer.origin.take(),
            Self::Permissions(answer) => answer.origin.take(),
            Self::UserInput(answer) => answer.origin.take(),
            Self::Elicitation(answer) => answer.origin.take(),
            Self::Tool(answer) => answer.origin.take(),
        }
    }
}

impl Question {
    /// Whether it waits for an approval and not for text input.
    pub(crate) fn is_approval(&self) -> bool {
        !matches!(self, Self::UserInput(_) | Self::DynamicTool(_))
    }
}
