//! Full delegation: the host carries model requests and hands back their events.

use super::prelude::*;

/// One model request, written by the runtime for the host to send.
#[wire(omit_null)]
pub struct ModelRequestParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub segment_id: SegmentId,
    pub model_request_id: ModelRequestId,
    /// Counts the attempts at this segment.
    pub attempt: u32,
    /// The previous attempt at this segment.
    pub retry_of: Option<ModelRequestId>,
    /// From the root agent to the one that asks.
    pub agent_path: Vec<String>,
    pub purpose: ModelRequestPurpose,
    /// A Responses create body. Never holds credentials, URLs or headers.
    pub body: Raw,
    /// SHA-256 of the canonical JSON (RFC 8785) of `body`. Differs when a replay is not of the same prompt.
    pub request_digest: String,
    /// Digest of the tools the body offers.
    pub tool_set_digest: String,
    /// Features the body uses, such as `freeformTools` or `imageInput`.
    pub requires: Vec<String>,
    /// The credit this stream begins with.
    pub window: StreamCredit,
    /// How long the whole request may take; no limit when unset.
    pub deadline_ms: Option<u64>,
    pub hint: Option<ModelRequestHint>,
}

/// The purpose of a model request. `memory` and `title` may run beside the others.
#[wire]
pub enum ModelRequestPurpose {
    /// A step of a turn.
    Turn,
    /// Summing up the history.
    Compaction,
    /// A step of a review.
    Review,
    /// Making memories.
    Memory,
    /// Naming the thread.
    Title,
    /// Something newer; pass it on.
    #[serde(untagged)]
    Other(String),
}

/// How much more the receiver takes.
#[wire]
pub struct StreamCredit {
    pub events: u32,
    pub bytes: u64,
}

/// Advice the host may ignore.
#[wire]
pub struct ModelRequestHint {
    /// Sending the request again does no harm.
    pub replay_safe: bool,
    /// How many leading items of `input` are worth caching.
    pub cache_prefix_items: u32,
}

/// Sent at once, before any event.
#[wire(tag = "disposition")]
pub enum ModelRequestResponse {
    /// The host carries the request.
    Accepted {
        provider: String,
        /// The model in fact used, where the host maps names.
        model: String,
        /// The host answers from its record instead of calling the provider again.
        #[serde(default)]
        replayed: bool,
    },
    /// The host does not carry the request.
    Rejected { error: ModelError },
}

/// Why the host could not, or could no longer, carry a request.
#[wire(omit_null)]
pub struct ModelError {
    /// A word for programs. `unsupportedFeature` comes with `feature`. After `paused`, the runtime asks the model to go
    /// on from the items that came.
    pub code: String,
    /// For people.
    pub message: String,
    /// The class of error that clients know.
    pub codex_error_info: Option<CodexErrorInfo>,
    pub http_status: Option<u16>,
    /// The provider's own id for the request.
    pub provider_request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
    /// Sending the request again does no harm.
    #[serde(default)]
    pub replay_safe: bool,
    /// The feature in question when `code` is `unsupportedFeature`.
    pub feature: Option<String>,
}

impl ModelError {
    /// The code of a paused answer: the runtime sends another request with the items received so far.
    pub const PAUSED: &'static str = "paused";

    /// An error of which a code and a message are known, and nothing else.
    pub fn new(code: &str, message: String) -> Self {
        Self {
            code: code.to_owned(),
            message,
            codex_error_info: None,
            http_status: None,
            provider_request_id: None,
            retry_after_ms: None,
            replay_safe: false,
            feature: None,
        }
    }
}

/// A batch of stream events. Batches are contiguous; a batch that was already taken is acknowledged again.
#[wire(omit_null)]
pub struct ModelStreamEventParams {
    pub thread_id: ThreadId,
    pub model_request_id: ModelRequestId,
    /// Index of the first event of the batch, from 0.
    pub seq: u64,
    /// Responses stream events as the provider sent them.
    pub events: Vec<Raw>,
    /// When the host sent the batch, in Unix milliseconds. For measuring only.
    pub host_time_ms: Option<u64>,
}

/// Acknowledges a batch.
#[wire]
pub struct ModelStreamEventResponse {
    /// The `seq` expected next.
    pub next_seq: u64,
    /// How much more may be sent.
    pub credit: StreamCredit,
    /// The batch had been taken before.
    #[omit]
    pub duplicate: bool,
}

/// The end of a stream that had no terminal event.
#[wire(omit_null)]
pub struct ModelStreamAbortedParams {
    pub thread_id: ThreadId,
    pub model_request_id: ModelRequestId,
    /// How many events were delivered.
    pub seq: u64,
    pub reason: StreamAbortReason,
    /// Details of the failure, where there is more to say than `reason`.
    pub error: Option<ModelError>,
    /// Tokens used up to then, where known.
    pub usage: Option<TokenUsageBreakdown>,
    /// Sending the request again does no harm.
    #[serde(default)]
    pub replay_safe: bool,
}

/// Why a stream ended early.
#[wire]
pub enum StreamAbortReason {
    /// After `model/cancel`.
    Canceled,
    /// The provider was lost.
    Disconnected,
    /// The provider was too slow.
    Timeout,
    /// The host's budget is spent.
    Budget,
    /// The host is going away.
    HostShutdown,
    /// The provider sent something that makes no sense.
    ProtocolError,
    /// Something newer.
    #[serde(untagged)]
    Other(String),
}

#[wire]
pub struct ModelStreamAbortedResponse {}

/// A refusal found after the request was accepted and before its first event.
#[wire]
pub struct ModelRequestRejectedParams {
    pub thread_id: ThreadId,
    pub model_request_id: ModelRequestId,
    pub error: ModelError,
}

#[wire]
pub struct ModelRequestRejectedResponse {}

/// Asks the host to stop carrying a request. Events that still come are dropped.
#[wire]
pub struct ModelCancelParams {
    pub thread_id: ThreadId,
    pub model_request_id: ModelRequestId,
    pub reason: ModelCancelReason,
}

/// Why a request is no longer wanted.
#[wire]
pub enum ModelCancelReason {
    TurnInterrupted,
    /// Another attempt takes its place.
    Superseded,
    ApprovalDenied,
    ThreadClosed,
    /// An event made no sense to the runtime.
    ProtocolError,
    /// Something newer.
    #[serde(untagged)]
    Other(String),
}

/// Sent at once; the host still ends the stream with `model/streamAborted`.
#[wire]
pub struct ModelCancelResponse {
    pub disposition: ModelCancelDisposition,
}

/// The outcome of a cancellation.
#[wire]
pub enum ModelCancelDisposition {
    Canceled,
    /// It had ended before.
    AlreadyTerminal,
    /// Nothing has this id.
    Unknown,
}
