//! Items of the Responses API: what the model reads and what it writes.

use super::prelude::*;

/// One part of a message.
#[wire(snake_case, tag = "type", tag_first)]
pub enum ContentItem {
    /// From the user or the developer.
    InputText {
        text: String,
    },
    InputImage {
        image_url: String,
    },
    /// From the model.
    OutputText {
        text: String,
    },
}

/// One part of a tool's result.
#[wire(snake_case, tag = "type")]
pub enum FunctionCallOutputContentItem {
    InputText {
        text: String,
    },
    InputImage {
        image_url: String,
        #[omit]
        detail: Option<ImageDetail>,
    },
}

/// A snapshot of the working copy, as a commit no branch leads to.
#[wire(snake_case)]
pub struct GhostCommit {
    /// The commit.
    pub id: String,
    pub parent: Option<String>,
    /// Were not tracked when the snapshot was taken.
    pub preexisting_untracked_files: Vec<String>,
    /// Were not tracked when the snapshot was taken.
    pub preexisting_untracked_dirs: Vec<String>,
}

/// The level of detail of an image for the model.
#[wire]
pub enum ImageDetail {
    Auto,
    Low,
    High,
    Original,
}

/// The action of a local shell call.
#[wire(tag = "type")]
pub enum LocalShellAction {
    Exec {
        /// Program and arguments.
        command: Vec<String>,
        env: Option<BTreeMap<String, String>>,
        #[serde(rename = "timeout_ms")]
        timeout_ms: Option<u64>,
        user: Option<String>,
        #[serde(rename = "working_directory")]
        working_directory: Option<String>,
    },
}

/// The status of a local shell call.
#[wire(snake_case)]
pub enum LocalShellStatus {
    Completed,
    InProgress,
    Incomplete,
}

/// A piece of raw reasoning.
#[wire(snake_case, tag = "type")]
pub enum ReasoningItemContent {
    ReasoningText { text: String },
    Text { text: String },
}

/// A piece of a reasoning summary.
#[wire(snake_case, tag = "type")]
pub enum ReasoningItemReasoningSummary {
    SummaryText { text: String },
}

/// One entry of what a model is sent and gives back. Field names are snake_case.
#[wire(snake_case, tag = "type", tag_first)]
pub enum ResponseItem {
    #[frequent]
    Message {
        #[omit]
        id: Option<String>,
        /// `user`, `assistant` or `developer`.
        role: String,
        #[frequent(with = "crate::tag_first::parts")]
        content: Vec<ContentItem>,
        #[omit]
        end_turn: Option<bool>,
        #[omit]
        phase: Option<MessagePhase>,
    },
    #[frequent]
    Reasoning {
        #[omit]
        id: Option<String>,
        summary: Vec<ReasoningItemReasoningSummary>,
        content: Option<Vec<ReasoningItemContent>>,
        /// Only the provider can read it; sent back unchanged.
        encrypted_content: Option<String>,
    },
    /// A call to the shell tool the provider defines.
    LocalShellCall {
        #[omit]
        id: Option<String>,
        call_id: Option<String>,
        status: LocalShellStatus,
        action: LocalShellAction,
    },
    /// A call to a tool that takes JSON.
    #[frequent]
    FunctionCall {
        #[omit]
        id: Option<String>,
        name: String,
        #[omit]
        namespace: Option<String>,
        /// JSON as text, as the model wrote it.
        arguments: String,
        /// Ties the call to its output.
        call_id: String,
    },
    /// A search for tools that were not offered at first.
    ToolSearchCall {
        #[omit]
        id: Option<String>,
        call_id: Option<String>,
        #[omit]
        status: Option<String>,
        /// Who searches: `client` or `server`.
        execution: String,
        arguments: Value,
    },
    #[frequent]
    FunctionCallOutput {
        call_id: String,
        #[frequent(with = "crate::tag_first::output")]
        output: FunctionCallOutputBody,
    },
    /// A call to a tool that takes plain text.
    #[frequent]
    CustomToolCall {
        #[omit]
        id: Option<String>,
        #[omit]
        status: Option<String>,
        /// Ties the call to its output.
        call_id: String,
        name: String,
        input: String,
    },
    #[frequent]
    CustomToolCallOutput {
        call_id: String,
        #[omit]
        name: Option<String>,
        #[frequent(with = "crate::tag_first::output")]
        output: FunctionCallOutputBody,
    },
    ToolSearchOutput {
        call_id: Option<String>,
        status: String,
        /// Who searched: `client` or `server`.
        execution: String,
        /// Definitions of the tools found.
        tools: Vec<Value>,
    },
    /// A search the provider ran.
    WebSearchCall {
        #[omit]
        id: Option<String>,
        #[omit]
        status: Option<String>,
        #[omit]
        action: Option<ResponsesApiWebSearchAction>,
    },
    /// An image the provider made.
    ImageGenerationCall {
        id: String,
        status: String,
        /// The prompt the provider used instead of the model's.
        #[omit]
        revised_prompt: Option<String>,
        /// The image in base64.
        result: String,
    },
    /// Kept in the record for undo; the model does not see it.
    GhostSnapshot { ghost_commit: GhostCommit },
    /// A summary of earlier history, made by the provider.
    #[serde(alias = "compaction_summary")]
    Compaction {
        /// Only the provider can read it; sent back unchanged.
        encrypted_content: String,
    },
    /// Something newer than this release.
    #[serde(other)]
    Other,
}

/// An action of a web search.
#[wire(snake_case, tag = "type")]
pub enum ResponsesApiWebSearchAction {
    Search {
        #[omit]
        queries: Option<Vec<String>>,
        #[omit]
        query: Option<String>,
    },
    OpenPage {
        #[omit]
        url: Option<String>,
    },
    FindInPage {
        #[omit]
        pattern: Option<String>,
        #[omit]
        url: Option<String>,
    },
    /// Something newer than this release.
    #[serde(other)]
    Other,
}

/// Sent for each item the model gives, in threads started with `experimentalRawEvents`.
#[wire]
pub struct RawResponseItemCompletedNotification {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub item: ResponseItem,
}

/// The output of a tool: one text, or several parts.
#[wire(untagged)]
pub enum FunctionCallOutputBody {
    Text(String),
    Content(Vec<FunctionCallOutputContentItem>),
}
