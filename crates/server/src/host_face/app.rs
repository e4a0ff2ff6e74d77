//! State shared by the handlers of a host.

use std::sync::Arc;

use host::TaskHost;
use protocol::{HostAgreed, InitializeParams, ServerCapabilities};
use runtime::OwnListeners;

use crate::app::App;
use crate::application::ServerApplication;
use crate::host_face::clients::HubClients;
use crate::host_face::providers::ToolProviders;
use crate::hub::{ConnectionId, Hub};
use crate::wire_error::WireError;

/// The host's methods that this release has.
const HOST_VERSION: u32 = 1;
const HOST_FEATURES: &[&str] = &["tasks", "operations", "defer", "inputId", "provides"];
/// Agreed on with a connection that wants to hear of every task's operations.
pub(crate) const ALL_TASKS: &str = "allTasks";

/// A host, and beside it what answers questions about this machine: files, commands, configuration, models.
#[derive(Debug)]
pub struct HostApp {
    pub(crate) hub: Arc<Hub>,
    pub(crate) host: TaskHost,
    pub(crate) local: Arc<App>,
    pub(crate) providers: Arc<ToolProviders>,
}

impl HostApp {
    /// `clients` are the ones that the host asks.
    pub fn new(hub: Arc<Hub>, clients: &HubClients, host: TaskHost, local: App) -> Self {
        Self { hub, host, local: Arc::new(local), providers: clients.providers.clone() }
    }
}

impl ServerApplication for HostApp {
    fn negotiate(&self, params: &InitializeParams) -> Result<Option<ServerCapabilities>, WireError> {
        let offer = params.capabilities.as_ref().and_then(|capabilities| capabilities.host.as_ref());
        let Some(offer) = offer.filter(|offer| offer.versions.contains(&HOST_VERSION)) else {
            return Ok(None);
        };
        let wanted = offer.all_tasks.then_some(ALL_TASKS);
        let features = HOST_FEATURES.iter().copied().chain(wanted).map(str::to_owned).collect();
        let agreed = HostAgreed { version: HOST_VERSION, features };
        Ok(Some(ServerCapabilities { host_delegation: None, host: Some(agreed) }))
    }

    fn listens(&self, listeners: OwnListeners) {
        self.local.listens(listeners);
    }

    async fn disconnected(&self, connection: ConnectionId) {
        self.providers.disconnect(connection);
        self.local.disconnected(connection).await;
    }

    async fn shutdown(&self) {
        self.host.shut_down().await;
        self.local.shutdown().await;
    }
}
