//! The values of `data.code` in errors, for programs that act on them.

use super::prelude::*;

/// A value of `data.code` in an error. The text after `Do:` is advice for the receiver.
#[wire]
pub enum ErrorDataCode {
    /// The server was asked to stop and begins nothing new. Do: connect again and ask again, when it is back or at
    /// another host.
    Stopping,
    /// The role of the connection does not allow it, or only this machine may say it. Do: use a token with the role
    /// that the message names.
    Forbidden,
    /// A host does not support the method. Do: follow the message.
    NotSupported,
    /// No operation has this id. Do: list the operations.
    UnknownOperation,
    /// Somebody decided first; `decision` and `by` say how and who. Do: take that decision as it is.
    AlreadyDecided,
    /// The operation is not the one that was shown; or uploaded items are not those that were announced. Do: read the
    /// operation again and decide anew; or upload again.
    DigestMismatch,
    /// The operation cannot be answered like that; `available` has what can. Do: choose one of these.
    DecisionNotAvailable,
    /// The operation waits for nothing. Do: list the operations.
    NotWaiting,
    /// No placement has this id. Do: list the placements.
    UnknownPlacement,
    /// Tasks use the placement. Do: suspend or delete them first.
    PlacementInUse,
    /// The place could not be made or reached. Do: read the message; `oarlock doctor --placement NAME` tries every
    /// step.
    PlacementFailed,
    /// This host cannot reach the task's placement, at `site`. Do: send the request to a host there.
    PlacementUnreachable,
    /// Commands could not be held in a sandbox in that place. Do: see the message; choose another place or another
    /// sandbox mode.
    SandboxUnavailable,
    /// Another host has the task, at `address`. Do: send the request there.
    OwnedElsewhere,
    /// The runtime ended before it responded. Do: send the request again; a running turn is resumed automatically.
    RuntimeGone,
    /// Another host took the task over before this was answered. Do: ask again: it may have been carried out.
    OwnerLost,
    /// The runtime in the place is of another release than the host. Do: give the host the runtime of its own release.
    RuntimeMismatch,
    /// A task has more open operations than a host keeps. Do: decide some.
    TooManyOperations,
    /// A task has more children than a host keeps. Do: end some.
    TooManyChildren,
    /// A newer host has the thread; `hostEpoch` is its number. Do: stop: the thread is not yours any more.
    Fenced,
    /// Another runtime has appended; the next ordinal is `nextOrdinal`. Do: read the record again before you append.
    OrdinalConflict,
    /// The thread is not one of this task. Do: open it first.
    UnknownThread,
    /// One record has more bytes than a host keeps. Do: split what it holds.
    RecordTooLarge,
    /// A record is invalid; the message says which. Do: send it according to the schema.
    BadRecord,
    /// The store did not take the record. Do: send it again: nothing was kept.
    StoreFailed,
    /// A feature was used that was not agreed on in `initialize`. Do: ask for it there, or do without.
    DelegationUnsupported,
    /// No model request has this id. Do: drop the stream.
    UnknownRequest,
    /// The model request has ended. Do: drop the stream.
    StaleRequest,
    /// Another connection is the host of the thread. Do: resume the thread to become its host.
    NotTheHost,
    /// Another connection carries the model requests of the task. Do: wait until that one is gone, or open the task
    /// without `delegation`.
    CarrierTaken,
    /// The host of the thread is away. Do: wait for it, or resume the thread as its host.
    HostGone,
    /// Events are missing; `expected` is the next number. Do: send them again from there.
    SequenceGap,
    /// The stream has ended; `nextSeq` says after what. Do: send no more of it.
    StreamClosed,
    /// A repeated event differs from the first one; `seq` says which. Do: abort the stream.
    EventMismatch,
    /// An event is invalid; `seq` says which. Do: abort the stream.
    BadEvent,
    /// More events than there was credit for. Do: wait for the credit of the next answer and send them again.
    CreditExceeded,
    /// More events at once than `windowEvents`. Do: send smaller batches.
    BatchTooLarge,
    /// The history was written by a newer release. Do: use a runtime of that release.
    SchemaTooNew,
    /// The history is inconsistent; the message says where. Do: send the whole record, in order.
    InvalidHistory,
    /// The history has an output without its call. Do: send the whole record, in order.
    OrphanOutput,
    /// A part of an upload is not there. Do: upload it, and ask again.
    MissingPart,
    /// The set of tools contradicts itself; `field` says where. Do: correct it.
    InvalidToolSet,
    /// Two tools have the same name. Do: rename one.
    ToolConflict,
    /// There is no such tool. Do: see docs/tools.md for the names.
    UnknownTool,
    /// No operation of a child has this id. Do: read the list of operations again.
    UnknownDelegation,
    /// An operation is resolved in a way that does not fit its state. Do: see the message; decide or give a result, not both.
    InvalidResolution,
    /// The operation was decided otherwise before. Do: take that decision as it is.
    DecisionConflict,
}
