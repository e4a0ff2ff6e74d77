//! State shared by all handlers.

use std::sync::Arc;
use std::time::Duration;

use protocol::{InitializeParams, ServerCapabilities, ThreadId};
use runtime::{OwnListeners, Runtime, ThreadCounts, Tracer};

use crate::application::ServerApplication;
use crate::handlers::{
    self, command_exec::ConnectionCommands, fs::ConnectionWatches, fuzzy_file_search::ConnectionSearches,
};
use crate::handshake;
use crate::hub::{ConnectionId, Hub};
use crate::metrics::MetricsText;
use crate::roles::ClientRole;
use crate::wire_error::WireError;

/// State shared by the handlers of this server.
#[derive(Debug)]
pub struct App {
    pub(crate) hub: Arc<Hub>,
    pub(crate) runtime: Runtime,
    pub(crate) commands: ConnectionCommands,
    pub(crate) watches: ConnectionWatches,
    pub(crate) searches: ConnectionSearches,
}

impl App {
    /// How long threads may take to stop.
    const CLOSING_LIMIT: Duration = Duration::from_secs(10);

    pub fn new(hub: Arc<Hub>, runtime: Runtime) -> Self {
        Self {
            hub,
            runtime,
            commands: ConnectionCommands::default(),
            watches: ConnectionWatches::default(),
            searches: ConnectionSearches::default(),
        }
    }

    pub(crate) fn write_lost_spans(&self, text: &mut MetricsText) {
        let about = "Spans that the collector of traces never got.";
        text.counter("oarlock_spans_lost_total", about, &[], self.runtime.tracer().lost() as f64);
    }
}

impl ServerApplication for App {
    fn negotiate(
        &self,
        params: &InitializeParams,
        _: ClientRole,
    ) -> Result<Option<ServerCapabilities>, WireError> {
        Ok(handshake::agree(params, self.runtime.instance_id()))
    }

    fn listens(&self, listeners: OwnListeners) {
        self.runtime.add_listeners(listeners);
    }

    async fn disconnected(&self, connection: ConnectionId) {
        self.runtime.host_gone(connection.into());
        self.runtime.close_elicitations(connection.into());
        self.runtime.close_conversations(connection.into());
        self.watches.close(connection).await;
        self.searches.close(connection).await;
        self.commands.close(connection).await;
    }

    async fn unload_idle(&self, thread: ThreadId) -> bool {
        handlers::thread::unload_idle(self, thread).await
    }

    async fn metrics(&self, text: &mut MetricsText) {
        let ThreadCounts { loaded, running } = self.runtime.thread_counts();
        text.gauge("oarlock_threads_loaded", "Threads in memory.", &[], loaded as f64);
        text.gauge("oarlock_turns_running", "Threads in which a turn runs.", &[], running as f64);
        self.write_lost_spans(text);
    }

    async fn drain(&self, limit: Duration) {
        self.runtime.drain(limit).await;
    }

    async fn shutdown(&self) {
        self.runtime.shut_down(Self::CLOSING_LIMIT).await;
        self.runtime.tracer().close(Tracer::LAST_SPANS_WITHIN).await;
    }
}
