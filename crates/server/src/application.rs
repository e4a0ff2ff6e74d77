//! The interface between the server and the application it serves.

use protocol::{InitializeParams, ServerCapabilities, ThreadId};
use runtime::OwnListeners;

use crate::hub::ConnectionId;
use crate::wire_error::WireError;

/// Hooks that the server calls on the application it serves.
pub trait ServerApplication: Send + Sync + 'static {
    /// Negotiates capabilities beyond the stock protocol with this client. An error refuses the connection's
    /// `initialize`,
    /// which may be tried again.
    fn negotiate(&self, _params: &InitializeParams) -> Result<Option<ServerCapabilities>, WireError> {
        Ok(None)
    }

    /// The server listens there from now on. What runs for clients and threads must not get to it.
    fn listens(&self, _listeners: OwnListeners) {}

    /// A connection is gone: what ran for it alone may stop.
    fn disconnected(&self, _connection: ConnectionId) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Nobody has listened to the thread for a while: it may leave memory if nothing runs in it. Says whether it has. No
    /// request about the thread is carried out meanwhile.
    fn unload_idle(&self, _thread: ThreadId) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// Ends when no turn runs.
    fn idle(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Stops every turn and lets go of every thread.
    fn shutdown(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}
