//! Requests to an embedded model and its replies, whether in the process or over HTTP.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::vec;

use futures_core::Stream;
use model::{ModelFailure, PreparedRequest, Purpose, RequestBody, ResponseHead, StreamEvent};
use tokio::time::{Sleep, sleep};
use wires::HttpRefusal;

use crate::event::{closed_early, read_event};

/// Answers requests. Both forms of the offline model do; a test may bring its own.
pub trait OfflineResponder: Send + Sync {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn OfflineResponder + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfflineResponder")
    }
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct OfflineRequest<'a> {
    pub body: &'a RequestBody,
    pub purpose: Purpose,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfflineReply {
    /// How long to wait before any of it.
    pub delay: Duration,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Responses events, each as the text of its JSON.
    Events {
        events: Vec<String>,
        /// The connection is kept open after them, as by a provider that has fallen silent.
        stays_open: bool,
    },
    /// An HTTP answer that is not a success.
    Refused { status: u16, body: String },
}

impl OfflineReply {
    pub fn events(events: Vec<String>) -> Self {
        Self { delay: Duration::ZERO, outcome: Outcome::Events { events, stays_open: false } }
    }

    pub fn refused(status: u16, body: impl Into<String>) -> Self {
        Self { delay: Duration::ZERO, outcome: Outcome::Refused { status, body: body.into() } }
    }
}

/// A reply as the stream of one attempt. The model is asked when the stream is first polled.
pub(super) struct ReplyStream<R> {
    state: ReplyState<R>,
}

enum ReplyState<R> {
    Asking(R, PreparedRequest),
    Waiting(Pin<Box<Sleep>>, Outcome),
    Playing { events: vec::IntoIter<String>, stays_open: bool },
    Ended,
}

impl<R: OfflineResponder> ReplyStream<R> {
    pub(super) fn new(responder: R, request: PreparedRequest) -> Self {
        Self { state: ReplyState::Asking(responder, request) }
    }
}

impl<R: OfflineResponder + Unpin> Stream for ReplyStream<R> {
    type Item = Result<StreamEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let event = loop {
            match &mut self.state {
                ReplyState::Asking(responder, request) => {
                    let asked = OfflineRequest { body: &request.body, purpose: request.metadata.purpose };
                    let OfflineReply { delay, outcome } = responder.respond(asked);
                    if delay.is_zero() {
                        break self.begin(outcome);
                    }
                    self.state = ReplyState::Waiting(Box::pin(sleep(delay)), outcome);
                }
                ReplyState::Waiting(timer, outcome) => {
                    ready!(timer.as_mut().poll(context));
                    let outcome = outcome.clone();
                    break self.begin(outcome);
                }
                ReplyState::Playing { events, stays_open } => match events.next() {
                    Some(text) => match read_event(&text) {
                        Some(event) => break Ok(event),
                        None => continue,
                    },
                    // Intentionally never woken.
                    None if *stays_open => return Poll::Pending,
                    None => break Err(closed_early()),
                },
                ReplyState::Ended => return Poll::Ready(None),
            }
        };
        if event.as_ref().map_or(true, StreamEvent::is_terminal) {
            self.state = ReplyState::Ended;
        }
        Poll::Ready(Some(event))
    }
}

impl<R> ReplyStream<R> {
    fn begin(&mut self, outcome: Outcome) -> Result<StreamEvent, ModelFailure> {
        match outcome {
            Outcome::Events { events, stays_open } => {
                self.state = ReplyState::Playing { events: events.into_iter(), stays_open };
                Ok(StreamEvent::Opened(ResponseHead::default()))
            }
            Outcome::Refused { status, body } => Err(wires::http_failure(HttpRefusal {
                status,
                body: &body,
                retry_after_ms: None,
                url: "offline",
                model: "",
                credential: "the provider refused the key",
            })),
        }
    }
}
