//! Live voice conversations on a thread. They need a remote service.

use super::prelude::*;

/// Opens a voice conversation and subscribes the caller to the thread.
#[wire(omit_null)]
pub struct ThreadRealtimeStartParams {
    pub thread_id: ThreadId,
    /// Instructions for the voice.
    pub prompt: String,
    pub session_id: Option<String>,
}

/// A piece of sound.
#[wire]
pub struct ThreadRealtimeAudioChunk {
    /// The samples in base64.
    pub data: String,
    /// In hertz.
    pub sample_rate: u32,
    pub num_channels: u16,
    pub samples_per_channel: Option<u32>,
    /// The conversation's item it belongs to.
    pub item_id: Option<ItemId>,
}

/// Sends sound to the conversation.
#[wire]
pub struct ThreadRealtimeAppendAudioParams {
    pub thread_id: ThreadId,
    pub audio: ThreadRealtimeAudioChunk,
}

/// Sends text to the conversation.
#[wire]
pub struct ThreadRealtimeAppendTextParams {
    pub thread_id: ThreadId,
    pub text: String,
}

/// Closes the conversation. `thread/realtime/closed` follows.
#[wire]
pub struct ThreadRealtimeStopParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct ThreadRealtimeStartResponse {}

#[wire]
pub struct ThreadRealtimeAppendAudioResponse {}

#[wire]
pub struct ThreadRealtimeAppendTextResponse {}

#[wire]
pub struct ThreadRealtimeStopResponse {}

/// Which version of the remote service is spoken to.
#[wire]
pub enum RealtimeConversationVersion {
    V1,
    V2,
}

/// Sent when a voice conversation is open.
#[wire]
pub struct ThreadRealtimeStartedNotification {
    pub thread_id: ThreadId,
    pub session_id: Option<String>,
    pub version: RealtimeConversationVersion,
}

/// Sent when the conversation has something that no other notification carries. `item` is as the remote
/// service sent it.
#[wire]
pub struct ThreadRealtimeItemAddedNotification {
    pub thread_id: ThreadId,
    pub item: Value,
}

/// Sent as speech is written down.
#[wire]
pub struct ThreadRealtimeTranscriptUpdatedNotification {
    pub thread_id: ThreadId,
    /// Who speaks.
    pub role: String,
    /// The new piece, not the whole.
    pub text: String,
}

/// Sent as the voice speaks.
#[wire]
pub struct ThreadRealtimeOutputAudioDeltaNotification {
    pub thread_id: ThreadId,
    pub audio: ThreadRealtimeAudioChunk,
}

/// Sent when the conversation fails.
#[wire]
pub struct ThreadRealtimeErrorNotification {
    pub thread_id: ThreadId,
    pub message: String,
}

/// Sent when the conversation has ended.
#[wire]
pub struct ThreadRealtimeClosedNotification {
    pub thread_id: ThreadId,
    /// Such as `requested` or `transport_closed`.
    pub reason: Option<String>,
}
