//! Errors for hosts, with their codes. The only place with these codes.

use protocol::{ModelRequestId, StreamCredit};
use serde_json::{Value, json};

/// Why a host's request or message was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DelegationError {
    /// One part of the request cannot be fulfilled, so nothing of it is.
    #[error("{field} {problem}")]
    Unsupported { field: &'static str, problem: String },
    /// The host sent something invalid.
    #[error("{field} {problem}")]
    Invalid { code: &'static str, field: String, problem: String },
    /// Another host has taken over the thread.
    #[error("delegation.hostEpoch {} is stale: {seen} was seen for this thread", shown(.given.as_ref()))]
    Fenced { given: Option<u64>, seen: u64 },
    #[error("no model request {0} is known for this thread")]
    UnknownRequest(ModelRequestId),
    /// Another request has replaced this one.
    #[error("model request {0} is over: another attempt or request has taken its place")]
    StaleRequest(ModelRequestId),
    #[error("this connection does not carry the model requests of thread {0}")]
    NotTheHost(String),
    /// Nothing can start in the thread until a host attaches again.
    #[error("{}", super::failure::HOST_GONE)]
    HostGone,
    #[error("seq {given} leaves a gap: {expected} is expected")]
    SequenceGap { given: u64, expected: u64 },
    #[error("the stream has ended; its {next_seq} events were taken and nothing more is")]
    StreamClosed { next_seq: u64 },
    #[error("event {seq} was taken with other bytes before")]
    EventMismatch { seq: u64 },
    #[error("event {seq}: {problem}")]
    BadEvent { seq: u64, problem: String },
    /// Nothing of the batch was accepted; it may be sent again.
    #[error("the batch is larger than the credit that is left; send it again later")]
    OverCredit { next_seq: u64, credit: StreamCredit },
    /// It exceeds the whole window, so waiting does not help.
    #[error("a batch of {events} events does not fit a window of {window}; split it")]
    BatchTooLarge { events: usize, window: u32 },
}

impl Eq for DelegationError {}

impl DelegationError {
    /// The error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } => "delegationUnsupported",
            Self::Invalid { code, .. } => code,
            Self::Fenced { .. } => "fenced",
            Self::UnknownRequest(_) => "unknownRequest",
            Self::StaleRequest(_) => "staleRequest",
            Self::NotTheHost(_) => "notTheHost",
            Self::HostGone => "hostGone",
            Self::SequenceGap { .. } => "sequenceGap",
            Self::StreamClosed { .. } => "streamClosed",
            Self::EventMismatch { .. } => "eventMismatch",
            Self::BadEvent { .. } => "badEvent",
            Self::OverCredit { .. } => "creditExceeded",
            Self::BatchTooLarge { .. } => "batchTooLarge",
        }
    }

    /// Whether the same message may succeed later.
    pub fn is_overload(&self) -> bool {
        matches!(self, Self::OverCredit { .. })
    }

    /// The fields that a host must act on.
    pub fn data(&self) -> Value {
        let mut data = match self {
            Self::Unsupported { field, .. } => json!({ "field": field }),
            Self::Invalid { field, .. } => json!({ "field": field }),
            Self::Fenced { seen, .. } => json!({ "hostEpoch": seen }),
            Self::SequenceGap { expected, .. } => json!({ "expected": expected }),
            Self::StreamClosed { next_seq } => json!({ "nextSeq": next_seq }),
            Self::EventMismatch { seq } | Self::BadEvent { seq, .. } => json!({ "seq": seq }),
            Self::OverCredit { next_seq, credit } => json!({ "nextSeq": next_seq, "credit": credit }),
            Self::BatchTooLarge { window, .. } => json!({ "windowEvents": window }),
            Self::UnknownRequest(_) | Self::StaleRequest(_) | Self::NotTheHost(_) | Self::HostGone => {
                json!({})
            }
        };
        data["code"] = json!(self.code());
        data
    }
}

fn shown(epoch: Option<&u64>) -> String {
    epoch.map_or_else(|| "(unset)".to_owned(), u64::to_string)
}
