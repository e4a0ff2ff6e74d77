//! A model request at the client that carries the task's: found or waited for, asked, read, and told when nobody wants its
//! answer any more.

use std::future::{pending, ready};
use std::sync::Arc;

use protocol::{
    ModelCancelParams, ModelCancelReason, ModelError, ModelRequestParams, ModelRequestResponse,
    StreamAbortReason,
};
use tokio::time::{Duration, Instant, sleep_until};
use traces::{TraceContext, within};

use super::{ModelCarrier, lane_of};
use crate::clients::{BoxFuture, CarrierAnswer, HostClients};
use crate::messages::TaskCommand;
use crate::streams::{CarrierLane, StreamKey, StreamReader};
use task::{STREAM_WINDOW, StreamBreak, StreamNews, TaskInput};

/// How long a client may take for its first event.
const FIRST_EVENT_WITHIN: Duration = Duration::from_secs(300);

/// One request of a runtime, and the client that carries it at the moment.
pub(super) struct ClientSource {
    request: UncarriedRequest,
    attempt: Option<ClientAttempt>,
    has_event: bool,
}

/// A request that any client may carry.
struct UncarriedRequest {
    carrier: ModelCarrier,
    params: Arc<ModelRequestParams>,
    trace: Option<TraceContext>,
}

/// The request at one connection. Dropped early, the client is told to stop.
struct ClientAttempt {
    clients: Arc<dyn HostClients>,
    key: StreamKey,
    reader: StreamReader,
    answer: Option<BoxFuture<'static, CarrierAnswer>>,
    deadline: Instant,
    /// For the client, when the attempt is dropped before it is over.
    reason: ModelCancelReason,
    is_over: bool,
}

impl ClientSource {
    pub(super) fn new(
        carrier: ModelCarrier,
        params: &ModelRequestParams,
        trace: Option<TraceContext>,
    ) -> Self {
        let params = Arc::new(ModelRequestParams { window: STREAM_WINDOW, ..params.clone() });
        let request = UncarriedRequest { carrier, params, trace };
        Self { request, attempt: None, has_event: false }
    }

    /// Why the client is told to stop, if it is.
    pub(super) fn give_up(&mut self, reason: ModelCancelReason) {
        if let Some(attempt) = &mut self.attempt {
            attempt.reason = reason;
        }
    }

    /// The next event, or the end of the stream without a terminal one. Another client takes over one that left before it
    /// sent anything.
    pub(super) async fn next(&mut self) -> StreamNews {
        loop {
            let attempt = match &mut self.attempt {
                Some(attempt) => attempt,
                None => match self.request.find().await {
                    Ok(attempt) => self.attempt.insert(attempt),
                    Err(broken) => return StreamNews::Broken(broken),
                },
            };
            let has_answer = attempt.answer.is_none();
            let news = tokio::select! {
                biased;
                news = attempt.reader.next() => news,
                answer = answered(&mut attempt.answer), if !has_answer => {
                    attempt.answer = None;
                    match answer {
                        CarrierAnswer::Answered(ModelRequestResponse::Accepted { .. }) => continue,
                        CarrierAnswer::Answered(ModelRequestResponse::Rejected { error }) => {
                            StreamNews::Broken(StreamBreak::Rejected(error))
                        }
                        CarrierAnswer::Refused(problem) => StreamNews::Broken(StreamBreak::Rejected(refusal(&problem))),
                        CarrierAnswer::Gone => StreamNews::Broken(StreamBreak::CarrierGone),
                    }
                }
                () = sleep_until(attempt.deadline), if !self.has_event => {
                    // Not over: the client is told to stop.
                    return StreamNews::Broken(StreamBreak::plain(StreamAbortReason::Timeout, true));
                }
            };
            match self.noted(news) {
                StreamNews::Broken(StreamBreak::CarrierGone) if !self.has_event => self.attempt = None,
                news => return news,
            }
        }
    }

    /// The news that has arrived already.
    pub(super) fn try_next(&mut self) -> Option<StreamNews> {
        let news = self.attempt.as_ref()?.reader.try_next()?;
        Some(self.noted(news))
    }

    fn noted(&mut self, news: StreamNews) -> StreamNews {
        let is_over = match &news {
            StreamNews::Event(event) => {
                self.has_event = true;
                event.kind.is_terminal()
            }
            StreamNews::Broken(_) => true,
        };
        if let Some(attempt) = &mut self.attempt {
            attempt.is_over |= is_over;
        }
        news
    }
}

impl UncarriedRequest {
    /// Asks the client that carries the requests of the task, once there is one.
    async fn find(&self) -> Result<ClientAttempt, StreamBreak> {
        let ModelCarrier { shared, root, .. } = &self.carrier;
        let mut waiting = shared.clients.carrier(root);
        let found = tokio::select! {
            biased;
            () = self.carrier.runtime_gone() => return Err(StreamBreak::CarrierGone),
            connection = &mut waiting => Some(connection),
            () = ready(()) => None,
        };
        let connection = match found {
            Some(connection) => connection,
            // Memories and names are made beside turns, and nobody waits for them.
            None if lane_of(&self.params.purpose) == CarrierLane::Aux => {
                let message = "no client carries the model requests of this task at the moment";
                let error = ModelError::new("noCarrier", message.to_owned());
                return Err(StreamBreak::Rejected(error));
            }
            None => {
                tracing::info!(task = %root, request = %self.params.model_request_id, "waits for a client that carries it");
                let (generation, request) = (self.carrier.generation, self.params.model_request_id.clone());
                self.tell(TaskInput::CarrierWanted { generation, request: request.clone() }).await;
                let connection = tokio::select! {
                    () = self.carrier.runtime_gone() => return Err(StreamBreak::CarrierGone),
                    connection = &mut waiting => connection,
                };
                self.tell(TaskInput::CarrierFound { generation, request }).await;
                connection
            }
        };
        let key = StreamKey {
            connection,
            thread: self.params.thread_id.clone(),
            request: self.params.model_request_id.clone(),
        };
        // Before the request is sent: its events find their stream.
        let reader = shared.streams.open(key.clone());
        let asked = shared.clients.ask_model(connection, (*self.params).clone());
        Ok(ClientAttempt {
            clients: shared.clients.clone(),
            key,
            reader,
            answer: Some(Box::pin(within(self.trace.clone(), asked))),
            deadline: Instant::now() + FIRST_EVENT_WITHIN,
            reason: ModelCancelReason::Superseded,
            is_over: false,
        })
    }

    async fn tell(&self, input: TaskInput) {
        // The task may have ended; then nobody is left to hear of it.
        let _ = self.carrier.mailbox.send(TaskCommand::Input(input)).await;
    }
}

async fn answered(answer: &mut Option<BoxFuture<'static, CarrierAnswer>>) -> CarrierAnswer {
    match answer {
        Some(answer) => answer.await,
        None => pending().await,
    }
}

fn refusal(problem: &str) -> ModelError {
    let message = format!("the client that carries this task's model requests refused one: {problem}");
    ModelError::new("carrierRefused", message)
}

impl Drop for ClientAttempt {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let params = ModelCancelParams {
            thread_id: self.key.thread.clone(),
            model_request_id: self.key.request.clone(),
            reason: self.reason.clone(),
        };
        let canceled = self.clients.cancel_model(self.key.connection, params);
        if let Ok(background) = tokio::runtime::Handle::try_current() {
            background.spawn(canceled);
        }
    }
}
