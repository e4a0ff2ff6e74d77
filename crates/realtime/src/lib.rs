//! Owns voice conversations: the websocket to the provider and its events. Must not know threads, clients or
//! configuration files.

mod conversation;
mod events;
mod socket;

pub use conversation::{ConversationEnd, ConversationOptions, RealtimeError, VoiceConversation};
pub use events::RealtimeEvent;
