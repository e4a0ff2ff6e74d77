//! Relays between replicas on one store: a request about a thread that another replica holds goes there on behalf of the
//! client that sent it, over the same wire, and whatever the other replica has to say about the thread comes back the
//! same way. Each client has a link of its own to each replica it needs, so that names, roles, opt-outs and questions are
//! treated there as if the client had connected itself.

mod following;
mod link;
mod port;
mod relay;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, OnceLock};

use host::{HeardTurn, TaskHost, TaskOwner};
use parking_lot::Mutex;
use protocol::ThreadId;
use tokio::sync::{Mutex as AsyncMutex, Notify};

pub(crate) use access::PeerCaller;
pub use access::PeerSecret;
use link::PeerLink;
pub use port::PeerPort;
pub(crate) use relay::{RELAYED, relaying};

use crate::host_face::{ModelCarriers, ToolProviders};
use crate::hub::{ClientConnection, ConnectionId, Hub};

/// Where a link may be, held while one is opened: one link for each client and replica.
type LinkSlot = Arc<AsyncMutex<Option<Arc<PeerLink>>>>;

/// The links to other replicas, once there are any.
pub(crate) type PeerSlot = Arc<OnceLock<Arc<PeerTable>>>;

/// Threads that a client follows, with what it has heard of each.
type HeardThreads = BTreeMap<ThreadId, HeardTurn>;

/// The scheme of addresses at which other replicas connect.
pub const PEER_SCHEME: &str = "peer://";

/// The links of this replica's clients to other replicas.
pub(crate) struct PeerTable {
    pub(crate) host: TaskHost,
    pub(crate) hub: Arc<Hub>,
    pub(crate) providers: Arc<ToolProviders>,
    pub(crate) carriers: Arc<ModelCarriers>,
    secret: PeerSecret,
    /// The name of this replica.
    own: String,
    links: Mutex<HashMap<(ConnectionId, String), LinkSlot>>,
    /// Followers whose link ended, until they follow the next owner.
    lost: Mutex<BTreeMap<ConnectionId, HeardThreads>>,
    /// A link has ended.
    ended: Notify,
}

impl fmt::Debug for PeerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerTable").field("own", &self.own).finish_non_exhaustive()
    }
}

impl PeerTable {
    /// `own` is the name of this replica.
    pub(crate) fn new(
        host: TaskHost,
        hub: Arc<Hub>,
        (providers, carriers): (Arc<ToolProviders>, Arc<ModelCarriers>),
        secret: PeerSecret,
        own: &str,
    ) -> Arc<Self> {
        Arc::new(Self {
            host,
            hub,
            providers,
            carriers,
            secret,
            own: own.to_owned(),
            links: Mutex::default(),
            lost: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// The replica that has the thread, if it is another one and can be reached.
    pub(crate) async fn owner(&self, thread: &ThreadId) -> Option<TaskOwner> {
        let owner = match self.host.owner_elsewhere(thread).await {
            Ok(owner) => owner?,
            Err(error) => {
                tracing::warn!(%error, "it is not known which host has a thread");
                return None;
            }
        };
        owner.address.starts_with(PEER_SCHEME).then_some(owner)
    }

    /// The link of a client to a replica, opened where there is none.
    pub(crate) async fn link(
        self: &Arc<Self>,
        client: &Arc<ClientConnection>,
        owner: &TaskOwner,
    ) -> std::io::Result<Arc<PeerLink>> {
        let key = (client.id, owner.replica.clone());
        let slot = self.links.lock().entry(key.clone()).or_default().clone();
        let mut held = slot.lock().await;
        if let Some(link) = held.as_ref().filter(|link| !link.is_over()) {
            return Ok(link.clone());
        }
        let link = PeerLink::open(self, client, owner).await?;
        *held = Some(link.clone());
        // The client may have left meanwhile, and what it had with it.
        if !self.hub.is_connected(client.id) {
            self.links.lock().remove(&key);
            link.end();
            return Err(std::io::ErrorKind::NotConnected.into());
        }
        Ok(link)
    }

    /// Links of which nobody is just opening another.
    fn open_links(&self, of: impl Fn(&(ConnectionId, String)) -> bool) -> Vec<(String, Arc<PeerLink>)> {
        let links = self.links.lock();
        let slots = links.iter().filter(|(key, _)| of(key));
        let open = slots.filter_map(|((_, replica), slot)| {
            let link = slot.try_lock().ok()?.clone()?;
            (!link.is_over()).then(|| (replica.clone(), link))
        });
        open.collect()
    }

    /// The client follows the thread no more.
    pub(crate) fn unsubscribe(&self, client: ConnectionId, thread: &ThreadId) {
        self.take_lost(client, thread);
        for (_, link) in self.open_links(|(connection, _)| *connection == client) {
            link.unsubscribe(thread);
        }
    }

    /// The client follows the thread again, or no more. What it has heard of it, if it had lost its owner.
    fn take_lost(&self, client: ConnectionId, thread: &ThreadId) -> Option<HeardTurn> {
        let mut lost = self.lost.lock();
        let threads = lost.get_mut(&client)?;
        let heard = threads.remove(thread);
        if threads.is_empty() {
            lost.remove(&client);
        }
        heard
    }

    /// The client is gone, and so are its links.
    pub(crate) fn disconnect(&self, client: ConnectionId) {
        self.lost.lock().remove(&client);
        let mut gone = Vec::new();
        self.links.lock().retain(|(connection, _), slot| {
            let stays = *connection != client;
            if !stays {
                gone.push(slot.clone());
            }
            stays
        });
        for slot in gone {
            // One that is being opened is ended by whoever opens it.
            if let Ok(mut held) = slot.try_lock()
                && let Some(link) = held.take()
            {
                link.end();
            }
        }
    }

    /// The client is without an owner of these threads.
    fn lose(&self, client: ConnectionId, followed: HeardThreads) {
        if !followed.is_empty() && self.hub.is_connected(client) {
            self.lost.lock().entry(client).or_default().extend(followed);
        }
    }

    /// A link ended by itself.
    fn link_ended(&self, client: ConnectionId, followed: HeardThreads) {
        self.lose(client, followed);
        self.ended.notify_one();
    }
}
