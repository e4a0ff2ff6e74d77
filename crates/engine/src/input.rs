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

/// The user's words: as clients show them, and as the model gets them (images already read).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserText {
    /// The id of the message, where whoever sent it chose one.
    pub id: Option<ItemId>,
    pub shown: Vec<UserInput>,
    pub content: Vec<ContentItem>,
    /// Skills it asks for, which the model reads after it.
    pub skills: Vec<SkillText>,
    /// Plugins it asks for.
    pub plugins: Vec<PluginText>,
    /// A message from outside that comes with it, or instead of it.
    pub outside: Option<OutsideMessage>,
    /// The whole of what the client wants the model to know beside it. Only what is new or changed is told.
    pub additional: BTreeMap<String, AdditionalContextEntry>,
}

impl UserText {
    /// Words that were typed, and nothing else.
    pub fn typed(text: &str) -> Self {
        Self {
            shown: vec![UserInput::Text { text: text.to_owned(), text_elements: Vec::new() }],
            content: vec![ContentItem::InputText { text: text.to_owned() }],
            ..Self::default()
        }
    }
}

/// A message from outside, which the model gets as the output of a tool: it says nothing in the user's name.
#[derive(Debug, Clone, PartialEq)]
pub struct OutsideMessage {
    /// The tool that brings it.
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

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// Begin a turn. Refused while another runs: steer instead.
    Start {
        turn_id: TurnId,
        text: UserText,
        output_schema: Option<Value>,
        step: Arc<Step>,
    },
    /// Take up a turn that a restart cut off, where it was. Refused while another runs.
    Resume {
        turn_id: TurnId,
        /// Accepted and not yet put before the model, with the ids they are shown under.
        said: Vec<(ItemId, UserText)>,
        earlier: Vec<Earlier>,
        step: Arc<Step>,
    },
    /// Add input to the running turn.
    Steer(UserText),
    /// Stop the running turn, because somebody wants it to stop.
    Interrupt,
    /// A running tool makes a call, to be answered with `Effect::AnswerNested`.
    NestedCall {
        turn_id: TurnId,
        /// The call of the tool that makes it.
        parent: String,
        call: ToolCall,
        /// The step that the tool began in. The call runs in its environments.
        began_in: Arc<Step>,
    },
    /// Stop the running turn, because another is to begin. A goal stays active.
    MakeWay,
    /// The process stops, which nobody asked for. The running turn is suspended if everything in it waits for a client, or
    /// if its host will resume it. Any other is stopped, and the model is told why.
    Close {
        /// Nothing goes on without the host, and the record has what it needs to resume the turn.
        waits_for_host: bool,
    },
    /// Suspend the running turn, to be continued with `Resume`: now, or once everything in it waits for a client.
    Suspend {
        when_pending: bool,
    },
    /// Begin a turn that replaces the history by a summary.
    Compact {
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// Begin a turn in which a reviewer with a history of its own looks at changes.
    Review {
        turn_id: TurnId,
        order: ReviewOrder,
        step: Arc<Step>,
    },
    /// Set the thread's goal. Work on an active one begins at once where no turn runs.
    SetGoal {
        goal: Box<ThreadGoal>,
        /// Of the turn that begins, if one does. Unset: none may begin now.
        begin: Option<(TurnId, Arc<Step>)>,
    },
    /// Remove the thread's goal.
    ClearGoal,
    /// Begin a turn for the thread's goal, if it is active and no turn runs.
    PursueGoal {
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// The time of `Effect::Deadline` is over.
    DeadlinePassed {
        attempt: u64,
    },
    /// Drop the last turns from the history. Only between turns.
    Rollback {
        num_turns: u32,
        /// Tokens are counted anew under this id.
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// The history in the record after a rollback.
    ReadBack {
        history: Vec<ResponseItem>,
        context: Option<Value>,
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// An event of the attempt with this number. Others are of an attempt that was given up.
    Model {
        attempt: u64,
        event: Result<StreamEvent, ModelFailure>,
    },
    /// Something a running tool wants clients to see.
    ToolProgress {
        call_id: String,
        notification: Box<ServerNotification>,
    },
    /// A running tool proposes its next effect. It waits for `Effect::Decide`.
    Proposed {
        /// The turn its call was made in.
        turn_id: TurnId,
        call_id: String,
        proposal: Box<Proposal>,
    },
    /// A client answered a tool's question; `Err` says why there is no usable answer.
    Answered {
        call_id: String,
        reply: Box<Result<Reply, String>>,
    },
    ToolFinished {
        call_id: String,
        outcome: ToolOutcome,
    },
    /// Hooks of `Effect::RunHooks` have all ended.
    HooksFinished {
        id: String,
        verdict: HookVerdict,
    },
    /// The end of an item that may have outlived its turn.
    ItemEnded {
        turn_id: TurnId,
        item: Box<ThreadItem>,
    },
    /// Something clients should see of an item that may have outlived its turn.
    Told(Box<ServerNotification>),
    /// A child agent came to an end or to a halt.
    ChildEnded(Box<ChildEnd>),
    /// A command of the user's own: within the running turn, or as a turn of its own.
    UserShell {
        turn_id: TurnId,
        call_id: String,
        command: String,
        step: Arc<Step>,
    },
    /// A client answered a dynamic tool call; `Err` says why there is no usable answer.
    DynamicToolAnswered {
        call_id: String,
        answer: Result<DynamicToolCallResponse, String>,
    },
    /// The view for the next model request.
    StepCaptured(Arc<Step>),
    /// The time asked for by `Effect::Wake` has come.
    Woken,
    /// A record could not be made durable. No effect after it was performed, but for those that stop something.
    StorageFailed(Box<StorageFailure>),
}

/// A record could not be made durable: the state clients and host are in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StorageFailure {
    pub message: String,
    /// Items whose beginning clients were not notified of. They are not notified of their end either.
    pub unseen: HashSet<ItemId>,
    /// Set where a host keeps the record and its connection is gone: the operations that it has as started. No other
    /// has begun, and the turn waits for the host.
    pub started_at_host: Option<HashSet<OperationId>>,
}

/// The end of a child agent, or its halt.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    /// The name that tools know it by.
    pub id: String,
    /// The turn it ended with, by which the record knows what it has told. Unset for one that has no turns here.
    pub turn_id: Option<TurnId>,
    /// For the model to read. Unset when it knows already.
    pub status: Option<Value>,
    /// The end of an operation that went on after its call.
    pub operation: Option<OperationEnd>,
}

/// How an operation ended that went on after its call.
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
    /// The operation goes on elsewhere; its end comes as `Input::ChildEnded`.
    pub goes_on: bool,
    /// How the thread's goal stands now, where the model said so.
    pub goal: Option<ThreadGoalStatus>,
}

impl ToolOutcome {
    /// A text that says it worked.
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

    /// A text that says why it did not.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(text) }
    }
}
