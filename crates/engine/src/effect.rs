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
    /// Send `Input::ReadBack` with the history that the record has now.
    ReadBack { turn_id: TurnId, step: Arc<Step> },
    /// Capture the view for the next model request. If tool sources are still starting, send `Input::Woken` when they
    /// are ready first.
    CaptureStep,
    /// Send a request; its events come back with this attempt number.
    RequestModel { attempt: u64, request: PreparedRequest },
    /// Cancel the attempt.
    CancelModel { attempt: u64 },
    /// Run a tool with the step that its request was made from, and the permissions granted since.
    RunTool { call: ToolCall, turn_id: TurnId, step: Arc<Step>, grants: GrantedPermissionProfile },
    /// Save a rule that a client approved: commands with this prefix run without a question. Emitted after the decision
    /// is durable and before the operation is recorded as started, so that a crash loses neither. Saving a rule twice
    /// is harmless.
    SaveRule { prefix: Vec<String> },
    /// Send a running tool the decision about its proposal.
    Decide { call_id: String, number: u32, decision: ProposalDecision },
    /// Send a running tool the output of a nested call.
    AnswerNested { call_id: String, output: FunctionCallOutputBody },
    /// Run the user's hooks; their decision comes as `Input::HooksFinished`. Cancelled like a tool.
    RunHooks { id: String, turn_id: TurnId, step: Arc<Step>, occasion: HookOccasion },
    /// Stop a running tool or hooks; their result is ignored.
    CancelTool { call_id: String },
    /// Ask a client. The answer comes back for this call.
    AskClient { call_id: String, question: Box<Question> },
    /// The question no longer needs an answer.
    WithdrawQuestion { call_id: String },
    /// Send `Input::Woken` at this time (Unix milliseconds).
    Wake { at_ms: i64 },
    /// Send `Input::DeadlinePassed` at this time, unless the attempt is cancelled first.
    Deadline { attempt: u64, at_ms: i64 },
    /// Send `Input::PursueGoal` with a new turn and step: the thread's goal is active and the thread is idle.
    PursueGoal,
    /// Wait until the calls that were just stopped have ended, and handle their last item events first. Comes right
    /// after the effects that stop them, before anyone is notified that the turn ended.
    AwaitStopped,
    /// The turn is suspended: it can be resumed from the record. No effect of it follows.
    Suspended,
    /// The turn has ended. No effect of it follows.
    Finish(TurnStatus),
}

impl Effect {
    /// Whether the effect stops something. Such an effect needs no durable record and is performed even after a failed
    /// write.
    pub fn stops(&self) -> bool {
        matches!(self, Self::CancelModel { .. } | Self::CancelTool { .. } | Self::WithdrawQuestion { .. })
    }
}

/// Orders the effects of an ended turn: stop running work before notifying anyone.
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
