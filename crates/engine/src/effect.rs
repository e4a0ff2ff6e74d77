//! Effects of a thread. They are performed in order; a record is durable before anything after it happens.

use std::sync::Arc;

use model::PreparedRequest;
use protocol::{
    FunctionCallOutputBody, GrantedPermissionProfile, RolloutRecord, ServerNotification, TurnId, TurnStatus,
};

use crate::{HookOccasion, ProposalDecision, Question, Step, ToolCall};

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write to the journal and make it durable.
    Record(Box<RolloutRecord>),
    /// Notify the thread's subscribers.
    Emit(Box<ServerNotification>),
    /// Send `Input::ReadBack` with what the record says now.
    ReadBack { turn_id: TurnId, step: Arc<Step> },
    /// Capture the view for the next model request. While sources of tools start, `Input::Woken` comes first, once they
    /// have.
    CaptureStep,
    /// Send a request; its events come back with this attempt number.
    RequestModel { attempt: u64, request: PreparedRequest },
    /// Give the attempt up.
    CancelModel { attempt: u64 },
    /// Run a tool in the view its request was made from, with what was granted on top since.
    RunTool { call: ToolCall, turn_id: TurnId, step: Arc<Step>, grants: GrantedPermissionProfile },
    /// Save a rule that a client agreed to: commands that begin with these words run without a question. Comes when the
    /// decision is durable and before the record says that the command began, so that a crash loses neither. Saving the
    /// same rule again changes nothing.
    SaveRule { prefix: Vec<String> },
    /// Send a running tool the decision about its proposal.
    Decide { call_id: String, number: u32, decision: ProposalDecision },
    /// Give a running tool the output of a call it made.
    AnswerNested { call_id: String, output: FunctionCallOutputBody },
    /// Run the user's hooks; what they decide comes as `Input::HooksFinished`. Stopped like a tool.
    RunHooks { id: String, turn_id: TurnId, step: Arc<Step>, occasion: HookOccasion },
    /// Stop a running tool, or hooks; its end is no longer of interest.
    CancelTool { call_id: String },
    /// Ask a client. The answer comes back for this call.
    AskClient { call_id: String, question: Box<Question> },
    /// The question no longer needs an answer.
    WithdrawQuestion { call_id: String },
    /// Send `Input::Woken` at this time (Unix milliseconds).
    Wake { at_ms: i64 },
    /// Send `Input::DeadlinePassed` at this time, unless the attempt is cancelled before.
    Deadline { attempt: u64, at_ms: i64 },
    /// Send `Input::PursueGoal` with a fresh turn and step: the thread's goal is active and nothing else is to be done.
    PursueGoal,
    /// Wait until the calls that were just stopped have ended, and carry out what they say of their items first. Comes
    /// right after the effects that stop them, before anybody is told that the turn is over.
    AwaitStopped,
    /// The turn is suspended: it can be resumed from the record. No effect of it follows.
    Suspended,
    /// The turn is over. No effect of it follows.
    Finish(TurnStatus),
}

impl Effect {
    /// Stops something. Nothing has to be durable for it, and a failed write does not prevent it.
    pub fn stops(&self) -> bool {
        matches!(self, Self::CancelModel { .. } | Self::CancelTool { .. } | Self::WithdrawQuestion { .. })
    }
}

/// For a turn that is over: what ran has stopped before anybody is told.
pub(crate) fn stops_first(effects: Vec<Effect>) -> Vec<Effect> {
    let is_cancel =
        |effect: &Effect| matches!(effect, Effect::CancelModel { .. } | Effect::CancelTool { .. });
    let (mut ordered, rest): (Vec<_>, Vec<_>) = effects.into_iter().partition(is_cancel);
    if ordered.iter().any(|effect| matches!(effect, Effect::CancelTool { .. })) {
        ordered.push(Effect::AwaitStopped);
    }
    ordered.extend(rest);
    ordered
}
