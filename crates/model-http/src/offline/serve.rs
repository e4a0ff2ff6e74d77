//! Serves an embedded model to other programs, as a Responses endpoint.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::vec;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use model::Purpose;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::wire::{self, ForeignRequest};
use super::{OfflineModel, OfflineReply, OfflineRequest, OfflineResponder, Outcome};
use crate::headers::{COMPACT, MEMORY, REVIEW, SUBAGENT};

const MAX_CONNECTIONS: usize = 256;
const MAX_BODY_BYTES: usize = 64 << 20;
const HEADER_PATIENCE: Duration = Duration::from_secs(30);
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

type HttpAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Serves `POST /v1/responses` (or `/responses`) as server-sent events and `GET /v1/models`, to whoever reaches the
/// listener. Runs until the future is dropped, which ends all connections.
pub async fn serve(listener: TcpListener, model: Arc<dyn OfflineResponder>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(&model)))),
            // The client that gave up is gone; too many open files pass when connections end.
            Err(error) => {
                tracing::debug!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, model: Arc<dyn OfflineResponder>) {
    let service = service_fn(move |request| {
        let model = Arc::clone(&model);
        async move { Ok::<_, Infallible>(answer(request, model.as_ref()).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
    // A client that goes away in the middle is normal life.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, model: &dyn OfflineResponder) -> HttpAnswer {
    let path = request.uri().path();
    match (path.strip_prefix("/v1").unwrap_or(path), request.method()) {
        ("/responses", &Method::POST) => respond(request, model).await,
        ("/responses", _) => not_allowed("POST"),
        ("/models", &Method::GET) => models(),
        ("/models", _) => not_allowed("GET"),
        _ => error(StatusCode::NOT_FOUND, "there is only POST /v1/responses and GET /v1/models here"),
    }
}

async fn respond(request: Request<Incoming>, model: &dyn OfflineResponder) -> HttpAnswer {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
        return error(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than 64 MiB, or broke off");
    };
    let ForeignRequest { body, stream } = match wire::read(&body.to_bytes()) {
        Ok(request) => request,
        Err(problem) => return error(StatusCode::BAD_REQUEST, &problem),
    };
    let OfflineReply { delay, outcome } =
        model.respond(OfflineRequest { body: &body, purpose: purpose(&head.headers) });
    match outcome {
        Outcome::Events { events, stays_open } if stream => {
            let timer = (!delay.is_zero()).then(|| Box::pin(sleep(delay)));
            let events = EventBody { timer, events: events.into_iter(), stays_open };
            with_type(StatusCode::OK, "text/event-stream", events.boxed())
        }
        Outcome::Events { events, .. } => {
            sleep(delay).await;
            whole(&events)
        }
        Outcome::Refused { status, body } => {
            sleep(delay).await;
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let is_json = serde_json::from_str::<Value>(&body).is_ok();
            with_type(status, if is_json { "application/json" } else { "text/plain" }, full(body))
        }
    }
}

/// As clients mark it that ask for a summary, a review or memories.
fn purpose(headers: &HeaderMap) -> Purpose {
    match headers.get(SUBAGENT).and_then(|value| value.to_str().ok()) {
        Some(COMPACT) => Purpose::Compaction,
        Some(REVIEW) => Purpose::Review,
        Some(MEMORY) => Purpose::Memory,
        _ => Purpose::Turn,
    }
}

/// For a client that does not stream: the response its last event carries.
fn whole(events: &[String]) -> HttpAnswer {
    let last = events.last().and_then(|event| serde_json::from_str::<Value>(event).ok());
    match last.as_ref().and_then(|event| event.get("response")) {
        Some(response) => with_type(StatusCode::OK, "application/json", full(response.to_string())),
        None => error(StatusCode::INTERNAL_SERVER_ERROR, "the script's events do not end with a response"),
    }
}

fn models() -> HttpAnswer {
    let model = json!({ "id": OfflineModel::NAME, "object": "model", "created": 0, "owned_by": "oarlock" });
    json_answer(StatusCode::OK, &json!({ "object": "list", "data": [model] }))
}

fn not_allowed(allowed: &'static str) -> HttpAnswer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, &format!("use {allowed}"));
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn error(status: StatusCode, message: &str) -> HttpAnswer {
    let code = status.canonical_reason().unwrap_or_default().to_ascii_lowercase().replace(' ', "_");
    json_answer(
        status,
        &json!({ "error": { "message": message, "type": "invalid_request_error", "code": code } }),
    )
}

fn json_answer(status: StatusCode, value: &Value) -> HttpAnswer {
    with_type(status, "application/json", full(value.to_string()))
}

fn full(text: String) -> BoxBody<Bytes, Infallible> {
    Full::new(Bytes::from(text)).boxed()
}

fn with_type(status: StatusCode, kind: &'static str, body: BoxBody<Bytes, Infallible>) -> HttpAnswer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Events as server-sent events, one frame each, as fast as the client takes them.
struct EventBody {
    timer: Option<Pin<Box<Sleep>>>,
    events: vec::IntoIter<String>,
    stays_open: bool,
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(context));
            self.timer = None;
        }
        match self.events.next() {
            Some(event) => Poll::Ready(Some(Ok(Frame::data(format!("data: {event}\n\n").into())))),
            // No wake-up is needed; the client ends it.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}
