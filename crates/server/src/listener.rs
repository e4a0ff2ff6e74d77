//! An open port of either kind, and the loop that takes in who comes.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtime::OwnListeners;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::application::ServerApplication;
use crate::hub::WhenFull;
use crate::server::ServerState;
use crate::websocket::{Entrance, WsPort, serve_stream};
use transport::ServeError;
use transport::{Listen, Newcomers, UnixClient, UnixPort, WsAuth};

/// When no connection can be taken in, as with too many open files, how long until the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// How often the tokens of a host are looked at, which is how long a revoked one still opens a connection.
const TOKENS_EVERY: Duration = Duration::from_secs(2);

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
            Listen::Stdio | Listen::Inherited => {
                let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
                Err(ServeError::Bind { listen: listen.clone(), source })
            }
        }
    }

    /// Takes over a socket that a service manager opened: websockets on a TCP port, lines on a Unix socket.
    pub fn adopt(socket: OwnedFd) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { listen: Listen::Inherited, source };
        let port = std::net::TcpListener::from(socket);
        let adopted = match port.local_addr() {
            Ok(address) => WsPort::adopt(port, address).map(Port::Ws),
            // Of another kind than TCP.
            Err(_) => UnixPort::adopt(OwnedFd::from(port).into()).map(Port::Unix),
        };
        adopted.map(Self).map_err(failed)
    }

    /// The address of a websocket port, with the number that the system chose.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.0 {
            Port::Ws(port) => Some(port.address),
            Port::Unix(_) => None,
        }
    }

    /// The file of a Unix socket, if it has one.
    pub fn socket_file(&self) -> Option<&Path> {
        match &self.0 {
            Port::Ws(_) => None,
            Port::Unix(port) => Some(port.path()).filter(|path| !path.as_os_str().is_empty()),
        }
    }

    /// Where clients connect: `ws://…` or `unix://…`.
    pub fn url(&self) -> String {
        match &self.0 {
            Port::Ws(port) => format!("ws://{}", port.address),
            Port::Unix(port) => format!("unix://{}", port.path().display()),
        }
    }

    pub fn warn_if_exposed(&self, auth: &WsAuth) {
        if let Some(address) = self.address().filter(|address| is_exposed(*address, auth)) {
            tracing::warn!("anybody who reaches {address} may use this server: no --ws-auth");
        }
    }

    /// Says on standard error where it is. Whoever reads that connects at once, so everything else is to be there.
    pub fn announce(&self, auth: &WsAuth) {
        self.warn_if_exposed(auth);
        let banner = match &self.0 {
            Port::Ws(port) => port.banner(),
            Port::Unix(port) => port.banner(),
        };
        // A closed standard error is no reason to stop.
        let _ = std::io::stderr().write_all(banner.as_bytes());
    }

    /// Endpoints that commands must not reach: the port or the socket, and the file with the token.
    pub(crate) fn facts(&self, auth: &WsAuth) -> OwnListeners {
        let mut listeners = OwnListeners::default();
        listeners.ports.extend(self.address().map(|address| address.port()));
        for file in self.socket_file().into_iter().chain(auth.file()) {
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
    let (has_tokens, mut next_look) = (shared.options.auth.has_tokens(), Instant::now() + TOKENS_EVERY);
    loop {
        while let Some(ended) = clients.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("a connection failed: {error}");
            }
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = tokio::time::sleep_until(next_look), if has_tokens => {
                look_at_tokens(shared);
                next_look = Instant::now() + TOKENS_EVERY;
                continue;
            }
        };
        let client = match accepted {
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

/// Reads the tokens of a host anew if they have changed, and ends the connections of those who lose theirs.
fn look_at_tokens<A: ServerApplication>(shared: &ServerState<A>) {
    match shared.options.auth.refresh() {
        Ok(gone) if gone.is_empty() => {}
        Ok(gone) => {
            tracing::info!(names = gone.join(" "), "tokens were changed or revoked");
            shared.hub.disconnect_named(&gone);
        }
        Err(error) => tracing::error!(%error, "the tokens of before stay in use"),
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
