//! Connections that start a thread which nobody can follow yet.

use protocol::ThreadId;

use super::{ConnectionId, Hub};

/// While it lives, the connection hears how the thread's placement is made.
#[derive(Debug)]
pub(crate) struct ThreadStarter<'a> {
    hub: &'a Hub,
    thread: ThreadId,
}

impl Drop for ThreadStarter<'_> {
    fn drop(&mut self) {
        self.hub.state().starters.remove(&self.thread);
    }
}

impl Hub {
    pub(crate) fn note_starter(&self, thread: &ThreadId, connection: ConnectionId) -> ThreadStarter<'_> {
        self.state().starters.insert(thread.clone(), connection);
        ThreadStarter { hub: self, thread: thread.clone() }
    }

    pub(crate) fn starter(&self, thread: &ThreadId) -> Option<ConnectionId> {
        self.state().starters.get(thread).copied()
    }
}
