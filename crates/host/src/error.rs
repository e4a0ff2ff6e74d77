//! The ways in which a request to the host can fail.

use protocol::{OperationId, ThreadId};
use rpc::ErrorObject;
use store::{DecisionRow, StoreError};
use task::ClientStreamError;

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    #[error("thread not found: {0}")]
    UnknownThread(ThreadId),
    #[error("{0}")]
    InvalidThreadId(String),
    // The words of an app-server, which clients read.
    #[error("thread not loaded: {0}")]
    NotLoaded(ThreadId),
    #[error("no rollout found for thread id {0}")]
    NoRecord(ThreadId),
    #[error("no archived rollout found for thread id {0}")]
    NotArchived(ThreadId),
    #[error("thread {0} is not materialized yet; includeTurns is unavailable before first user message")]
    NothingSaid(ThreadId),
    #[error("thread name must not be empty")]
    EmptyName,
    #[error("invalid cursor: {0}")]
    InvalidCursor(String),
    #[error("there is no operation {0}")]
    UnknownOperation(OperationId),
    #[error("operation {} was already decided by {}", .0.operation_id, .0.by)]
    AlreadyDecided(Box<DecisionRow>),
    #[error(
        "argumentsDigest: operation {operation} was shown with {shown}; read it again with operation/list and decide about that"
    )]
    DigestMismatch { operation: OperationId, shown: String },
    #[error("decision: operation {operation} takes no `{decision}`; it takes {}", .available.join(", "))]
    DecisionNotAvailable { operation: OperationId, decision: String, available: Vec<String> },
    #[error("operation {0} does not wait for a decision any more")]
    NotWaiting(OperationId),
    #[error("there is no placement {0}; placement/list shows those there are")]
    UnknownPlacement(String),
    #[error("placement {id} is used by {tasks} tasks; delete them first")]
    PlacementInUse { id: String, tasks: usize },
    #[error("{0}")]
    Placement(String),
    #[error(
        "thread {thread}: it runs at {site}, which this host does not serve; ask a host that does, or give its placement up"
    )]
    PlacementUnreachable { thread: ThreadId, site: String },
    /// `by` is the parameter or setting that asks for the sandbox.
    #[error(
        "{by}: `{asked}` cannot be enforced in `{backend}`, which is itself the sandbox; leave it out, or start the thread \
         with the sandbox `danger-full-access`"
    )]
    SandboxUnavailable { by: &'static str, asked: &'static str, backend: &'static str },
    #[error(
        "delegation: {by} carries the model requests of thread {thread}; wait until it is gone, or open the thread \
         without `delegation`"
    )]
    CarrierTaken { thread: ThreadId, by: String },
    /// Of a client that carries a model request.
    #[error(transparent)]
    Stream(#[from] ClientStreamError),
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
    /// The runtime's own refusal, passed on.
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    #[error("thread {0}: its runtime ended before it answered; ask again")]
    RuntimeGone(ThreadId),
    #[error("another host owns thread {thread}: {address}")]
    OwnedElsewhere { thread: ThreadId, address: String },
    /// The request may have been carried out.
    #[error("thread {0}: the host that has it was lost before it answered; ask again")]
    OwnerLost(ThreadId),
    #[error("an answer of the runtime cannot be read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for TaskError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::UnknownTask(id) => Self::UnknownThread(id),
            StoreError::UnknownOperation(id) => Self::UnknownOperation(id),
            StoreError::AlreadyDecided(first) => Self::AlreadyDecided(first),
            StoreError::DigestMismatch { operation, shown } => Self::DigestMismatch { operation, shown },
            StoreError::DecisionNotAvailable { operation, decision, available } => {
                Self::DecisionNotAvailable { operation, decision, available }
            }
            StoreError::NotWaiting(id) => Self::NotWaiting(id),
            other => Self::Store(other),
        }
    }
}
