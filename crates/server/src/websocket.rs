//! Clients over websockets: one message per text frame.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use access::origin::{self, Origin, PortAudience};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rpc::{Backlog, Outbox};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::application::ServerApplication;
use crate::hub::{ConnectionIdentity, Hub, WhenFull};
use crate::metrics::{METRICS_TYPE, MetricsText};
use crate::server::{ConnectionEnd, ServerState};
use crate::session::ConnectionSession;
use transport::http_pages;
use transport::{Admission, Allowance, Gatekeeper, Metered, Newcomer, StatusPage, UpgradeAnswer};

/// How long a client may take to say what it wants.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const READ_BUFFER_BYTES: usize = 16 * 1024;
/// The longest head of a request. Tokens are the largest part of it.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Said to a client that could be a command. A command can hide where its connection comes from.
const UNKNOWN: &str = "it cannot be told which process connects; use --ws-auth or a Unix socket";

/// Said to a client of another user. On a port without a token, the user is all that tells clients apart.
const OTHER_USER: &str = "this server is for the user who started it; use --ws-auth to let others in";

type ClientSocket = WebSocketStream<Metered<TokioIo<Upgraded>>>;

/// A port that is open.
#[derive(Debug)]
pub(crate) struct WsPort {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl WsPort {
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Takes over a port that somebody else opened.
    pub(crate) fn adopt(listener: std::net::TcpListener, address: SocketAddr) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener: TcpListener::from_std(listener)?, address })
    }

    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// The text for standard error, where the one who started the server reads the port. Standard output stays free.
    pub(crate) fn banner(&self) -> String {
        let address = self.address;
        let note = if address.ip().is_loopback() {
            "reachable from this machine only"
        } else {
            "reachable from other machines; use --ws-auth and an encrypted tunnel"
        };
        format!(
            "oarlock app-server (WebSockets)\n  listening on: ws://{address}\n  readyz: http://{address}/readyz\n  \
             healthz: http://{address}/healthz\n  console: http://{address}/\n  note: {note}\n"
        )
    }
}

/// Everything that a connection needs until it is admitted.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) newcomer: Newcomer,
    /// For clients that were let in.
    pub(crate) places: Arc<Semaphore>,
    /// The port is open to this machine alone.
    pub(crate) is_loopback: bool,
}

/// Serves whatever comes over one TCP connection, until it ends or `stop` does.
pub(crate) async fn serve_stream<A: ServerApplication>(
    shared: Arc<ServerState<A>>,
    stream: TcpStream,
    entrance: Entrance,
    stop: impl Future<Output = ()>,
) {
    // A small message must not wait for the next one.
    let _ = stream.set_nodelay(true);
    tokio::pin!(stop);
    let Entrance { mut newcomer, places, is_loopback } = entrance;
    let is_for_all = shared.options.allow_unauthenticated;
    let gatekeeper = Gatekeeper { auth: &shared.options.auth, is_loopback, is_for_all };
    let admitted = tokio::select! {
        admitted = negotiate(&shared, &gatekeeper, stream, &places) => admitted,
        () = newcomer.dropped() => return tracing::debug!("a silent connection made room for another one"),
        () = &mut stop => None,
    };
    drop(newcomer);
    let Some(UpgradedRequest { upgrade, place, identity }) = admitted else { return };
    match upgrade.await {
        Ok(upgraded) => converse(shared, upgraded, identity, stop).await,
        Err(error) => tracing::debug!(%error, "a websocket did not open"),
    }
    drop(place);
}

/// A request that became a websocket.
struct UpgradedRequest {
    upgrade: OnUpgrade,
    place: OwnedSemaphorePermit,
    identity: ConnectionIdentity,
}

