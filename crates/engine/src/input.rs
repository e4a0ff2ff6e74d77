//! Inputs of a thread.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use model::{ModelFailure, StreamEvent};
use protocol::{
    AdditionalContextEntry, ContentItem, DynamicToolCallOutputContentItem, DynamicToolCallResponse,
    FunctionCallOutputBody, ItemId, OperationId, ResponseItem, ServerNotification, ThreadGoal,
    ThreadGoalStatus, ThreadItem, TurnId, UserInput,
};
use serde_json::Value;

use crate::{Earlier, HookVerdict, Proposal, Reply, ReviewOrder, Step, ToolCall};

/// The user's message, as clients show it and as the model gets it (images already read).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserText {
    /// The message's id, if the sender chose one.
    pub id: Option<ItemId>,
    pub shown: Vec<UserInput>,
    pub content: Vec<ContentItem>,
    /// Skills that the message mentions. Their text follows the message.
    pub skills: Vec<SkillText>,
    /// Plugins that the message mentions.
    pub plugins: Vec<PluginText>,
    /// A message from another program, sent with the user's message or instead of it.
    pub outside: Option<OutsideMessage>,
    /// All additional context of the client. Only new or changed entries are sent to the model.
    pub additional: BTreeMap<String, AdditionalContextEntry>,
}

impl UserText {
    /// A plain text message.
    pub fn typed(text: &str) -> Self {
        Self {
            shown: vec![UserInput::Text { text: text.to_owned(), text_elements: Vec::new() }],
            content: vec![ContentItem::InputText { text: text.to_owned() }],
            ..Self::default()
        }
    }
}

/// A message from another program. The model gets it as a tool output, so that it does not speak for the user.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideMessage {
    /// The tool whose output it appears to be.
    pub name: String,
    pub namespace: Option<String>,
    pub output: FunctionCallOutputBody,
}

/// A skill, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    pub name: String,
    pub path: String,
    /// The whole file.
    pub text: String,
}

/// The contents of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginText {
    pub name: String,
    pub has_skills: bool,
    /// The names of its MCP servers.
    pub servers: Vec<String>,
    /// The names of its apps.
    pub apps: Vec<String>,
}

