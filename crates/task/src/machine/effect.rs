//! Effects of a task. The driver performs effects in the order in which they are given.

use protocol::{OperationId, ThreadId, TurnId};
use store::TaskState;

use super::Generation;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskEffect {
    /// Launch a runtime, open the thread with its records and the stored decisions, and report it as up or
    /// failed. An unfinished turn goes on.
    StartRuntime(Generation),
    EndRuntime(Generation),
    /// Give up its place in the queue: it has not been started yet.
    LeaveQueue,
    /// Ask the runtime to suspend these turns, and report when it has.
    SuspendTurns {
        generation: Generation,
        turns: Vec<(ThreadId, TurnId)>,
    },
    SendInput {
        generation: Generation,
        input: String,
    },
    SendPass {
        generation: Generation,
        pass: u64,
    },
    FailPass {
        pass: u64,
        reason: &'static str,
    },
    /// Ask the subscribers, unless they are being asked already.
    AskClients {
        operation: OperationId,
        question: u64,
    },
    /// Answer the runtime with the stored decision.
    AnswerQuestion {
        operation: OperationId,
        question: u64,
    },
    /// Subscribers need not answer any more. A call of a tool that is at a client, or waits for one, goes on.
    EndAsk(OperationId),
    /// The operation is over: nobody need answer it, and no client runs it any more.
    CloseAsk(OperationId),
    /// Store what was started and never finished as unknown, and report which.
    LoseStarted,
    SetState(TaskState),
    /// Report `TimePassed` at this time. The last one counts.
    WakeAt(i64),
}
