//! An open port of either kind, and the loop that takes in who comes.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::app::Application;
use crate::hub::WhenFull;
use crate::serve::ServeError;
use crate::server::Shared;
use crate::transport::{Listen, UnixPort, WsAuth, WsPort, serve_stream};

/// When no connection can be taken in, as with too many open files, how long until the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// A port that is open and not served yet.
#[derive(Debug)]
pub struct Listener(Port);

#[derive(Debug)]
enum Port {
    Ws(WsPort),
    Unix(UnixPort),
}

enum Client {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
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
                if !port.address.ip().is_loopback() && auth.is_open() {
                    tracing::warn!("anybody who reaches {} may use this server: no --ws-auth", port.address);
                }
                port.banner()
            }
            Port::Unix(port) => port.banner(),
        };
        // A closed standard error is no reason to stop.
        let _ = std::io::stderr().write_all(banner.as_bytes());
    }

    async fn accept(&self) -> std::io::Result<Client> {
        match &self.0 {
            Port::Ws(port) => port.accept().await.map(Client::Tcp),
            Port::Unix(port) => port.accept().await.map(Client::Unix),
        }
    }
}

/// Takes in clients for ever, as many at once as there may be.
pub(crate) async fn accept<A: Application>(
    shared: &Arc<Shared<A>>,
    listener: &Listener,
    stop: &watch::Sender<bool>,
    clients: &mut JoinSet<()>,
) {
    let places = Arc::new(Semaphore::new(shared.options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let is_loopback = listener.address().is_some_and(|address| address.ip().is_loopback());
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        while let Some(ended) = clients.try_join_next() {
            if let Err(error) = ended {
                tracing::error!("a connection failed: {error}");
            }
        }
        let client = match listener.accept().await {
            Ok(client) => client,
            Err(error) => {
                tracing::warn!(%error, "a client could not be taken in");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let shared = shared.clone();
        let mut stopped = stop.subscribe();
        clients.spawn(async move {
            let stop = async { drop(stopped.wait_for(|stop| *stop).await) };
            match client {
                Client::Tcp(stream) => serve_stream(shared, stream, is_loopback, stop).await,
                Client::Unix(stream) => {
                    let (input, output) = stream.into_split();
                    shared.lines(input, output, WhenFull::Disconnect, stop).await;
                }
            }
            drop(place);
        });
    }
}