/// One event for a thread.
#[derive(Debug, Clone)]
pub enum Input {
    /// Start a turn. Refused while another runs: steer instead.
    Start {
        turn_id: TurnId,
        text: UserText,
        output_schema: Option<Value>,
        step: Arc<Step>,
    },
    /// Resume a turn that a restart interrupted. Refused while another runs.
    Resume {
        turn_id: TurnId,
        /// Accepted input that the model has not seen, with its item ids.
        said: Vec<(ItemId, UserText)>,
        earlier: Vec<Earlier>,
        step: Arc<Step>,
    },
    /// Add input to the running turn.
    Steer(UserText),
    /// Stop the running turn, at a client's request.
    Interrupt,
    /// A running tool makes a call, to be answered with `Effect::AnswerNested`.
    NestedCall {
        turn_id: TurnId,
        /// The call of the tool that makes it.
        parent: String,
        call: ToolCall,
        /// The step that the tool started with. The call runs in its environments.
        began_in: Arc<Step>,
    },
    /// Stop the running turn so that another can start. A goal stays active.
    MakeWay,
    /// The process stops. The running turn is suspended if everything in it waits for a client, or if its host will
    /// resume it. Any other turn is stopped, and the model is told why.
    Close {
        /// The host is gone and needed to continue; the record suffices to resume the turn.
        waits_for_host: bool,
    },
    /// Suspend the running turn, to be continued with `Resume`: now, or as soon as everything in it waits for a client.
    Suspend {
        when_pending: bool,
    },
    /// Start a turn that replaces the history by a summary.
    Compact {
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// Start a turn in which a reviewer with its own history reviews changes.
    Review {
        turn_id: TurnId,
        order: ReviewOrder,
        step: Arc<Step>,
    },
    /// Set the thread's goal. If no turn runs, work on an active goal starts at once.
    SetGoal {
        goal: Box<ThreadGoal>,
        /// The turn to start. Unset: none may start now.
        begin: Option<(TurnId, Arc<Step>)>,
    },
    /// Remove the thread's goal.
    ClearGoal,
    /// Start a turn for the thread's goal, if it is active and no turn runs.
    PursueGoal {
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// The time of `Effect::Deadline` has passed.
    DeadlinePassed {
        attempt: u64,
    },
    /// Drop the last turns from the history. Only between turns.
    Rollback {
        num_turns: u32,
        /// Token usage is reported under this id.
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// The history from the record, after a rollback.
    ReadBack {
        history: Vec<ResponseItem>,
        context: Option<Value>,
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// An event of the attempt with this number. Events of cancelled attempts are ignored.
    Model {
        attempt: u64,
        event: Result<StreamEvent, ModelFailure>,
    },
    /// A notification of a running tool, for clients.
    ToolProgress {
        call_id: String,
        notification: Box<ServerNotification>,
    },
    /// A running tool proposes its next effect. It waits for `Effect::Decide`.
    Proposed {
        /// The turn in which the call was made.
        turn_id: TurnId,
        call_id: String,
        proposal: Box<Proposal>,
    },
    /// A client answered a tool's question; `Err` says why the answer is unusable.
    Answered {
        call_id: String,
        reply: Box<Result<Reply, String>>,
    },
    ToolFinished {
        call_id: String,
        outcome: ToolOutcome,
    },
    /// All hooks of an `Effect::RunHooks` ended.
    HooksFinished {
        id: String,
        verdict: HookVerdict,
    },
    /// The end of an item that may have outlived its turn.
    ItemEnded {
        turn_id: TurnId,
        item: Box<ThreadItem>,
    },
    /// A notification about an item that may have outlived its turn.
    ItemNotification(Box<ServerNotification>),
    /// A child agent ended or stopped.
    ChildEnded(Box<ChildEnd>),
    /// A command that the user runs directly: within the running turn, or as its own turn.
    UserShell {
        turn_id: TurnId,
        call_id: String,
        command: String,
        step: Arc<Step>,
    },
    /// A client answered a dynamic tool call; `Err` says why the answer is unusable.
    DynamicToolAnswered {
        call_id: String,
        answer: Result<DynamicToolCallResponse, String>,
    },
    /// The view for the next model request.
    StepCaptured(Arc<Step>),
    /// The time asked for by `Effect::Wake` has come.
    Woken,
    /// A record could not be made durable. No later effect was performed, except those that stop something.
    StorageFailed(Box<StorageFailure>),
}

/// A record could not be made durable: what clients and host know.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StorageFailure {
    pub message: String,
    /// Items whose start clients were not notified of. They get no notification of the end either.
    pub unseen: HashSet<ItemId>,
    /// Set if a host keeps the record and its connection is gone: the operations that the host recorded as started. No
    /// other has started, and the turn waits for the host.
    pub started_at_host: Option<HashSet<OperationId>>,
}

/// A child agent ended or stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    /// The agent's id in tool calls.
    pub id: String,
    /// The child's last turn, recorded to avoid a second notification. Unset for a child that has no turns here.
    pub turn_id: Option<TurnId>,
    /// The status for the model. Unset if the model knows it already.
    pub status: Option<Value>,
    /// The end of an operation that outlived its call.
    pub operation: Option<OperationEnd>,
}

/// How an operation that outlived its call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationEnd {
    pub operation_id: OperationId,
    pub success: bool,
    pub output: Vec<DynamicToolCallOutputContentItem>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub output: FunctionCallOutputBody,
    /// The finished item, where clients see the tool as one.
    pub item: Option<Box<ThreadItem>>,
    /// Whether it did what it was asked to.
    pub success: bool,
    /// The diff of the turn so far, when this call changed files.
    pub diff: Option<String>,
    /// A warning for the model beside the output.
    pub note: Option<String>,
    /// Context from hooks for the model, beside the output.
    pub contexts: Vec<String>,
    /// The operation continues elsewhere; its end comes as `Input::ChildEnded`.
    pub goes_on: bool,
    /// The goal's new status, if the model reported one.
    pub goal: Option<ThreadGoalStatus>,
}

impl ToolOutcome {
    /// A successful text output.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            output: FunctionCallOutputBody::Text(text.into()),
            item: None,
            success: true,
            diff: None,
            note: None,
            contexts: Vec::new(),
            goes_on: false,
            goal: None,
        }
    }

    /// A failure with its message.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(text) }
    }
}
