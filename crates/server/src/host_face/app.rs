//! State shared by the handlers of a host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{TaskHost, names_placement};
use protocol::{HostAgreed, InitializeParams, ServerCapabilities};
use runtime::OwnListeners;
use tokio::sync::{Mutex, OnceCell};

use crate::app::App;
use crate::application::ServerApplication;
use crate::host_face::carriers::ModelCarriers;
use crate::host_face::clients::HubClients;
use crate::host_face::numbers::write_numbers;
use crate::host_face::providers::ToolProviders;
use crate::hub::{ConnectionId, Hub};
use crate::metrics::MetricsText;
use crate::peers::{PeerSecret, PeerSlot, PeerTable};
use crate::roles::{ClientRole, check_machine, check_role};
use crate::wire_error::WireError;

/// The host's methods that this release has.
const HOST_VERSION: u32 = 1;
const HOST_FEATURES: &[&str] = &[
    "tasks",
    "operations",
    "defer",
    "inputId",
    "provides",
    "ordinal",
    "threadSuspend",
    "audit",
    "resync",
    "placementFiles",
    "carrier",
    "placementRequests",
];
/// How long an answer of the store holds for `/readyz`, which anybody may ask for as often as they like.
const READY_FOR: Duration = Duration::from_secs(1);
/// Agreed on with a connection that wants to hear of every task's operations.
pub(crate) const ALL_TASKS: &str = "allTasks";

/// A host, and beside it what answers questions about this machine: files, commands, configuration, models.
#[derive(Debug)]
pub struct HostApp {
    pub(crate) hub: Arc<Hub>,
    pub(crate) host: TaskHost,
    pub(crate) local: Arc<App>,
    pub(crate) providers: Arc<ToolProviders>,
    pub(crate) carriers: Arc<ModelCarriers>,
    /// The last answer of the store, and when it came.
    readiness: Mutex<Option<(Instant, Result<(), String>)>>,
    /// The way to other replicas, where there are any.
    pub(crate) peers: PeerSlot,
    /// Shutting down happens once, whichever listener asks first.
    shut_down: OnceCell<()>,
}

impl HostApp {
    /// How long turns may take to stop when nobody said how long.
    const CLOSING_LIMIT: Duration = Duration::from_secs(10);

    /// `clients` are the ones that the host asks.
    pub fn new(hub: Arc<Hub>, clients: &HubClients, host: TaskHost, local: App) -> Self {
        Self {
            hub,
            host,
            local: Arc::new(local),
            providers: clients.providers.clone(),
            carriers: clients.carriers.clone(),
            readiness: Mutex::new(None),
            peers: clients.peers.clone(),
            shut_down: OnceCell::new(),
        }
    }

    /// From now on, requests about threads of other replicas go there. `own` is the name of this one.
    pub fn relay_to_peers(&self, secret: PeerSecret, own: &str) {
        let (host, hub) = (self.host.clone(), self.hub.clone());
        let declared = (self.providers.clone(), self.carriers.clone());
        let peers = PeerTable::new(host, hub, declared, secret, own);
        if self.peers.set(peers.clone()).is_ok() {
            tokio::spawn(peers.follow_owners());
        }
    }
}

impl ServerApplication for HostApp {
    fn negotiate(
        &self,
        params: &InitializeParams,
        role: ClientRole,
    ) -> Result<Option<ServerCapabilities>, WireError> {
        let offer = params.capabilities.as_ref().and_then(|capabilities| capabilities.host.as_ref());
        let Some(offer) = offer.filter(|offer| offer.versions.contains(&HOST_VERSION)) else {
            return Ok(None);
        };
        let wanted = offer.all_tasks.then_some(ALL_TASKS);
        let features = HOST_FEATURES.iter().copied().chain(wanted).map(str::to_owned).collect();
        let agreed = HostAgreed { version: HOST_VERSION, features, role: role.word().to_owned() };
        Ok(Some(ServerCapabilities { host_delegation: None, host: Some(agreed) }))
    }

    fn permit(
        &self,
        (role, is_local): (ClientRole, bool),
        method: &'static str,
        params: Option<&str>,
    ) -> Result<(), WireError> {
        check_role(role, method)?;
        if names_placement(method, params) {
            // It is carried out there.
            return Ok(());
        }
        check_machine(is_local, method, params, self.host.default_placement())
    }

    async fn ready(&self) -> Result<(), String> {
        let mut seen = self.readiness.lock().await;
        if let Some((_, result)) = seen.as_ref().filter(|(at, _)| at.elapsed() < READY_FOR) {
            return result.clone();
        }
        let result = self.host.ready().await;
        *seen = Some((Instant::now(), result.clone()));
        result
    }

    async fn metrics(&self, text: &mut MetricsText) {
        match self.host.numbers().await {
            Ok(numbers) => write_numbers(&numbers, text),
            Err(error) => tracing::warn!(%error, "the numbers of the store are missing in /metrics"),
        }
        self.local.write_lost_spans(text);
    }

    fn listens(&self, listeners: OwnListeners) {
        self.local.listens(listeners);
    }

    async fn disconnected(&self, connection: ConnectionId) {
        self.providers.disconnect(connection);
        self.carriers.disconnect(connection);
        self.host.carrier_left(connection.0);
        if let Some(peers) = self.peers.get() {
            peers.disconnect(connection);
        }
        self.host.client_left(connection.0).await;
        self.local.disconnected(connection).await;
    }

    /// A host suspends its turns: they go on when it is back, or at another host.
    async fn drain(&self, limit: Duration) {
        self.shut_down.get_or_init(|| self.host.shut_down(limit)).await;
    }

    async fn shutdown(&self) {
        self.drain(Self::CLOSING_LIMIT).await;
        self.local.shutdown().await;
    }
}
