//! What can happen to a thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{ModelFailure, StreamEvent};
use protocol::{
    AdditionalContextEntry, ContentItem, DynamicToolCallOutputContentItem, DynamicToolCallResponse,
    FunctionCallOutputBody, ItemId, NonSteerableTurnKind, OperationId, ResponseItem, ServerNotification,
    ThreadItem, TurnId, UserInput,
};
use serde_json::Value;

use crate::{Earlier, Proposal, Reply, Step};

/// What the user said: as clients show it, and as the model gets it (images already read).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserText {
    pub shown: Vec<UserInput>,
    pub content: Vec<ContentItem>,
    /// Skills it asks for, which the model reads after it.
    pub skills: Vec<SkillText>,
    /// The whole of what the client wants the model to know beside it. Only what is new or changed is told.
    pub additional: BTreeMap<String, AdditionalContextEntry>,
}

/// A skill, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    pub name: String,
    pub path: String,
    /// The whole file.
    pub text: String,
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
    /// Stop the running turn, because the process stops. Nobody asked for that, and the model is told so.
    CutOff,
    /// Put the running turn away, to be taken up again with `Resume`.
    Suspend,
    /// Begin a turn that replaces the history by a summary.
    Compact {
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// Drop the last turns from the history. Only between turns.
    Rollback {
        num_turns: u32,
        /// Tokens are counted anew under this id.
        turn_id: TurnId,
        step: Arc<Step>,
    },
    /// What the record says after a rollback.
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
    /// What a running tool wants to do next. It waits for `Effect::Decide`.
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
    /// What was recorded could not be made durable; nothing after it counts.
    StorageFailed {
        message: String,
    },
}

/// What became of a child agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    /// What tools call it by.
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

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub output: FunctionCallOutputBody,
    /// The finished item, where clients see the tool as one.
    pub item: Option<Box<ThreadItem>>,
    /// Whether it did what it was asked to.
    pub success: bool,
    /// What the turn has changed in files so far, when this call changed some.
    pub diff: Option<String>,
    /// What the model is warned of beside the output.
    pub note: Option<String>,
    /// The operation goes on elsewhere; its end comes as `Input::ChildEnded`.
    pub goes_on: bool,
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
            goes_on: false,
        }
    }

    /// A text that says why it did not.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(text) }
    }
}

/// Why an input was not accepted. Nothing changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("input must not be empty")]
    EmptyInput,
    #[error("no active turn to steer")]
    NoActiveTurn,
    #[error("cannot steer a {} turn", match .0 { NonSteerableTurnKind::Review => "review", NonSteerableTurnKind::Compact => "compact" })]
    NotSteerable(NonSteerableTurnKind),
    #[error("a turn is already running")]
    TurnRunning,
    #[error("Cannot rollback while a turn is in progress.")]
    RollbackWhileRunning,
    #[error("numTurns must be >= 1")]
    NothingToRollBack,
}
