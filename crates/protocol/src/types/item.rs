//! Items: the pieces a turn is made of.

use super::prelude::*;

/// Which part of a turn a message belongs to.
#[wire(snake_case)]
pub enum MessagePhase {
    /// Said along the way.
    Commentary,
    /// The answer the turn ends with.
    FinalAnswer,
}

/// A child agent as it was last seen.
#[wire]
pub struct CollabAgentState {
    pub status: CollabAgentStatus,
    /// The last message of a completed agent, or why it failed.
    pub message: Option<String>,
}

/// The status of a child agent.
#[wire]
pub enum CollabAgentStatus {
    /// Not started yet.
    PendingInit,
    Running,
    /// Its turn was stopped; it can continue.
    Interrupted,
    Completed,
    Errored,
    /// Closed.
    Shutdown,
    /// No agent has this id.
    NotFound,
}

/// A tool call about child agents.
#[wire]
pub enum CollabAgentTool {
    SpawnAgent,
    SendInput,
    /// Opens a closed one again.
    ResumeAgent,
    /// Waits until any of them is done.
    Wait,
    /// Ends one and all its descendants.
    CloseAgent,
}

/// The status of the call.
#[wire]
pub enum CollabAgentToolCallStatus {
    InProgress,
    Completed,
    Failed,
}

/// The apparent action of a command, derived from its text. For display.
#[wire(tag = "type")]
pub enum CommandAction {
    Read {
        /// The part of the command that does this.
        command: String,
        /// The file's name alone.
        name: String,
        path: String,
    },
    ListFiles {
        /// The part of the command that does this.
        command: String,
        path: Option<String>,
    },
    Search {
        /// The part of the command that does this.
        command: String,
        path: Option<String>,
        query: Option<String>,
    },
    Unknown {
        /// The part of the command in question.
        command: String,
    },
}

/// Who started a command.
#[wire]
#[derive(Default)]
pub enum CommandExecutionSource {
    /// The agent.
    #[default]
    Agent,
    /// The user, by `thread/shellCommand`.
    UserShell,
    /// The agent, in a terminal that may outlive the turn.
    UnifiedExecStartup,
    /// The agent, by typing into such a terminal.
    UnifiedExecInteraction,
}

/// The status of a command.
#[wire]
pub enum CommandExecutionStatus {
    InProgress,
    Completed,
    Failed,
    /// Approval was refused, so it did not run.
    Declined,
}

/// The status of the call.
#[wire]
pub enum DynamicToolCallStatus {
    InProgress,
    Completed,
    /// The client reported a failure, responded with an error, or sent an invalid response.
    Failed,
}

/// One changed file.
#[wire]
pub struct FileUpdateChange {
    pub path: String,
    pub kind: PatchChangeKind,
    /// The file's content when added or deleted, else a unified diff. A rename is noted at its end.
    pub diff: String,
}

/// A part of a prompt from a hook.
#[wire]
pub struct HookPromptFragment {
    pub text: String,
    /// Id of the hook's run.
    pub hook_run_id: String,
}

/// Why a call failed.
#[wire]
pub struct McpToolCallError {
    pub message: String,
}

/// The MCP server's result, unchanged.
#[wire]
pub struct McpToolCallResult {
    /// MCP content blocks.
    pub content: Vec<Value>,
    pub structured_content: Option<Value>,
}

/// The status of the call.
#[wire]
pub enum McpToolCallStatus {
    InProgress,
    Completed,
    Failed,
}

/// The memories a message rests on.
#[wire]
pub struct MemoryCitation {
    pub entries: Vec<MemoryCitationEntry>,
    /// The threads those memories come from.
    pub thread_ids: Vec<String>,
}

/// A place in a memory file.
#[wire]
pub struct MemoryCitationEntry {
    pub path: String,
    pub line_start: u32,
    pub line_end: u32,
    pub note: String,
}

/// The status of a patch.
#[wire]
pub enum PatchApplyStatus {
    InProgress,
    Completed,
    Failed,
    /// Approval was refused, so nothing was changed.
    Declined,
}

/// The kind of change to a file.
#[wire(tag = "type")]
pub enum PatchChangeKind {
    Add,
    Delete,
    Update {
        /// The new path when the file is also renamed.
        #[serde(rename = "move_path")]
        move_path: Option<String>,
    },
}

