//! The interface between the server and the application it serves.

use std::time::Duration;

use protocol::{InitializeParams, ServerCapabilities, ThreadId};
use runtime::OwnListeners;

use crate::hub::ConnectionId;
use crate::metrics::MetricsText;
use crate::roles::ClientRole;
use crate::wire_error::WireError;

/// Hooks that the server calls on the application it serves.
pub trait ServerApplication: Send + Sync + 'static {
    /// Negotiates capabilities beyond the stock protocol with this client. An error refuses the connection's
    /// `initialize`,
    /// which may be tried again.
    fn negotiate(
        &self,
        _params: &InitializeParams,
        _role: ClientRole,
    ) -> Result<Option<ServerCapabilities>, WireError> {
        Ok(None)
    }

    /// Whether a connection with this role may use the method so; a local one is of this machine and this user.
    fn permit(
        &self,
        _identity: (ClientRole, bool),
        _method: &'static str,
        _params: Option<&str>,
    ) -> Result<(), WireError> {
        Ok(())
    }

    /// Why it cannot do its work now, for `/readyz`.
    fn ready(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }

    /// Adds its numbers to `/metrics`.
    fn metrics(&self, _text: &mut MetricsText) -> impl Future<Output = ()> + Send {
        async {}
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

    /// Ends when no turn runs. Turns that wait for a client are suspended, and so are all others after `limit`.
    fn drain(&self, _limit: Duration) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Stops every turn and lets go of every thread.
    fn shutdown(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}
