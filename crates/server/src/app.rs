//! What handlers share, and what the server asks of it at the ends of a life.

use std::sync::Arc;
use std::time::Duration;

use protocol::{InitializeParams, ServerCapabilities, ThreadId};
use runtime::{OwnListeners, Runtime};

use crate::handlers::{self, command_exec::Commands};
use crate::handshake;
use crate::hub::{ConnectionId, Hub};
use crate::wire_error::WireError;

/// What the server needs to know from the one it serves for.
pub trait Application: Send + Sync + 'static {
    /// What is agreed on with this client beyond the stock protocol. An error refuses the connection's `initialize`,
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

/// What the handlers of this server share.
#[derive(Debug)]
pub struct App {
    pub(crate) hub: Arc<Hub>,
    pub(crate) runtime: Runtime,
    pub(crate) commands: Commands,
}

impl App {
    /// How long threads may take to stop.
    const CLOSING_LIMIT: Duration = Duration::from_secs(10);

    pub fn new(hub: Arc<Hub>, runtime: Runtime) -> Self {
        Self { hub, runtime, commands: Commands::default() }
    }
}

impl Application for App {
    fn negotiate(&self, params: &InitializeParams) -> Result<Option<ServerCapabilities>, WireError> {
        Ok(handshake::agree(params, self.runtime.instance_id()))
    }

    fn listens(&self, listeners: OwnListeners) {
        self.runtime.add_listeners(listeners);
    }

    async fn disconnected(&self, connection: ConnectionId) {
        self.runtime.host_gone(connection.into());
        self.runtime.close_elicitations(connection.into());
        self.commands.close(connection).await;
    }

    async fn unload_idle(&self, thread: ThreadId) -> bool {
        handlers::thread::unload_idle(self, thread).await
    }

    async fn idle(&self) {
        self.runtime.idle().await;
    }

    async fn shutdown(&self) {
        self.runtime.shut_down(Self::CLOSING_LIMIT).await;
    }
}
