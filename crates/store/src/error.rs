//! The ways in which the store can refuse or fail.

use protocol::{OperationId, ThreadId};

use crate::decision::DecisionRow;

/// Why an operation of the store had no effect, or may have had none.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("there is no task {0}")]
    UnknownTask(ThreadId),
    #[error("there is no operation {0}")]
    UnknownOperation(OperationId),
    /// Another owner holds the task, or its lease has run out. Nothing may be started under the old one.
    #[error("the lease on {0} is over: another owner has the task, or its time ran out")]
    Fenced(ThreadId),
    /// Nothing may be done any more under the earlier start.
    #[error(
        "replica {0} was started again elsewhere, or its lease is over; give each host a name of its own"
    )]
    ReplicaReplaced(String),
    #[error("the next record of {thread} is {next}, not {expected}")]
    OrdinalConflict { thread: ThreadId, expected: u64, next: u64 },
    /// The first decision counts.
    #[error("operation {} was already decided", .0.operation_id)]
    AlreadyDecided(Box<DecisionRow>),
    #[error("operation {operation} was shown with the digest {shown}; repeat it with the decision")]
    DigestMismatch { operation: OperationId, shown: String },
    #[error("operation {operation} takes no `{decision}`; it takes {}", .available.join(", "))]
    DecisionNotAvailable { operation: OperationId, decision: String, available: Vec<String> },
    #[error("operation {0} does not wait for a decision any more")]
    NotWaiting(OperationId),
    /// Somebody else began this attempt first.
    #[error("attempt {attempt} of {operation} was begun by another")]
    AttemptTaken { operation: OperationId, attempt: u32 },
    #[error("{0} is used by another process; its host listens on {1}")]
    InUse(String, String),
    #[error(
        "the store was written by a newer release (schema {found}, this one knows {known}); upgrade this program"
    )]
    SchemaTooNew { found: i64, known: i64 },
    /// The database cannot be reached now. Trying again later may help, and does no harm.
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    #[error(
        "the certificate of the database is not trusted: {0}; name the file of its authority in the address of the store: \
         `?sslrootcert=FILE`"
    )]
    Untrusted(String),
    /// Where tasks are kept was said wrongly.
    #[error("{0}")]
    Address(String),
    #[error("the database refused: {0}")]
    Database(String),
    #[error("a row of the store cannot be read: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Whether the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}
