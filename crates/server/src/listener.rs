//! An open port of either kind, and the loop that takes in who comes.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runtime::OwnListeners;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::application::ServerApplication;
use crate::hub::WhenFull;
use crate::serve_error::ServeError;
use crate::server::ServerState;
use crate::transport::{Listen, Newcomers, UnixClient, UnixPort, WsAuth};
use crate::websocket::{Entrance, WsPort, serve_stream};

/// When no connection can be taken in, as with too many open files, how long until the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// A port that is open and not served yet.
#[derive(Debug)]
pub struct ServerListener(Port);

#[derive(Debug)]
enum Port {
    Ws(WsPort),
    Unix(UnixPort),
}

enum AcceptedClient {
    Tcp(TcpStream),
    Unix(UnixClient),
}

impl ServerListener {
    /// Standard input and output is no port, and is refused as one.
    pub async fn bind(listen: &Listen) -> Result<Self, ServeError> {
        match listen {
            Listen::Ws(address) => match WsPort::bind(*address).await {
                Ok(port) => Ok(Self(Port::Ws(port))),
                Err(source) => Err(ServeError::Bind { listen: listen.clone(), source }),
            },
            Listen::Unix(path) => Ok(Self(Port::Unix(UnixPort::bind(path).await?))),
            Listen::Stdio => {
                let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
                Err(ServeError::Bind { listen: listen.clone(), source })
            }
        }
    }

    /// The address of a websocket port, with the number that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Port::Ws(port) => Some(port.address),
            Port::Unix(_) => None,
        }
    }

    pub(crate) fn announce(&self, auth: &WsAuth) {
        let banner = match &self.0 {
            Port::Ws(port) => {
                if is_exposed(port.address, auth) {
                    tracing::warn!("anybody who reaches {} may use this server: no --ws-auth", port.address);
                }
                port.banner()
            }
            Port::Unix(port) => port.banner(),
        };
        // A closed standard error is no reason to stop.
        let _ = std::io::stderr().write_all(banner.as_bytes());
    }

    /// Endpoints that commands must not reach: the port or the socket, and the file with the token.
    pub(crate) fn facts(&self, auth: &WsAuth) -> OwnListeners {
        let mut listeners = OwnListeners::default();
        match &self.0 {
            Port::Ws(port) => drop(listeners.ports.insert(port.address.port())),
            Port::Unix(port) => listeners.add_file(port.path()),
        }
        if let Some(file) = auth.file() {
            listeners.add_file(file);
        }
        listeners
    }

    async fn accept(&self) -> std::io::Result<AcceptedClient> {
        match &self.0 {
            Port::Ws(port) => port.accept().await.map(AcceptedClient::Tcp),
            Port::Unix(port) => port.accept().await.map(AcceptedClient::Unix),
        }
    }
}

/// Other machines reach the address, and anybody is let in.
pub(crate) fn is_exposed(address: SocketAddr, auth: &WsAuth) -> bool {
    !address.ip().is_loopback() && auth.is_open()
}

/// Takes in clients for ever, as many at once as there may be. Who has connected and not yet been let in has a place of
/// its own kind, which is lost to later ones when there are many.
pub(crate) async fn accept<A: ServerApplication>(
    shared: &Arc<ServerState<A>>,
    listener: &ServerListener,
    stop: &watch::Sender<bool>,
    clients: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(shared.options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let newcomers = Newcomers::new(shared.options.max_handshakes);
    let is_loopback = listener.address().is_some_and(|address| address.ip().is_loopback());
    loop {
        while let Some(ended) = clients.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("a connection failed: {error}");
            }
        }
        let client = match listener.accept().await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "a client could not be taken in");
                newcomers.drop_oldest();
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let entrance = Entrance { newcomer: newcomers.enter(), places: places.clone(), is_loopback };
        let shared = shared.clone();
        let mut stopped = stop.subscribe();
        clients.spawn(async move {
            let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
            match client {
                AcceptedClient::Tcp(stream) => serve_stream(shared, stream, entrance, stop).await,
                AcceptedClient::Unix(client) => serve_lines(shared, client, entrance, stop).await,
            }
        });
    }
}

async fn serve_lines<A: ServerApplication>(
    shared: Arc<ServerState<A>>,
    client: UnixClient,
    mut entrance: Entrance,
    stop: impl Future<Output = ()>,
) {
    tokio::pin!(stop);
    let place = tokio::select! {
        place = client.enter(&entrance.places) => place,
        () = entrance.newcomer.dropped() => None,
        () = &mut stop => None,
    };
    drop(entrance);
    if place.is_some() {
        let (input, output) = client.stream.into_split();
        shared.lines(input, output, WhenFull::Disconnect, stop).await;
    }
}
