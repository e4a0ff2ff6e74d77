//! The events of a turn while it runs.

use runtime::protocol::{
    ErrorNotification, ItemId, ServerNotification, ThreadItem, ThreadTokenUsage, TurnId,
    TurnPlanUpdatedNotification,
};

use crate::request::{ApprovalRequest, PermissionRequest, ToolCallRequest, UserQuestion};

/// One thing that happened in a turn. Items, plans and the rest are the protocol's own types.
///
/// An item begins, grows and ends, in this order; what is asked about it comes after its beginning. Four events want an
/// answer. Dropping one is an answer too, and never a yes.
#[derive(Debug)]
#[non_exhaustive]
pub enum ThreadEvent {
    /// An item began; this is what is known of it so far.
    ItemStarted(ThreadItem),
    /// An item grew.
    Delta(Delta),
    /// An item ended; this is final.
    ItemCompleted(ThreadItem),
    /// The agent wants to run a command, change files or call a tool, and may not without a yes.
    Approval(ApprovalRequest),
    /// The agent wants more access than its sandbox gives.
    Permissions(PermissionRequest),
    /// The agent wants to know something.
    Question(UserQuestion),
    /// The agent calls a tool of your own.
    ToolCall(ToolCallRequest),
    /// The agent made or changed its plan.
    Plan(TurnPlanUpdatedNotification),
    /// All file changes of the turn so far, as one unified diff.
    Diff(String),
    /// Tokens the thread has used so far.
    Usage(ThreadTokenUsage),
    /// A model request failed. Where `will_retry` is set, the turn goes on.
    Error(ErrorNotification),
    /// Whatever else the runtime tells about the thread meanwhile, late news of earlier turns included.
    Other(Box<ServerNotification>),
}

impl ThreadEvent {
    /// The next piece of what the agent says, if this is one.
    pub fn message_delta(&self) -> Option<&str> {
        match self {
            Self::Delta(Delta { kind: DeltaKind::Message, text, .. }) => Some(text),
            _ => None,
        }
    }

    /// The event for a notification in this turn. Notifications of another turn stay as they are.
    pub(crate) fn of(told: ServerNotification, turn: Option<&TurnId>) -> Self {
        use ServerNotification as N;
        let is_own = |id: &TurnId| turn == Some(id);
        let delta = |kind, item_id, text| Self::Delta(Delta { item_id, kind, text });
        match told {
            N::ItemStarted(told) if is_own(&told.turn_id) => Self::ItemStarted(told.item),
            N::ItemCompleted(told) if is_own(&told.turn_id) => Self::ItemCompleted(told.item),
            N::AgentMessageDelta(told) if is_own(&told.turn_id) => {
                delta(DeltaKind::Message, told.item_id, told.delta)
            }
            N::PlanDelta(told) if is_own(&told.turn_id) => delta(DeltaKind::Plan, told.item_id, told.delta),
            N::ReasoningSummaryTextDelta(told) if is_own(&told.turn_id) => {
                delta(DeltaKind::ReasoningSummary, told.item_id, told.delta)
            }
            N::ReasoningTextDelta(told) if is_own(&told.turn_id) => {
                delta(DeltaKind::Reasoning, told.item_id, told.delta)
            }
            N::CommandExecutionOutputDelta(told) if is_own(&told.turn_id) => {
                delta(DeltaKind::CommandOutput, told.item_id, told.delta)
            }
            N::FileChangeOutputDelta(told) if is_own(&told.turn_id) => {
                delta(DeltaKind::PatchOutput, told.item_id, told.delta)
            }
            N::TurnPlanUpdated(told) if is_own(&told.turn_id) => Self::Plan(told),
            N::TurnDiffUpdated(told) if is_own(&told.turn_id) => Self::Diff(told.diff),
            N::ThreadTokenUsageUpdated(told) if is_own(&told.turn_id) => Self::Usage(told.token_usage),
            N::Error(told) if is_own(&told.turn_id) => Self::Error(told),
            told => Self::Other(Box::new(told)),
        }
    }
}

/// A piece of text to be appended to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The item it belongs to, which began before.
    pub item_id: ItemId,
    /// Which text of the item grew.
    pub kind: DeltaKind,
    /// The piece itself.
    pub text: String,
}

/// The texts that grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeltaKind {
    /// The agent's message.
    Message,
    /// A plan the agent proposes.
    Plan,
    /// A summary of the model's reasoning.
    ReasoningSummary,
    /// The model's reasoning, from models that show it.
    Reasoning,
    /// The output of a command.
    CommandOutput,
    /// The output of a patch.
    PatchOutput,
}
