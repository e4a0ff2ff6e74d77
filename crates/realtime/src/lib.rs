//! Owns voice conversations: the websocket to the provider and what its events mean. Must not know threads, clients or
//! configuration files.

mod conversation;
mod events;
mod socket;

pub use conversation::{ConversationEnd, ConversationOptions, RealtimeError, VoiceConversation};
pub use events::RealtimeEvent;
