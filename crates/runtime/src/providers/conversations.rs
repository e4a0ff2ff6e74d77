//! The voice conversations of all threads: at most one each.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use protocol::ThreadId;
use realtime::VoiceConversation;

/// Conversations by thread, each with the client that started it.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    open: Mutex<HashMap<ThreadId, (u64, Arc<VoiceConversation>)>>,
}

impl Conversations {
    /// Stores a conversation. An earlier one of the thread ends.
    pub(crate) fn insert(&self, id: ThreadId, client: u64, conversation: VoiceConversation) {
        self.open.lock().insert(id, (client, Arc::new(conversation)));
    }

    pub(crate) fn get(&self, id: &ThreadId) -> Option<Arc<VoiceConversation>> {
        let open = self.open.lock();
        open.get(id)
            .map(|(_, conversation)| conversation.clone())
            .filter(|conversation| !conversation.is_over())
    }

    pub(crate) fn take(&self, id: &ThreadId) -> Option<Arc<VoiceConversation>> {
        self.open.lock().remove(id).map(|(_, conversation)| conversation)
    }

    /// Ends the conversation of a thread that is unloaded.
    pub(crate) fn forget(&self, id: &ThreadId) {
        self.open.lock().remove(id);
    }

    /// Ends the conversations of a client that disconnected.
    pub(crate) fn close_of(&self, client: u64) {
        self.open.lock().retain(|_, (owner, _)| *owner != client);
    }

    pub(crate) fn close_all(&self) {
        self.open.lock().clear();
    }
}