/// Answers one HTTP request. `Some` when it became a websocket.
async fn negotiate<A: ServerApplication>(
    shared: &ServerState<A>,
    gatekeeper: &Gatekeeper<'_>,
    stream: TcpStream,
    places: &Arc<Semaphore>,
) -> Option<UpgradedRequest> {
    let addresses = stream.peer_addr().and_then(|peer| Ok((peer, stream.local_addr()?))).ok()?;
    let (sender, mut admitted) = oneshot::channel();
    let sender = parking_lot::Mutex::new(Some(sender));
    let service = service_fn(|mut request: Request<Incoming>| {
        let upgrade = hyper::upgrade::on(&mut request);
        let sender = &sender;
        async move {
            let mut admission = gatekeeper.admit(&request.into_parts().0);
            if let Admission::Upgrade(UpgradeAnswer { holder, .. }) = &admission {
                let identity = ConnectionIdentity::of_network(holder.clone());
                match enter(gatekeeper, addresses, places).await {
                    Ok(place) => {
                        if let Some(sender) = sender.lock().take() {
                            let _ = sender.send(UpgradedRequest { upgrade, place, identity });
                        }
                    }
                    Err(refused) => admission = refused,
                }
            }
            // Numbers are for those who would be let in as clients.
            if admission == Admission::Status(StatusPage::Metrics)
                && let Err(text) = check_origin(gatekeeper, addresses).await
            {
                admission = Admission::Refused(StatusCode::FORBIDDEN, text);
            }
            match &admission {
                Admission::Refused(StatusCode::UNAUTHORIZED, reason) => {
                    tracing::info!(peer = %addresses.0, reason, "an authentication was refused");
                }
                Admission::Refused(StatusCode::FORBIDDEN, reason) => {
                    tracing::info!(peer = %addresses.0, reason, "a connection was refused");
                }
                _ => {}
            }
            let status = match &admission {
                Admission::Status(page) => Some(status_page(&*shared.app, &shared.hub, *page).await),
                _ => None,
            };
            Ok::<_, Infallible>(answer(admission, status))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "an HTTP request failed");
    }
    admitted.try_recv().ok()
}

/// Waits for a place, unless a command wants it.
async fn enter(
    gatekeeper: &Gatekeeper<'_>,
    addresses: (SocketAddr, SocketAddr),
    places: &Arc<Semaphore>,
) -> Result<OwnedSemaphorePermit, Admission> {
    let refused = |text| Admission::Refused(StatusCode::FORBIDDEN, text);
    check_origin(gatekeeper, addresses).await.map_err(refused)?;
    places.clone().acquire_owned().await.map_err(|_| refused("the server stops"))
}

/// Refuses commands of this server, and on a port without a token whoever is not known to be a process of this user
/// outside any sandbox. A token counts where that cannot be told: commands cannot read it.
async fn check_origin(
    gatekeeper: &Gatekeeper<'_>,
    (peer, local): (SocketAddr, SocketAddr),
) -> Result<(), &'static str> {
    let has_token = !gatekeeper.auth.is_open();
    let audience = match has_token || gatekeeper.is_for_all {
        true => PortAudience::TokenHolders,
        false => PortAudience::SameUser,
    };
    let refusal = if audience == PortAudience::SameUser && origin::is_other_user(peer, local).await {
        OTHER_USER
    } else {
        match origin::of_tcp(peer, local, audience).await {
            Origin::Elsewhere => return Ok(()),
            Origin::Unknown if has_token => return Ok(()),
            Origin::Unknown => UNKNOWN,
            Origin::Descendant => origin::REFUSAL,
            Origin::Confined => origin::CONFINED_REFUSAL,
            Origin::Unheld => origin::UNHELD_REFUSAL,
        }
    };
    tracing::warn!(%peer, "a client was refused: {refusal}");
    Err(refusal)
}

/// A page about this server, with the status that tells whether all is well.
async fn status_page(app: &impl ServerApplication, hub: &Hub, page: StatusPage) -> (StatusCode, String) {
    match page {
        StatusPage::Health => (StatusCode::OK, String::new()),
        StatusPage::Ready { .. } if hub.is_stopping() => {
            (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned())
        }
        StatusPage::Ready { tells_why } => match app.ready().await {
            Ok(()) => (StatusCode::OK, String::new()),
            Err(problem) if tells_why => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
        },
        StatusPage::Metrics => {
            let mut text = MetricsText::default();
            hub.metrics(&mut text);
            app.metrics(&mut text).await;
            (StatusCode::OK, text.finish())
        }
    }
}

