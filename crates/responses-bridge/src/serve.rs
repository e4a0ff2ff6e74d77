//! Takes requests, sends them on with the key, and hands the answers back as they come in.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use access::origin::is_same_user_unconfined;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use model_http::{Relay, Secret, Translator};
use server::{Newcomer, Newcomers};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::{self, BridgeResponse};
use super::gate::{self, GateRefusal};
use super::headers;
use super::translate::translate;

/// The state that all requests of the bridge share.
#[derive(Debug)]
pub(crate) struct ResponsesBridge {
    relay: Relay,
    /// Set where the provider speaks another wire.
    translator: Option<Translator>,
    token: Option<Secret>,
    max_body_bytes: usize,
    /// For requests on their way.
    requests: Arc<Semaphore>,
    /// For connections that were let through once, most of which wait for their next request.
    connections: Arc<Semaphore>,
    /// For connections of which no request was let through yet.
    newcomers: Arc<Newcomers>,
}

const MAX_NEWCOMERS: usize = 64;
/// The longest head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;

const CONNECTIONS_PER_REQUEST: usize = 4;
/// For the head of a request, and for the silence before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
const BODY_PATIENCE: Duration = Duration::from_secs(120);
/// Error answers are short.
const MAX_ERROR_BYTES: usize = 1 << 20;
const ERROR_PATIENCE: Duration = Duration::from_secs(30);
/// When the system has no room for one more connection.
const PAUSE: Duration = Duration::from_millis(100);

impl ResponsesBridge {
    pub(crate) fn new(
        relay: Relay,
        token: Option<Secret>,
        max_body_bytes: usize,
        max_requests: usize,
    ) -> Self {
        Self {
            relay,
            translator: None,
            token,
            max_body_bytes,
            requests: Arc::new(Semaphore::new(max_requests)),
            connections: Arc::new(Semaphore::new(max_requests * CONNECTIONS_PER_REQUEST)),
            newcomers: Newcomers::new(MAX_NEWCOMERS),
        }
    }

    /// With requests translated by this one.
    pub(crate) fn translating(self, translator: Option<Translator>) -> Self {
        Self { translator, ..self }
    }
}