/// One piece of a turn. Tool items keep the model's call id; others may get ids such as `item-1` once the
/// thread is read back from its record.
#[wire(tag = "type", tag_first)]
pub enum ThreadItem {
    /// A message of the user.
    UserMessage { id: ItemId, content: Vec<UserInput> },
    /// A prompt from a hook for the agent to go on with. Shown live only in threads with raw events, and always in
    /// history.
    HookPrompt { id: ItemId, fragments: Vec<HookPromptFragment> },
    /// A message of the agent.
    #[frequent]
    AgentMessage {
        id: ItemId,
        /// Empty in `item/started`.
        text: String,
        /// Null when the model does not tell.
        phase: Option<MessagePhase>,
        memory_citation: Option<MemoryCitation>,
    },
    /// A plan the agent proposes in plan mode. Its id is the turn's id and `-plan`.
    Plan {
        id: ItemId,
        /// Empty in `item/started`.
        text: String,
    },
    /// The model's reasoning.
    #[frequent]
    Reasoning {
        id: ItemId,
        /// Readable summaries, one per part.
        #[serde(default)]
        summary: Vec<String>,
        /// Raw reasoning, from models that show it.
        #[serde(default)]
        content: Vec<String>,
    },
    /// A command in a shell.
    #[frequent]
    CommandExecution {
        id: ItemId,
        /// One shell-quoted line.
        command: String,
        cwd: String,
        /// The terminal it runs in; null for a plain shell call.
        process_id: Option<String>,
        #[serde(default)]
        source: CommandExecutionSource,
        status: CommandExecutionStatus,
        /// Its apparent actions, for display.
        command_actions: Vec<CommandAction>,
        /// Standard output and error together; null when there is none.
        aggregated_output: Option<String>,
        /// Null while it runs; -1 when it was aborted.
        exit_code: Option<i32>,
        /// Null while it runs.
        duration_ms: Option<i64>,
    },
    /// A patch to files.
    FileChange {
        id: ItemId,
        /// Sorted by path.
        changes: Vec<FileUpdateChange>,
        status: PatchApplyStatus,
        /// Why it was refused, or was not applied, as the model gets it.
        #[omit]
        reason: Option<String>,
    },
    /// A call to an MCP server.
    McpToolCall {
        id: ItemId,
        /// The server's name in the configuration.
        server: String,
        tool: String,
        status: McpToolCallStatus,
        arguments: Value,
        /// Null while it runs and when it failed.
        result: Option<McpToolCallResult>,
        /// Set when the call failed.
        error: Option<McpToolCallError>,
        /// Null while it runs.
        duration_ms: Option<i64>,
    },
    /// A call to a tool the client runs.
    DynamicToolCall {
        id: ItemId,
        /// The group of the tool, if it has one.
        #[omit]
        namespace: Option<String>,
        tool: String,
        arguments: Value,
        status: DynamicToolCallStatus,
        /// The client's result; null until it is there.
        content_items: Option<Vec<DynamicToolCallOutputContentItem>>,
        /// Null while it runs.
        success: Option<bool>,
        /// Null while it runs.
        duration_ms: Option<i64>,
    },
    /// A step in the work with child agents.
    CollabAgentToolCall {
        id: ItemId,
        tool: CollabAgentTool,
        status: CollabAgentToolCallStatus,
        /// The thread that acts.
        sender_thread_id: ThreadId,
        /// The children's threads. A new child is listed once it exists.
        receiver_thread_ids: Vec<ThreadId>,
        /// The message to the children, where there is one.
        prompt: Option<String>,
        /// The model of a new child.
        model: Option<String>,
        /// The effort of a new child.
        reasoning_effort: Option<ReasoningEffort>,
        /// By thread id.
        agents_states: BTreeMap<String, CollabAgentState>,
    },
    /// A search the provider ran.
    WebSearch {
        id: ItemId,
        query: String,
        /// Null until it is known.
        action: Option<WebSearchAction>,
    },
    /// The agent looked at an image file.
    ImageView { id: ItemId, path: String },
    /// An image the provider made.
    ImageGeneration {
        id: ItemId,
        /// In the provider's terms.
        status: String,
        /// The prompt the provider used instead of the model's.
        revised_prompt: Option<String>,
        /// The image in base64.
        result: String,
        /// The file it was saved to.
        #[omit]
        saved_path: Option<String>,
    },
    /// A message from outside that the model got as the output of a tool.
    FunctionCallOutput {
        id: ItemId,
        /// The tool that delivered it.
        name: String,
        #[omit]
        namespace: Option<String>,
        output: FunctionCallOutputBody,
    },
    /// A review began. Its id is the turn's id.
    EnteredReviewMode {
        id: ItemId,
        /// A short description of the target.
        review: String,
    },
    /// A review ended. Its id is the turn's id.
    ExitedReviewMode {
        id: ItemId,
        /// The review as plain text, findings included.
        review: String,
    },
    /// The history before this point was replaced by a summary.
    ContextCompaction { id: ItemId },
}

/// An action of a web search.
#[wire(tag = "type")]
pub enum WebSearchAction {
    Search { query: Option<String>, queries: Option<Vec<String>> },
    OpenPage { url: Option<String> },
    FindInPage { url: Option<String>, pattern: Option<String> },
    Other,
}

impl ThreadItem {
    /// Every item has one.
    pub fn id(&self) -> &ItemId {
        match self {
            Self::UserMessage { id, .. }
            | Self::HookPrompt { id, .. }
            | Self::AgentMessage { id, .. }
            | Self::Plan { id, .. }
            | Self::Reasoning { id, .. }
            | Self::CommandExecution { id, .. }
            | Self::FileChange { id, .. }
            | Self::McpToolCall { id, .. }
            | Self::DynamicToolCall { id, .. }
            | Self::CollabAgentToolCall { id, .. }
            | Self::WebSearch { id, .. }
            | Self::ImageView { id, .. }
            | Self::ImageGeneration { id, .. }
            | Self::FunctionCallOutput { id, .. }
            | Self::EnteredReviewMode { id, .. }
            | Self::ExitedReviewMode { id, .. }
            | Self::ContextCompaction { id } => id,
        }
    }
}
