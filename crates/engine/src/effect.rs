//! What a thread wants done. Effects are carried out in order; a record is durable before anything after it happens.

use std::sync::Arc;

use model::PreparedRequest;
use protocol::{GrantedPermissionProfile, RolloutRecord, ServerNotification, TurnId, TurnStatus};

use crate::{Question, Step, ToolCall, Verdict};

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write to the journal and make it durable.
    Record(Box<RolloutRecord>),
    /// Tell the thread's subscribers.
    Emit(Box<ServerNotification>),
    /// Send `Input::ReadBack` with what the record says now.
    ReadBack { turn_id: TurnId, step: Arc<Step> },
    /// Capture the view for the next model request.
    CaptureStep,
    /// Send a request; its events come back with this attempt number.
    RequestModel { attempt: u64, request: PreparedRequest },
    /// Give the attempt up.
    CancelModel { attempt: u64 },
    /// Run a tool in the view its request was made from, with what was granted on top since.
    RunTool { call: ToolCall, turn_id: TurnId, step: Arc<Step>, grants: GrantedPermissionProfile },
    /// Tell a running tool what became of its proposal.
    Decide { call_id: String, number: u32, verdict: Verdict },
    /// Stop a running tool; its end is no longer of interest.
    CancelTool { call_id: String },
    /// Ask a client. The answer comes back for this call.
    AskClient { call_id: String, question: Box<Question> },
    /// The question no longer needs an answer.
    WithdrawQuestion { call_id: String },
    /// Send `Input::Woken` at this time (Unix milliseconds).
    Wake { at_ms: i64 },
    /// The turn is over. No effect of it follows.
    Finish(TurnStatus),
}
