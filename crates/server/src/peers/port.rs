//! Where other replicas connect, each time on behalf of one client of theirs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runtime::OwnListeners;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::PeerSecret;
use crate::application::ServerApplication;
use crate::hub::{ConnectionIdentity, Hub, WhenFull};
use crate::options::ServerOptions;
use crate::router::Router;
use crate::server::ServerState;

/// How long a challenge may take.
pub(super) const CHALLENGE_WITHIN: Duration = Duration::from_secs(5);
/// When no connection can be taken in, how long until the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// An open port for other replicas.
#[derive(Debug)]
pub struct PeerPort {
    listener: TcpListener,
    secret: PeerSecret,
    /// The name of this replica.
    replica: String,
}

impl PeerPort {
    pub async fn bind(address: SocketAddr, secret: PeerSecret, replica: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, secret, replica: replica.to_owned() })
    }

    /// With the number that the system chose.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves other replicas for ever. Dropping the future ends their connections.
    pub async fn serve<A: ServerApplication>(
        self,
        options: ServerOptions,
        app: Arc<A>,
        hub: Arc<Hub>,
        router: Router<A>,
    ) {
        let places = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        // As any other port of this host, it is out of reach for commands.
        let mut listeners = OwnListeners::default();
        listeners.ports.extend(self.address().map(|address| address.port()));
        app.listens(listeners);
        let shared = ServerState::new(options, app, hub, router);
        let port = Arc::new(self);
        let mut links = JoinSet::new();
        loop {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            while links.try_join_next().is_some() {}
            let (stream, from) = match port.listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "another host could not be taken in");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let (shared, port) = (shared.clone(), port.clone());
            links.spawn(async move {
                port.admit(shared, stream, from).await;
                drop(place);
            });
        }
    }

    async fn admit<A: ServerApplication>(
        &self,
        shared: Arc<ServerState<A>>,
        mut stream: TcpStream,
        from: SocketAddr,
    ) {
        let _ = stream.set_nodelay(true);
        let challenge = access::accept(&mut stream, &self.secret, &self.replica);
        let (replica, caller) = match timeout(CHALLENGE_WITHIN, challenge).await {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(error)) => {
                return tracing::warn!(%from, %error, "a connection of another host was refused");
            }
            Err(_) => {
                return tracing::warn!(%from, "a connection of another host was closed: it said too little");
            }
        };
        let Some(role) = caller.role() else { return };
        tracing::debug!(%from, replica, caller = caller.name, "another host relays for a client");
        let identity =
            ConnectionIdentity { name: Some(caller.name), role, is_local: caller.is_local, is_relayed: true };
        let (input, output) = stream.into_split();
        let never = std::future::pending();
        shared.lines_of(identity, input, output, WhenFull::Disconnect, never).await;
    }
}
