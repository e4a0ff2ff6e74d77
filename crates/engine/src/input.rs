//! What can happen to a thread.

use std::sync::Arc;

use model::{ModelFailure, StreamEvent};
use protocol::{
    ContentItem, DynamicToolCallResponse, FunctionCallOutputBody, NonSteerableTurnKind, ResponseItem,
    ServerNotification, ThreadItem, TurnId, UserInput,
};
use serde_json::Value;

use crate::Step;

/// What the user said: as clients show it, and as the model gets it (images already read).
#[derive(Debug, Clone, PartialEq)]
pub struct UserText {
    pub shown: Vec<UserInput>,
    pub content: Vec<ContentItem>,
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
    /// Add input to the running turn.
    Steer(UserText),
    /// Stop the running turn.
    Interrupt,
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
    ToolFinished {
        call_id: String,
        outcome: ToolOutcome,
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

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    pub output: FunctionCallOutputBody,
    /// The finished item, where clients see the tool as one.
    pub item: Option<Box<ThreadItem>>,
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
