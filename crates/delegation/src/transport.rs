//! Sends model requests through the host. To the turn it is a transport like any other.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream as EventSource;
use model::{EventStream, ModelFailure, ModelTransport, PreparedRequest, ResponseHead, StreamEvent};
use protocol::{
    ModelCancelDisposition, ModelCancelParams, ModelCancelReason, ModelCancelResponse, ModelRequestResponse,
};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::failure;
use super::host::{Host, HostError};
use super::request::{RequestIds, message};
use super::session::{HostSession, RequestLane};
use super::stream::Stream;
use futures_util::future::BoxFuture;

/// How long a cancelled request may delay the next one.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// The transport of a thread whose host carries its requests.
#[derive(Debug, Clone)]
pub struct DelegatedTransport {
    session: Arc<HostSession>,
}

impl DelegatedTransport {
    pub fn new(session: Arc<HostSession>) -> Self {
        Self { session }
    }
}

impl ModelTransport for DelegatedTransport {
    fn open(&self, request: PreparedRequest) -> EventStream {
        let host = self.session.host();
        let ids = RequestIds::of(&request.metadata);
        let stream = Arc::new(Stream::new(ids.request.clone(), host.id(), self.session.window()));
        let carrying = Carrying {
            session: self.session.clone(),
            host,
            stream,
            state: CarrierState::Waiting(Some((ids, request))),
        };
        Box::pin(carrying)
    }
}

/// One attempt. Dropped early, it cancels the request at the host.
struct Carrying {
    session: Arc<HostSession>,
    host: Arc<dyn Host>,
    stream: Arc<Stream>,
    state: CarrierState,
}

enum CarrierState {
    /// Not polled yet, so nothing is sent.
    Waiting(Option<(RequestIds, PreparedRequest)>),
    Asking(BoxFuture<'static, Result<(), ModelFailure>>),
    Reading {
        silence: SilenceTimer,
    },
    Ended,
}

impl EventSource for Carrying {
    type Item = Result<StreamEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                CarrierState::Waiting(request) => {
                    this.state = match request.take() {
                        Some((ids, request)) => CarrierState::Asking(this.ask(&ids, request)),
                        None => CarrierState::Ended,
                    };
                }
                CarrierState::Asking(asking) => match ready!(asking.as_mut().poll(context)) {
                    Ok(()) => {
                        this.state = CarrierState::Reading {
                            silence: SilenceTimer::new(this.session.first_event_timeout()),
                        };
                        return Poll::Ready(Some(Ok(StreamEvent::Opened(ResponseHead::default()))));
                    }
                    Err(failure) => return Poll::Ready(Some(Err(this.fail(failure)))),
                },
                CarrierState::Reading { silence } => match this.stream.poll(context) {
                    Poll::Ready(Some(Ok(event))) => {
                        silence.end(this.session.idle_timeout());
                        if event.is_terminal() {
                            this.state = CarrierState::Ended;
                        }
                        return Poll::Ready(Some(Ok(event)));
                    }
                    Poll::Ready(Some(Err(failure))) => return Poll::Ready(Some(Err(this.fail(failure)))),
                    Poll::Ready(None) => this.state = CarrierState::Ended,
                    Poll::Pending => {
                        let waited = ready!(silence.poll(context));
                        this.stop(ModelCancelReason::Superseded);
                        return Poll::Ready(Some(Err(failure::silence(waited.as_millis()))));
                    }
                },
                CarrierState::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl Carrying {
    /// Registers the stream and asks the host. Events may arrive before its disposition, and wait for it.
    fn ask(
        &self,
        ids: &RequestIds,
        request: PreparedRequest,
    ) -> BoxFuture<'static, Result<(), ModelFailure>> {
        let (session, host, stream) = (self.session.clone(), self.host.clone(), self.stream.clone());
        let (ids, lane) = (ids.clone(), RequestLane::of(request.metadata.purpose));
        Box::pin(async move {
            if session.is_vacant() {
                stream.settle();
                return Err(failure::gone());
            }
            let params = message(&session, &ids, request).inspect_err(|_| stream.settle())?;
            if let Some(before) = session.enter(&stream, lane) {
                before.settled().await;
            }
            let limit = session.first_event_timeout();
            let Ok(answer) = timeout(limit, host.request_model(params)).await else {
                return Err(failure::host_timeout(limit.as_millis()));
            };
            match answer {
                Ok(ModelRequestResponse::Accepted { provider, model, replayed }) => {
                    tracing::debug!(request = %ids.request, provider, model, replayed, "the host carries a request");
                    Ok(())
                }
                Ok(ModelRequestResponse::Rejected { error }) => {
                    stream.settle();
                    Err(failure::of_error(&error))
                }
                Err(error) => {
                    stream.settle();
                    if error == HostError::Gone {
                        session.detach(host.id());
                    }
                    Err(failure::of_host(&error))
                }
            }
        })
    }

    fn fail(&mut self, failure: ModelFailure) -> ModelFailure {
        self.stop(ModelCancelReason::Superseded);
        failure
    }

    /// Ends the attempt, and notifies the host if necessary.
    fn stop(&mut self, otherwise: ModelCancelReason) {
        let was_asked = matches!(self.state, CarrierState::Asking(_) | CarrierState::Reading { .. });
        self.state = CarrierState::Ended;
        let reason = self.stream.close(otherwise);
        match (was_asked, reason) {
            (true, Some(reason)) => self.cancel(reason),
            _ => self.stream.settle(),
        }
    }

    /// In the background: the caller need not wait for the host.
    fn cancel(&self, reason: ModelCancelReason) {
        let stream = self.stream.clone();
        let Ok(background) = tokio::runtime::Handle::try_current() else { return stream.settle() };
        let asked = self.host.cancel_model(ModelCancelParams {
            thread_id: self.session.thread_id().clone(),
            model_request_id: stream.id.clone(),
            reason,
        });
        background.spawn(async move {
            let ended = async {
                // The host still ends the stream, unless it already has.
                if let Ok(ModelCancelResponse { disposition: ModelCancelDisposition::Canceled }) = asked.await
                {
                    stream.settled().await;
                }
            };
            if timeout(CANCEL_LIMIT, ended).await.is_err() {
                tracing::debug!(request = %stream.id, "the host did not end a canceled request in time");
            }
            stream.settle();
        });
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        if matches!(self.state, CarrierState::Asking(_) | CarrierState::Reading { .. }) {
            let reason = self.session.drop_reason();
            self.stop(reason);
        } else {
            self.stream.close(ModelCancelReason::TurnInterrupted);
        }
    }
}

/// How long the turn has waited for an event. The time it takes to handle events does not count.
struct SilenceTimer {
    patience: Duration,
    /// Created with the first wait, and reset for each.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl SilenceTimer {
    fn new(patience: Duration) -> Self {
        Self { patience, timer: None, is_waiting: false }
    }

    fn end(&mut self, patience: Duration) {
        self.is_waiting = false;
        self.patience = patience;
    }

    /// Ready when the wait is too long, with its length.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        if !std::mem::replace(&mut self.is_waiting, true) {
            timer.as_mut().reset(Instant::now() + self.patience);
        }
        timer.as_mut().poll(context).map(|()| self.patience)
    }
}
