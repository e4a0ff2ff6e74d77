//! What a running tool wants to do, shown and decided before it is done.

use protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicToolCallParams,
    FileChangeApprovalDecision, FileChangeRequestApprovalParams, OperationType,
    PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, ThreadItem, ToolApprovalDecision,
    ToolEffects, ToolRequestApprovalParams, ToolRequestUserInputParams, ToolRequestUserInputResponse,
};
use serde_json::Value;

/// One thing a call wants to do. Nothing of it happens before the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// From 0 within the call: what is tried again is decided again.
    pub number: u32,
    pub kind: OperationType,
    pub effects: ToolEffects,
    /// As clients see it while it runs, if they do.
    pub item: Option<Box<ThreadItem>>,
    /// The item's end is told by `Input::ItemEnded`, possibly after the turn.
    pub outlives: bool,
    /// What is going to happen, for the record.
    pub arguments: Value,
    /// Over everything that decides what happens, so that a yes is a yes to exactly this.
    pub digest: String,
    /// What to ask. Unset: the policy already said yes.
    pub question: Option<Box<Question>>,
    /// Who agreed to all of these for the session is not asked again.
    pub session_keys: Vec<String>,
}

/// What is asked of a client. The engine fills in whose question it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    DynamicTool(DynamicToolCallParams),
    Command(CommandExecutionRequestApprovalParams),
    FileChange(FileChangeRequestApprovalParams),
    Permissions(PermissionsRequestApprovalParams),
    UserInput(ToolRequestUserInputParams),
    /// Whether a tool that has no question of its own may be called.
    Tool(ToolRequestApprovalParams),
}

/// What a client answered to a question of that kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Command(CommandExecutionApprovalDecision),
    FileChange(FileChangeApprovalDecision),
    Permissions(PermissionsRequestApprovalResponse),
    UserInput(ToolRequestUserInputResponse),
    Tool(ToolApprovalDecision),
}

/// What the tool hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Do it now. It is in the record as begun.
    Run {
        /// A client said yes to this very proposal, now or for the session.
        agreed: bool,
        /// Commands that begin with these words are allowed from now on.
        amendment: Option<Vec<String>>,
    },
    /// Propose this command instead. Whoever asked for it has agreed to it; policy and sandbox have not.
    Instead {
        command: Vec<String>,
    },
    /// Propose this patch instead. As with a command, only whoever asked for it has agreed to it.
    Patch {
        input: String,
    },
    Permissions(PermissionsRequestApprovalResponse),
    UserInput(ToolRequestUserInputResponse),
    /// Do not. Clients have been told.
    Declined,
}

impl Question {
    /// Whether it waits for a yes or a no rather than for words.
    pub(crate) fn is_approval(&self) -> bool {
        !matches!(self, Self::UserInput(_) | Self::DynamicTool(_))
    }
}
