//! Messages to a task, and the values they carry.

use std::fmt;
use std::sync::Arc;

use protocol::{OperationId, SandboxPolicy, ThreadId, TurnId};
use rpc::{ErrorObject, Id};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{InboxRow, StoreError};
use tokio::sync::{Mutex, mpsc, watch};
use traces::{Span, TraceContext};

use crate::guard::RuntimeGuard;
use crate::link::{OrderedAnswer, RuntimeLink};
use host_limits::RuntimeSlot;
use task::{Generation, TaskInput};

/// A request of the runtime that somebody has to answer.
#[derive(Debug)]
pub(crate) struct LinkQuestion {
    pub(crate) number: u64,
    pub(crate) id: Id,
    pub(crate) link: RuntimeLink,
    pub(crate) method: String,
    pub(crate) thread: ThreadId,
    pub(crate) operation: Option<OperationId>,
    pub(crate) digest: Option<String>,
    pub(crate) params: Box<RawValue>,
    /// It was answered with an error, and so is the runtime.
    pub(crate) was_refused: bool,
    /// As long as it waits.
    pub(crate) span: Span,
}

/// A request that needs a runtime.
pub(crate) enum TaskPass {
    /// To be forwarded.
    Request { method: String, params: Box<RawValue>, answer: OrderedAnswer },
    /// Answered with the thread as the runtime opened it.
    Open(OrderedAnswer),
}

/// Called once with the turn of an input, or with why it was refused.
pub(crate) type TurnReply = Box<dyn FnOnce(Result<TurnId, ErrorObject>) + Send>;

/// Messages to a task.
pub(crate) enum TaskCommand {
    Input(TaskInput),
    /// Another host may have stored input or decisions for the task.
    LookAgain,
    Pass {
        pass: TaskPass,
        trace: Option<TraceContext>,
    },
    /// Input that is committed.
    Turn {
        row: Box<InboxRow>,
        reply: Option<TurnReply>,
        trace: Option<TraceContext>,
    },
    Asked(Box<LinkQuestion>),
    Opened {
        generation: Generation,
        opened: Result<Box<OpenedRuntime>, OpenFailure>,
    },
    InputAnswered {
        input: String,
        answer: Result<TurnId, ErrorObject>,
    },
    /// How a call that a client was to run stands.
    Called {
        operation: OperationId,
        news: CallNews,
    },
    /// A client answered the question about this operation.
    Answered {
        operation: OperationId,
        method: String,
        by: String,
        /// Nothing when the client answered with an error.
        result: Option<Box<RawValue>>,
    },
}

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallNews {
    /// A client runs it.
    Begun,
    /// Its result is stored.
    Done,
    /// Stored as unknown: the client is gone.
    Lost,
    /// No client runs it any more, and another one may.
    Again,
    /// It cannot be run: somebody decided otherwise, or the store fails.
    Void,
}

impl fmt::Debug for TaskCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(input) => input.fmt(f),
            _ => f.write_str("TaskCommand"),
        }
    }
}

/// The place of a runtime, as far as its turns are concerned.
#[derive(Debug, Default)]
pub(crate) struct TurnPlace {
    /// In effect where the place itself is the boundary.
    pub(crate) sandbox: Option<SandboxPolicy>,
    /// Told to the model with the next input: the workspace is not as the model left it.
    pub(crate) news: Option<String>,
}

/// A runtime process that is connected.
#[derive(Debug)]
pub(crate) struct LiveRuntime {
    pub(crate) generation: Generation,
    pub(crate) link: RuntimeLink,
    /// The facts about its place that turns need.
    pub(crate) place: TurnPlace,
    /// Dropping it kills the process.
    pub(crate) guard: RuntimeGuard,
    /// Its room among the runtimes of the host.
    pub(crate) slot: Option<RuntimeSlot>,
}

impl LiveRuntime {
    /// Lets the process stop by itself, and kills it when that takes too long.
    pub(crate) fn finish(self) {
        self.link.close();
        self.guard.finish();
    }
}

/// Why a runtime is not there.
#[derive(Debug)]
pub(crate) struct OpenFailure {
    pub(crate) message: String,
    /// The runtime refused the thread itself: trying again changes nothing.
    pub(crate) refusal: Option<rpc::ErrorObject>,
}

impl From<String> for OpenFailure {
    fn from(message: String) -> Self {
        Self { message, refusal: None }
    }
}

impl From<StoreError> for OpenFailure {
    fn from(error: StoreError) -> Self {
        error.to_string().into()
    }
}

/// A runtime that holds the thread.
#[derive(Debug)]
pub(crate) struct OpenedRuntime {
    pub(crate) live: LiveRuntime,
    /// As the runtime answered.
    pub(crate) answer: Value,
    /// Inputs that are in the record already.
    pub(crate) taken: Vec<String>,
}

/// The facts about a living task that others read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TaskView {
    pub(crate) has_runtime: bool,
    pub(crate) generation: Option<Generation>,
    pub(crate) is_up: bool,
    pub(crate) turn: Option<TurnId>,
}

/// A task with a driver.
#[derive(Debug, Clone)]
pub(crate) struct LivingTask {
    pub(crate) id: ThreadId,
    pub(crate) mailbox: mpsc::Sender<TaskCommand>,
    pub(crate) gate: Arc<Mutex<()>>,
    pub(crate) view: watch::Receiver<TaskView>,
}