fn answer(admission: Admission, status: Option<(StatusCode, String)>) -> Response<Full<Bytes>> {
    if let Admission::Page { file, is_head } = admission {
        let mut response = http_pages::response(file, is_head);
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    let is_metrics = matches!(admission, Admission::Status(StatusPage::Metrics));
    let (status, text) = match &admission {
        Admission::Status(_) | Admission::Page { .. } => status.unwrap_or_default(),
        Admission::Refused(status, text) => (*status, (*text).to_owned()),
        Admission::Upgrade(_) => (StatusCode::SWITCHING_PROTOCOLS, String::new()),
    };
    let kind = if is_metrics { METRICS_TYPE } else { "text/plain; charset=utf-8" };
    let has_text = !text.is_empty();
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if has_text {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    match admission {
        Admission::Upgrade(UpgradeAnswer { accept, is_console, .. }) => {
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            if let Ok(accept) = HeaderValue::try_from(accept) {
                headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
            if is_console {
                let protocol = HeaderValue::from_static(http_pages::CONSOLE_PROTOCOL);
                headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
            }
        }
        // One request each: nobody keeps a place by asking for its health.
        Admission::Status(_) | Admission::Page { .. } | Admission::Refused(..) => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    response
}

async fn converse<A: ServerApplication>(
    shared: Arc<ServerState<A>>,
    upgraded: Upgraded,
    identity: ConnectionIdentity,
    stop: impl Future<Output = ()>,
) {
    let limit = Some(shared.options.max_line_bytes);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(limit)
        .max_frame_size(limit);
    let allowance = Allowance::new(shared.options.max_first_bytes);
    let upgraded = Metered::new(TokioIo::new(upgraded), allowance.clone());
    let socket = ClientSocket::from_raw_socket(upgraded, Role::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    let (outbox, backlog) = Outbox::open(shared.options.outbox);
    let connection = shared.hub.connect(outbox, WhenFull::Disconnect, identity);
    // It may have waited for its place while its token was revoked.
    let ConnectionIdentity { name, role, .. } = &connection.identity;
    if !shared.options.auth.still_has(name.as_deref(), *role) {
        connection.kick();
    }
    let mut session = ConnectionSession::new(shared.clone(), connection.clone());
    let (close, closing) = oneshot::channel();
    let (pings, pinged) = mpsc::channel(1);
    let mut writer = tokio::spawn(write(sink, backlog, pinged, closing));
    let mut reader = SocketReader { stream, allowance, pings };
    let (ending, code) = tokio::select! {
        code = reader.read_all(&shared, &mut session) => (ConnectionEnd::EndOfInput, code),
        () = connection.kicked() => (ConnectionEnd::Disconnected, None),
        _ = &mut writer => (ConnectionEnd::Disconnected, None),
        () = stop => (ConnectionEnd::Stopped, Some(CloseCode::Away)),
    };
    let abort = writer.abort_handle();
    let goodbye = async {
        if let Some(code) = code
            && close.send(code).is_ok()
        {
            let _ = writer.await;
        }
    };
    let grace = if ending == ConnectionEnd::Disconnected { Duration::ZERO } else { CLOSE_TIMEOUT };
    session.end(goodbye, grace).await;
    abort.abort();
}

struct SocketReader {
    stream: SplitStream<ClientSocket>,
    /// Bytes that may be read before the next message is complete.
    allowance: Allowance,
    /// Has the writer send what it holds, and say when that is done.
    pings: mpsc::Sender<oneshot::Sender<()>>,
}

/// Why reading stopped.
enum ReadStop {
    /// The client has said who it is.
    Initialized,
    /// It has left, or is to be closed with this code.
    Ended(Option<CloseCode>),
}

impl SocketReader {
    /// Reads until the client leaves. Gives the code to close with when it did something that is against the rules.
    async fn read_all<A: ServerApplication>(
        &mut self,
        shared: &ServerState<A>,
        session: &mut ConnectionSession<A>,
    ) -> Option<CloseCode> {
        match shared.first_words(self.read(session, Some(shared.options.max_first_bytes))).await {
            None => return Some(CloseCode::Policy),
            Some(ReadStop::Ended(code)) => return code,
            Some(ReadStop::Initialized) => self.allowance.lift(),
        }
        match self.read(session, None).await {
            ReadStop::Initialized => None,
            ReadStop::Ended(code) => code,
        }
    }

    /// Until the client has said who it is, if there is a limit to what it may say before.
    async fn read<A: ServerApplication>(
        &mut self,
        session: &mut ConnectionSession<A>,
        limit: Option<usize>,
    ) -> ReadStop {
        while let Some(message) = self.stream.next().await {
            if let Some(limit) = limit {
                self.allowance.set(limit);
            }
            match message {
                Ok(Message::Text(text)) if text.trim_ascii().is_empty() => {}
                Ok(Message::Text(text)) => match session.take(text.as_bytes()).await {
                    Ok(()) if limit.is_some() && session.is_initialized() => return ReadStop::Initialized,
                    Ok(()) => {}
                    Err(_) => return ReadStop::Ended(None),
                },
                Ok(Message::Binary(_)) => tracing::warn!("a binary frame was dropped: messages are text"),
                Ok(Message::Ping(_)) => self.flush().await,
                // The library answers a close by itself, with the next read.
                Ok(Message::Pong(_) | Message::Close(_) | Message::Frame(_)) => {}
                Err(error) => return ReadStop::Ended(code_of(&error)),
            }
        }
        ReadStop::Ended(None)
    }

    /// The library has put its answer to a ping into a buffer without bounds. Nothing more is read until the client has
    /// taken it, so there is one such answer at most.
    async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        // When the writer is gone, the connection ends.
        if self.pings.send(done).await.is_ok() {
            let _ = flushed.await;
        }
    }
}

fn code_of(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => Some(CloseCode::Size),
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Capacity(_) => Some(CloseCode::Size),
        Error::Protocol(_) => Some(CloseCode::Protocol),
        _ => None,
    }
}

async fn write(
    mut sink: SplitSink<ClientSocket, Message>,
    mut backlog: Backlog,
    mut pinged: mpsc::Receiver<oneshot::Sender<()>>,
    mut closing: oneshot::Receiver<CloseCode>,
) -> Result<(), Error> {
    loop {
        let line = tokio::select! {
            biased;
            Ok(code) = &mut closing => {
                let frame = CloseFrame { code, reason: "".into() };
                return sink.send(Message::Close(Some(frame))).await;
            }
            Some(done) = pinged.recv() => {
                sink.flush().await?;
                let _ = done.send(());
                continue;
            }
            line = backlog.next() => line,
        };
        let Some(mut line) = line else { return Ok(()) };
        line.pop();
        // Lines are JSON that was written here, so they are text.
        let Ok(text) = String::from_utf8(line) else { continue };
        sink.feed(Message::text(text)).await?;
        if backlog.is_empty() {
            sink.flush().await?;
        }
    }
}
