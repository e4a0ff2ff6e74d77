//! Clients over websockets: one message per text frame.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rpc::{Backlog, Outbox};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::admission::{Admission, Gatekeeper};
use crate::app::Application;
use crate::hub::WhenFull;
use crate::server::{Ending, Shared};
use crate::session::Session;

/// How long a client may take to say what it wants.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a goodbye may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const READ_BUFFER_BYTES: usize = 16 * 1024;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

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

    pub(crate) async fn accept(&self) -> io::Result<TcpStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// What is said on standard error: standard output stays free. Whoever started the server reads the port here.
    pub(crate) fn banner(&self) -> String {
        let address = self.address;
        let note = if address.ip().is_loopback() {
            "reachable from this machine only"
        } else {
            "reachable from other machines; use --ws-auth and an encrypted tunnel"
        };
        format!(
            "oarlock app-server (WebSockets)\n  listening on: ws://{address}\n  readyz: http://{address}/readyz\n  \
             healthz: http://{address}/healthz\n  note: {note}\n"
        )
    }
}

/// Serves whatever comes over one TCP connection, until it ends or `stop` does.
pub(crate) async fn serve_stream<A: Application>(
    shared: Arc<Shared<A>>,
    stream: TcpStream,
    is_loopback: bool,
    stop: impl Future<Output = ()>,
) {
    // A small message must not wait for the next one.
    let _ = stream.set_nodelay(true);
    tokio::pin!(stop);
    let upgrade = tokio::select! {
        upgrade = negotiate(&shared, stream, is_loopback) => upgrade,
        () = &mut stop => None,
    };
    let Some(upgrade) = upgrade else { return };
    match upgrade.await {
        Ok(upgraded) => converse(shared, upgraded, stop).await,
        Err(error) => tracing::debug!(%error, "a websocket did not open"),
    }
}

/// Answers one HTTP request. `Some` when it became a websocket.
async fn negotiate<A: Application>(
    shared: &Shared<A>,
    stream: TcpStream,
    is_loopback: bool,
) -> Option<OnUpgrade> {
    let (sender, mut upgrade) = oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let gatekeeper = Gatekeeper { auth: &shared.options.auth, is_loopback };
    let service = service_fn(|mut request: Request<Incoming>| {
        let upgrade = hyper::upgrade::on(&mut request);
        let admission = gatekeeper.admit(&request.into_parts().0);
        if matches!(admission, Admission::Upgrade(_))
            && let Some(sender) = sender.lock().ok().and_then(|mut sender| sender.take())
        {
            let _ = sender.send(upgrade);
        }
        std::future::ready(Ok::<_, Infallible>(answer(admission)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "an HTTP request failed");
    }
    upgrade.try_recv().ok()
}

fn answer(admission: Admission) -> Response<Full<Bytes>> {
    let (status, text) = match &admission {
        Admission::Healthy => (StatusCode::OK, ""),
        Admission::Refused(status, text) => (*status, *text),
        Admission::Upgrade(_) => (StatusCode::SWITCHING_PROTOCOLS, ""),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if !text.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    match admission {
        Admission::Upgrade(accept) => {
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            if let Ok(accept) = HeaderValue::try_from(accept) {
                headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
        }
        // One request each: nobody keeps a place by asking for its health.
        Admission::Healthy | Admission::Refused(..) => {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
    response
}

async fn converse<A: Application>(
    shared: Arc<Shared<A>>,
    upgraded: Upgraded,
    stop: impl Future<Output = ()>,
) {
    let limit = Some(shared.options.max_line_bytes);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(limit)
        .max_frame_size(limit);
    let socket = Socket::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (sink, mut stream) = socket.split();
    let (outbox, backlog) = Outbox::open(shared.options.outbox);
    let connection = shared.hub.connect(outbox, WhenFull::Disconnect);
    let mut session = Session::new(shared.clone(), connection.clone());
    let (close, closing) = oneshot::channel();
    let mut writer = tokio::spawn(write(sink, backlog, closing));
    let (ending, code) = tokio::select! {
        code = read(&mut stream, &mut session) => (Ending::EndOfInput, code),
        () = connection.kicked() => (Ending::Disconnected, None),
        _ = &mut writer => (Ending::Disconnected, None),
        () = stop => (Ending::Stopped, Some(CloseCode::Away)),
    };
    let abort = writer.abort_handle();
    let goodbye = async {
        if let Some(code) = code
            && close.send(code).is_ok()
        {
            let _ = writer.await;
        }
    };
    let grace = if ending == Ending::Disconnected { Duration::ZERO } else { CLOSE_TIMEOUT };
    session.end(goodbye, grace).await;
    abort.abort();
}

/// Reads until the client leaves. Gives the code to close with when it did something that is against the rules.
async fn read<A: Application>(
    stream: &mut SplitStream<Socket>,
    session: &mut Session<A>,
) -> Option<CloseCode> {
    while let Some(message) = stream.next().await {
        match message {
            Ok(Message::Text(text)) if text.trim_ascii().is_empty() => {}
            Ok(Message::Text(text)) => session.take(text.as_bytes()).await.ok()?,
            Ok(Message::Binary(_)) => tracing::warn!("a binary frame was dropped: messages are text"),
            // The library answers a ping and a close by itself, with the next read.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_)) => {}
            Err(error) => return code_of(&error),
        }
    }
    None
}

fn code_of(error: &Error) -> Option<CloseCode> {
    match error {
        Error::Utf8(_) => Some(CloseCode::Invalid),
        Error::Capacity(_) => Some(CloseCode::Size),
        Error::Protocol(_) => Some(CloseCode::Protocol),
        _ => None,
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut backlog: Backlog,
    mut closing: oneshot::Receiver<CloseCode>,
) -> Result<(), Error> {
    loop {
        let line = tokio::select! {
            biased;
            Ok(code) = &mut closing => {
                let frame = CloseFrame { code, reason: "".into() };
                return sink.send(Message::Close(Some(frame))).await;
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
