//! Inputs of a task: everything that can happen to it.

use std::collections::{BTreeMap, BTreeSet};

use protocol::{ModelRequestId, OperationId, ThreadId, TurnId};
use store::TaskState;

use super::Generation;

/// A task as the store has it.
#[derive(Debug, Clone)]
pub struct TaskSeed {
    pub state: TaskState,
    /// Unfinished turns, by thread.
    pub turns: BTreeMap<ThreadId, TurnId>,
    /// Operations of those turns that are not over.
    pub operations: BTreeMap<OperationId, OperationStage>,
    /// Those of them that only wait for agents.
    pub agent_waits: BTreeSet<OperationId>,
    /// The ids of input that no runtime has taken.
    pub inputs: Vec<String>,
}

/// How far an operation that is not over has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationStage {
    Proposed,
    Decided,
    Started,
    /// Started, and nobody has seen it finish. Waits for a decision.
    Unknown,
}

/// A record that was committed, as far as the task cares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFact {
    TurnStarted {
        thread: ThreadId,
        turn: TurnId,
    },
    TurnEnded {
        thread: ThreadId,
        turn: TurnId,
    },
    /// Without a stage it is over.
    Operation {
        operation: OperationId,
        stage: Option<OperationStage>,
    },
    /// The operation only waits for agents: it waits when they do.
    AgentWait(OperationId),
    Other,
}

#[derive(Debug, Clone)]
pub enum TaskInput {
    /// The first input of a task that was in the store.
    Loaded,
    /// Input of a user is committed.
    InputReceived(String),
    /// Input is in the record, or was refused for good.
    InputTaken(String),
    /// A request needs a runtime.
    PassWanted(u64),
    PassDone(u64),
    /// The runtime has opened the thread.
    RuntimeUp(Generation),
    /// It waits for room among the runtimes of the host.
    Queued(Generation),
    /// There is room for it.
    RoomFound(Generation),
    /// Whether tasks wait for room: then runtimes without work end at once.
    Crowded(bool),
    /// It could not be started, or did not open the thread. A final failure is not tried again.
    RuntimeFailed {
        generation: Generation,
        is_final: bool,
    },
    /// Its process ended.
    RuntimeGone(Generation),
    Recorded(RecordFact),
    /// An agent with an unfinished turn is not taken up any more.
    AgentGivenUp {
        thread: ThreadId,
        turn: TurnId,
    },
    /// The runtime asks a model.
    ModelAsked {
        generation: Generation,
        request: ModelRequestId,
    },
    /// It has its answer, or gets none.
    ModelDone {
        generation: Generation,
        request: ModelRequestId,
    },
    /// A client is to carry the request, and none is there.
    CarrierWanted {
        generation: Generation,
        request: ModelRequestId,
    },
    /// A client carries it.
    CarrierFound {
        generation: Generation,
        request: ModelRequestId,
    },
    /// Clients have heard of the end of the thread's turn.
    TurnTold(ThreadId),
    /// These operations are stored as unknown.
    Lost(Vec<OperationId>),
    /// The runtime asks for a decision. The proposal is in the store.
    Asked {
        operation: OperationId,
        question: u64,
    },
    /// It took the question back.
    QuestionGone {
        question: u64,
    },
    /// A decision is stored.
    Decided(OperationId),
    /// The decision was taken back, since it was about another schema of the tool. It has not begun.
    Reopened(OperationId),
    /// The question that was to be answered has no decision in the store any more: it was taken back, since it was about
    /// another schema of the tool.
    Undecided {
        operation: OperationId,
        question: u64,
    },
    /// The call that the question asks for waits for a client that runs it.
    CallWaits {
        operation: OperationId,
        question: u64,
    },
    /// A client runs it.
    CallBegun(OperationId),
    /// Nobody runs it any more, and another client may.
    CallStopped(OperationId),
    /// Its result is stored.
    CallDone(OperationId),
    /// The client that ran it is gone. What may not run twice is stored as unknown.
    CallLost(OperationId),
    SuspendWanted,
    /// The task has other tools from now on. A runtime that was opened before offers those of then.
    ToolsChanged,
    /// The runtime has put its turn away, or had nothing to put away.
    Suspended(Generation),
    ResumeWanted,
    /// The host stops.
    DrainWanted,
    /// The time of `TaskEffect::WakeAt` has come, or any other.
    TimePassed,
}