/// Until `stop`; what is under way then is cut off.
pub(crate) async fn serve(
    listener: TcpListener,
    bridge: Arc<ResponsesBridge>,
    stop: impl Future<Output = ()>,
) {
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let newcomer = bridge.newcomers.enter();
                    connections.spawn(converse(stream, newcomer, Arc::clone(&bridge)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    bridge.newcomers.drop_oldest();
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    connections.shutdown().await;
}

/// One connection. A client that hangs up ends this, and with it the request to the provider. Until its first request was
/// let through, it makes room for later ones.
async fn converse(stream: TcpStream, mut newcomer: Newcomer, bridge: Arc<ResponsesBridge>) {
    // Events are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let place: Arc<OnceLock<OwnedSemaphorePermit>> = Arc::default();
    let admitted = Arc::new(Notify::new());
    let (held, notify) = (Arc::clone(&place), Arc::clone(&admitted));
    let service = service_fn(move |request| {
        let (bridge, held, notify) = (Arc::clone(&bridge), Arc::clone(&held), Arc::clone(&notify));
        async move { Ok::<_, Infallible>(bridge.answer_in((peer, local), &held, &notify, request).await) }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(MAX_HEAD_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let early = tokio::select! {
        ended = &mut connection => Some(ended),
        () = newcomer.dropped() => return tracing::debug!("a silent connection made room for another one"),
        () = admitted.notified() => None,
    };
    drop(newcomer);
    let ended = match early {
        Some(ended) => ended,
        None => connection.await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

impl ResponsesBridge {
    /// Answers on a connection that takes its place with the first request that is let through.
    async fn answer_in(
        &self,
        (peer, local): (SocketAddr, SocketAddr),
        place: &OnceLock<OwnedSemaphorePermit>,
        admitted: &Notify,
        request: Request<Incoming>,
    ) -> BridgeResponse {
        let (head, body) = request.into_parts();
        let refused = |refusal: GateRefusal| {
            tracing::info!(?refusal, "a request was refused");
            answer::error(StatusCode::FORBIDDEN, "refused", refusal.message())
        };
        let route = match gate::admit(&head, self.token.as_ref()) {
            Ok(route) => route,
            Err(refusal) => return refused(refusal),
        };
        // Whoever reaches the bridge spends the key's money, so a command of any server must not.
        if place.get().is_none() && self.token.is_none() && !is_same_user_unconfined(peer, local).await {
            return refused(GateRefusal::Stranger);
        }
        let busy = || {
            let message = "the bridge has as many requests under way as it may; try again";
            answer::error(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
        };
        if place.get().is_none() {
            let Ok(free) = Arc::clone(&self.connections).try_acquire_owned() else { return busy() };
            let _ = place.set(free);
            admitted.notify_one();
        }
        let Ok(permit) = Arc::clone(&self.requests).try_acquire_owned() else { return busy() };
        let body = match self.read(body).await {
            Ok(body) => body,
            Err(answer) => return answer,
        };
        tracing::debug!(?route, bytes = body.len(), "a request goes on");
        if let Some(translator) = &self.translator {
            return translate(translator, route, &body, permit).await;
        }
        match self.relay.post(route.rest(), headers::of_request(&head.headers), body).await {
            Ok(response) => self.hand_back(response, permit).await,
            Err(problem) => {
                tracing::warn!(problem, upstream = self.relay.shown_url(), "the provider cannot be reached");
                let message = "the bridge cannot reach the model provider; its own log says why";
                answer::error(StatusCode::BAD_GATEWAY, "upstream_unreachable", message)
            }
        }
    }

    /// The whole body, so that the provider never sees half a request.
    async fn read(&self, body: Incoming) -> Result<Bytes, BridgeResponse> {
        let too_large = || {
            let message = format!("the request is larger than {} bytes", self.max_body_bytes);
            answer::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message)
        };
        if body.size_hint().lower() > self.max_body_bytes as u64 {
            return Err(too_large());
        }
        match timeout(BODY_PATIENCE, Limited::new(body, self.max_body_bytes).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => Err(answer::error(StatusCode::BAD_REQUEST, "broken_off", "the request broke off")),
            Err(_) => {
                Err(answer::error(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request came in too slowly"))
            }
        }
    }

    async fn hand_back(&self, answer: http::HttpResponse, permit: OwnedSemaphorePermit) -> BridgeResponse {
        let http::HttpResponse { status, headers, body } = answer;
        tracing::debug!(status = status.as_u16(), "the provider answers");
        let headers = headers::of_answer(&headers);
        if !status.is_success() {
            return self.hand_back_error(status, headers, body).await;
        }
        // Every piece goes out as it came in; the place is free again when the last one has.
        let body = body.map_frame(move |frame| {
            let _held = &permit;
            frame
        });
        finished(status, headers, Response::new(body.boxed_unsync()))
    }

    /// An error may quote the key that it refuses; otherwise its bytes are handed back as they are.
    async fn hand_back_error(
        &self,
        status: StatusCode,
        headers: HeaderMap,
        body: http::ResponseBody,
    ) -> BridgeResponse {
        let body = match body.read(MAX_ERROR_BYTES, ERROR_PATIENCE).await {
            Ok(body) => body,
            Err(_) => {
                let message = format!("the provider answered {status} and its reasons broke off");
                return answer::error(StatusCode::BAD_GATEWAY, "upstream_broken", &message);
            }
        };
        let body = match String::from_utf8(body.to_vec()) {
            Ok(text) => Bytes::from(self.relay.clean(text)),
            Err(_) => body,
        };
        finished(status, headers, Response::new(answer::whole(body)))
    }
}

fn finished(status: StatusCode, headers: HeaderMap, mut answer: BridgeResponse) -> BridgeResponse {
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}
