//! Carries the model requests of runtimes to the host's provider, or to the client that carries those of the task: one at a
//! time per thread, within the credit the runtime gives, and never paid twice for the same prompt of the same segment.

mod client;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;

use model::{EventStream, FailureClass, Metadata, ModelFailure, PreparedRequest, Purpose, StreamEvent};
use model_http::ResponsesWriter;
use parking_lot::Mutex;
use protocol::{
    CodexErrorInfo, ModelCancelDisposition, ModelCancelParams, ModelCancelReason, ModelCancelResponse,
    ModelError, ModelRequestId, ModelRequestParams, ModelRequestPurpose, ModelRequestRejectedParams,
    ModelRequestResponse, ModelStreamAbortedParams, ModelStreamEventResponse, RateLimitSnapshot, Raw,
    StreamAbortReason, StreamCredit, TaskBudget, ThreadId, TokenUsageBreakdown,
};
use rpc::Id;
use serde::Serialize;
use store::{StoredStream, UsageRow};
use support::kill_point;
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio::time::{Duration, Instant, timeout};
use traces::{Span, TraceContext};

use self::client::ClientSource;
use crate::append::MAX_CHILDREN;
use crate::link::{LinkAnswer, RuntimeLink};
use crate::messages::TaskCommand;
use crate::options::CarriedProvider;
use crate::seen_limits::SeenLimits;
use crate::settings::TaskSettings;
use crate::shared::HostShared;
use crate::streams::CarrierLane;
use host_limits::RateWindow;
use task::{EventKind, Generation, StreamAbort, StreamBreak, StreamNews};

/// Events of a stream that the runtime has not taken, in bytes. More are not read from the provider.
const MAX_BUFFERED_BYTES: usize = 8 * 1024 * 1024;
/// Events of a batch, in bytes.
const BATCH_BYTES: usize = 32 * 1024;
/// Requests of one runtime that are under way: a turn and something beside it for each thread that a task may have.
const MOST_OPEN: usize = 2 * (MAX_CHILDREN + 1);
/// How long an answer that is being paid for is still read when its runtime is gone.
const FINISH_WITHIN: Duration = Duration::from_secs(120);
/// The code of an overloaded peer, which may be sent the same again.
const OVERLOADED: i64 = -32001;
const OVERLOAD_PAUSE: Duration = Duration::from_millis(50);

/// The requests of one runtime that are under way.
#[derive(Debug, Clone)]
pub(crate) struct ModelCarrier {
    shared: Arc<HostShared>,
    link: RuntimeLink,
    root: ThreadId,
    limits_seen: Arc<SeenLimits>,
    rate: Arc<Mutex<Option<RateWindow>>>,
    open: Arc<Mutex<BTreeMap<ModelRequestId, OpenStream>>>,
    /// The task, and the runtime by its number there.
    mailbox: mpsc::Sender<TaskCommand>,
    generation: Generation,
    is_gone: Arc<watch::Sender<bool>>,
}

/// Why a request is not wanted any more, once it is not.
type Cancellation = Option<ModelCancelReason>;

#[derive(Debug)]
struct OpenStream {
    thread: ThreadId,
    lane: CarrierLane,
    cancel: watch::Sender<Cancellation>,
}

fn lane_of(purpose: &ModelRequestPurpose) -> CarrierLane {
    match purpose {
        ModelRequestPurpose::Memory | ModelRequestPurpose::Title => CarrierLane::Aux,
        ModelRequestPurpose::Turn
        | ModelRequestPurpose::Compaction
        | ModelRequestPurpose::Review
        | ModelRequestPurpose::Other(_) => CarrierLane::Turn,
    }
}

/// A batch as it is sent, with the events as text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventBatch<'a> {
    thread_id: &'a ThreadId,
    model_request_id: &'a ModelRequestId,
    seq: u64,
    events: &'a [Raw],
}

impl ModelCarrier {
    pub(crate) fn new(
        shared: Arc<HostShared>,
        link: RuntimeLink,
        root: ThreadId,
        limits_seen: Arc<SeenLimits>,
        (mailbox, generation): (mpsc::Sender<TaskCommand>, Generation),
    ) -> Self {
        let rate = shared.options.limits.requests_per_minute.map(RateWindow::per_minute);
        Self {
            shared,
            link,
            root,
            limits_seen,
            rate: Arc::new(Mutex::new(rate)),
            open: Arc::default(),
            mailbox,
            generation,
            is_gone: Arc::default(),
        }
    }

    /// The runtime ended: what no client was asked yet is not asked any more.
    pub(crate) fn end(&self) {
        self.is_gone.send_replace(true);
    }

    async fn runtime_gone(&self) {
        // The sender lives as long as this.
        let _ = self.is_gone.subscribe().wait_for(|is_gone| *is_gone).await;
    }

    fn provider(&self) -> &CarriedProvider {
        &self.shared.options.provider
    }

    /// Why the task may not send this request.
    async fn check(
        &self,
        params: &ModelRequestParams,
        budget: Option<&TaskBudget>,
    ) -> Result<(), ModelError> {
        let limits = &self.shared.options.limits;
        limits.check_request(&model_of(params), params.body.get().len())?;
        let pause = self.rate.lock().as_mut().and_then(|rate| rate.take(Instant::now()));
        if let Some(pause) = pause {
            let mut error = ModelError::new("rateLimited", "the task sends requests too fast".to_owned());
            error.codex_error_info = Some(CodexErrorInfo::UsageLimitExceeded);
            error.retry_after_ms = Some(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
            return Err(error);
        }
        match limits.check_budgets(&self.shared.store, &self.root, budget, self.shared.now_ms()).await {
            Ok(checked) => checked,
            Err(error) => Err(ModelError::new("storeFailed", format!("the usage cannot be read: {error}"))),
        }
    }

    /// Answers at once and carries the request in the background. `done` follows when the runtime has all it gets.
    pub(crate) fn request(
        &self,
        id: Id,
        params: ModelRequestParams,
        trace: Option<TraceContext>,
        done: impl Future<Output = ()> + Send + 'static,
    ) {
        let lane = lane_of(&params.purpose);
        let (cancel, canceled) = watch::channel(None);
        {
            let mut open = self.open.lock();
            if let Some(error) = no_room(&open, &params, lane) {
                tracing::error!(thread = %params.thread_id, "{}", error.message);
                self.link.respond(&id, &ModelRequestResponse::Rejected { error });
                tokio::spawn(done);
                return;
            }
            let stream = OpenStream { thread: params.thread_id.clone(), lane, cancel };
            open.insert(params.model_request_id.clone(), stream);
        }
        let carrier = self.clone();
        tokio::spawn(async move {
            let request = params.model_request_id.clone();
            let rest = carrier.carry(&id, &params, trace, canceled).await;
            carrier.open.lock().remove(&request);
            done.await;
            if let Some(rest) = rest {
                carrier.finish_reading(&params, rest).await;
            }
        });
    }

    pub(crate) fn cancel(&self, id: &Id, params: ModelCancelParams) {
        let open = self.open.lock();
        let disposition = match open.get(&params.model_request_id) {
            Some(stream) => {
                stream.cancel.send_replace(Some(params.reason));
                ModelCancelDisposition::Canceled
            }
            None => ModelCancelDisposition::AlreadyTerminal,
        };
        drop(open);
        self.link.respond(id, &ModelCancelResponse { disposition });
    }

    /// Gives back what is left to read where the runtime went away in the middle.
    async fn carry(
        &self,
        id: &Id,
        params: &ModelRequestParams,
        trace: Option<TraceContext>,
        mut canceled: watch::Receiver<Cancellation>,
    ) -> Option<CarriedStream> {
        let opened = tokio::select! {
            biased;
            _ = is_canceled(&mut canceled) => None,
            opened = self.opened(params, trace) => Some(opened),
        };
        let (reading, replayed) = match opened {
            Some(Ok(opened)) => opened,
            Some(Err(error)) => {
                self.link.respond(id, &ModelRequestResponse::Rejected { error });
                return None;
            }
            None => {
                let error = ModelError::new("canceled", "canceled before it began".to_owned());
                self.link.respond(id, &ModelRequestResponse::Rejected { error });
                self.abort(params, 0, StreamAbortReason::Canceled, None);
                return None;
            }
        };
        let (provider, model) = (reading.provider.clone(), model_of(params));
        self.link.respond(id, &ModelRequestResponse::Accepted { provider, model, replayed });
        self.forward(params, reading, &mut canceled).await
    }

    /// The answer of the store, of the client that carries the task's requests, or of the provider.
    async fn opened(
        &self,
        params: &ModelRequestParams,
        trace: Option<TraceContext>,
    ) -> Result<(CarriedStream, bool), ModelError> {
        let row = self.shared.store.task(&self.root).await;
        let row = row.map_err(|error| ModelError::new("storeFailed", error.to_string()))?;
        let settings = row.map(|row| TaskSettings::read(&row.settings)).unwrap_or_default();
        let carried = settings.carried();
        let provider = carried.as_ref().map_or_else(|| self.provider().id.clone(), |own| own.id.clone());
        let mut span = self.span_of(params, trace, &provider);
        let lane = match carried {
            Some(_) => {
                Some(self.shared.streams.enter(params.thread_id.clone(), lane_of(&params.purpose)).await)
            }
            None => None,
        };
        let stored = self.shared.store.stream(params.segment_id.as_str(), &params.request_digest).await;
        let stored = stored.ok().flatten().filter(|stream| stream.thread == params.thread_id);
        if let Some(stream) = stored {
            span.word("oarlock.outcome", "replayed");
            return Ok((CarriedStream { provider, ..CarriedStream::replayed(&stream.events) }, true));
        }
        let opened = match (self.check(params, settings.budget().as_ref()).await, carried) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(_)) => {
                let source = ClientSource::new(self.clone(), params, span.context());
                Ok(CarriedStream::of_client(source))
            }
            (Ok(()), None) => {
                let request = self.prepared(params, settings.sandbox_word());
                let transport = self.provider().transports.transport(settings.client());
                request
                    .map(|request| CarriedStream::live(transport.open(request), params))
                    .map_err(|problem| ModelError::new("badRequest", problem))
            }
        };
        match opened {
            Ok(reading) => Ok((CarriedStream { provider, lane, span: Some(span), ..reading }, false)),
            Err(error) => {
                span.fail(&error.code);
                Err(error)
            }
        }
    }

    /// From the runtime's request to the end of the provider's answer.
    fn span_of(&self, params: &ModelRequestParams, trace: Option<TraceContext>, provider: &str) -> Span {
        let mut span = self.shared.options.tracer.start("model.request", trace);
        if span.is_recorded() {
            span.word("gen_ai.provider.name", provider);
            span.word("gen_ai.request.model", &model_of(params));
            span.word("oarlock.thread.id", params.thread_id.as_str());
            span.word("oarlock.purpose", &word(&params.purpose));
            span.number("oarlock.attempt", params.attempt.into());
        }
        span
    }

    fn prepared(
        &self,
        params: &ModelRequestParams,
        sandbox: &'static str,
    ) -> Result<PreparedRequest, String> {
        let body = serde_json::from_str(params.body.get()).map_err(|error| format!("body: {error}"))?;
        let metadata = Metadata {
            purpose: match params.purpose {
                ModelRequestPurpose::Compaction => Purpose::Compaction,
                ModelRequestPurpose::Review => Purpose::Review,
                _ => Purpose::Turn,
            },
            sandbox,
            attempt: params.attempt,
            agent_path: params.agent_path.clone().into(),
            tool_set_digest: params.tool_set_digest.as_str().into(),
            ..Metadata::first(params.thread_id.clone(), params.turn_id.clone())
        };
        Ok(PreparedRequest { body: Arc::new(body), metadata })
    }

    async fn forward(
        &self,
        params: &ModelRequestParams,
        mut reading: CarriedStream,
        canceled: &mut watch::Receiver<Cancellation>,
    ) -> Option<CarriedStream> {
        let mut sending = DeliveryState { seq: 0, credit: params.window.clone(), has_first: false };
        loop {
            if reading.has_room() {
                let wants_more = reading.buffer.is_empty();
                tokio::select! {
                    biased;
                    reason = is_canceled(canceled) => {
                        reading.give_up(reason);
                        self.abort(params, sending.seq, StreamAbortReason::Canceled, None);
                        return None;
                    }
                    () = reading.read(), if wants_more => {}
                    () = std::future::ready(()), if !wants_more => reading.read_ready().await,
                }
            }
            if let Some(limits) = reading.limits.take() {
                let of_turn = (&params.thread_id, &params.turn_id);
                match params.purpose {
                    ModelRequestPurpose::Review => self.limits_seen.learned(&params.thread_id, limits),
                    _ => self.limits_seen.opened(&*self.shared.clients, of_turn, limits).await,
                }
            }
            if reading.is_over() && reading.stores {
                self.keep(params, &mut reading).await;
            }
            if !reading.buffer.is_empty() {
                match self.send_batch(params, &mut reading, &mut sending).await {
                    BatchSent::Taken => continue,
                    BatchSent::Refused => {
                        reading.give_up(ModelCancelReason::ProtocolError);
                        return None;
                    }
                    BatchSent::Gone => return Some(reading),
                }
            }
            if let Some(end) = reading.end.take() {
                match end {
                    CarriedEnd::Failed(failure) => {
                        self.failed(params, &sending, model_error(&failure), failure.spent);
                    }
                    CarriedEnd::Broken(broken) => self.broken(params, &sending, broken),
                    CarriedEnd::Completed(_) | CarriedEnd::Passed => {}
                }
                return None;
            }
        }
    }

    async fn send_batch(
        &self,
        params: &ModelRequestParams,
        reading: &mut CarriedStream,
        sending: &mut DeliveryState,
    ) -> BatchSent {
        let batch = reading.batch(&sending.credit);
        loop {
            let message = EventBatch {
                thread_id: &params.thread_id,
                model_request_id: &params.model_request_id,
                seq: sending.seq,
                events: &batch,
            };
            let answer = self.link.request("model/streamEvent", &message).await;
            match taken(answer) {
                BatchAnswer::Yes(acknowledged) => {
                    sending.seq = acknowledged.next_seq;
                    sending.credit = acknowledged.credit;
                    sending.has_first = true;
                    return BatchSent::Taken;
                }
                BatchAnswer::Later => tokio::time::sleep(OVERLOAD_PAUSE).await,
                BatchAnswer::No(problem) => {
                    tracing::debug!(request = %params.model_request_id, problem, "a stream is over for its runtime");
                    return BatchSent::Refused;
                }
                BatchAnswer::Gone => return BatchSent::Gone,
            }
        }
    }

    /// Reads a paid answer to its end for the next runtime that asks the same.
    async fn finish_reading(&self, params: &ModelRequestParams, mut reading: CarriedStream) {
        if !reading.stores {
            return;
        }
        let whole = async {
            while !reading.is_over() {
                reading.buffer.clear();
                reading.buffered = 0;
                reading.read().await;
            }
        };
        if timeout(FINISH_WITHIN, whole).await.is_ok() {
            self.keep(params, &mut reading).await;
        }
    }

    /// Stores a stream that completed, without its deltas, before the runtime gets its last event.
    async fn keep(&self, params: &ModelRequestParams, reading: &mut CarriedStream) {
        reading.stores = false;
        let outcome = match &reading.end {
            Some(CarriedEnd::Completed(_)) => "completed",
            _ => "failed",
        };
        let usage = match &reading.end {
            Some(
                CarriedEnd::Completed(usage)
                | CarriedEnd::Broken(StreamBreak::Aborted(StreamAbort { usage, .. })),
            ) => usage.clone(),
            Some(CarriedEnd::Failed(failure)) => failure.spent.clone(),
            _ => None,
        };
        if let Some(CarriedEnd::Completed(_)) = &reading.end {
            let stream = StoredStream {
                thread: params.thread_id.clone(),
                segment_id: params.segment_id.as_str().to_owned(),
                request_digest: params.request_digest.clone(),
                events: reading.kept.join("\n").into_bytes(),
            };
            kill_point!("host.stream.before");
            if let Err(error) = self.shared.store.put_stream(stream).await {
                tracing::warn!(%error, "a finished model stream is not stored; asked again, it is paid again");
            }
            kill_point!("host.stream.after");
        }
        let of_answer = (reading.provider.clone(), reading.started);
        self.count(params, usage, of_answer, outcome).await;
    }

    async fn count(
        &self,
        params: &ModelRequestParams,
        usage: Option<TokenUsageBreakdown>,
        (provider, started): (String, Instant),
        outcome: &str,
    ) {
        let tokens = |pick: fn(&TokenUsageBreakdown) -> i64| usage.as_ref().map(pick).unwrap_or_default();
        let (input, cached, output) = (
            tokens(|usage| usage.input_tokens),
            tokens(|usage| usage.cached_input_tokens),
            tokens(|usage| usage.output_tokens),
        );
        let model = model_of(params);
        let row = UsageRow {
            request_id: format!("{}:{}", params.thread_id, params.model_request_id),
            thread: params.thread_id.clone(),
            root: self.root.clone(),
            at_ms: self.shared.now_ms(),
            agent_path: params.agent_path.clone(),
            purpose: word(&params.purpose),
            provider,
            cost_micros: self.shared.options.limits.cost_micros(&model, (input, cached, output)),
            model,
            input_tokens: input,
            cached_tokens: cached,
            output_tokens: output,
            duration_ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
            outcome: outcome.to_owned(),
        };
        self.shared.counters.requested(&row);
        if let Err(error) = self.shared.store.add_usage(row).await {
            tracing::warn!(%error, "the usage of a model request is not stored");
        }
    }

    fn failed(
        &self,
        params: &ModelRequestParams,
        sending: &DeliveryState,
        mut error: ModelError,
        spent: Option<TokenUsageBreakdown>,
    ) {
        // As often as the provider's settings say, and no more.
        error.replay_safe &= params.attempt <= self.provider().stream_max_retries;
        error.retry_after_ms = error.retry_after_ms.filter(|_| error.replay_safe);
        if sending.has_first {
            let lost = Some((error, spent));
            self.abort(params, sending.seq, StreamAbortReason::Disconnected, lost);
            return;
        }
        let rejected = ModelRequestRejectedParams {
            thread_id: params.thread_id.clone(),
            model_request_id: params.model_request_id.clone(),
            error,
        };
        drop(self.link.request("model/requestRejected", &rejected));
    }

    /// The client that carried the request gave no terminal event. The runtime asks again where that may help.
    fn broken(&self, params: &ModelRequestParams, sending: &DeliveryState, broken: StreamBreak) {
        let is_early = params.attempt <= self.provider().stream_max_retries;
        match broken {
            StreamBreak::Rejected(error) => self.failed(params, sending, error, None),
            StreamBreak::CarrierGone => {
                let abort = StreamAbort::plain(StreamAbortReason::Disconnected, is_early);
                self.abort_with(params, sending.seq, abort);
            }
            StreamBreak::Aborted(mut abort) => {
                abort.replay_safe &= is_early;
                if let Some(error) = &mut abort.error {
                    error.replay_safe &= is_early;
                }
                self.abort_with(params, sending.seq, abort);
            }
        }
    }

    fn abort(
        &self,
        params: &ModelRequestParams,
        seq: u64,
        reason: StreamAbortReason,
        failure: Option<(ModelError, Option<TokenUsageBreakdown>)>,
    ) {
        let (error, usage) = failure.map_or((None, None), |(error, spent)| (Some(error), spent));
        let replay_safe = error.as_ref().is_some_and(|error| error.replay_safe);
        self.abort_with(params, seq, StreamAbort { reason, error, usage, replay_safe });
    }

    fn abort_with(&self, params: &ModelRequestParams, seq: u64, abort: StreamAbort) {
        let StreamAbort { reason, error, usage, replay_safe } = abort;
        let aborted = ModelStreamAbortedParams {
            thread_id: params.thread_id.clone(),
            model_request_id: params.model_request_id.clone(),
            seq,
            reason,
            error,
            usage,
            replay_safe,
        };
        drop(self.link.request("model/streamAborted", &aborted));
    }
}

/// Why a request cannot be carried beside those that are under way.
fn no_room(
    open: &BTreeMap<ModelRequestId, OpenStream>,
    params: &ModelRequestParams,
    lane: CarrierLane,
) -> Option<ModelError> {
    let id = &params.model_request_id;
    let busy = open.iter().find(|(_, other)| other.thread == params.thread_id && other.lane == lane);
    if let Some((other, _)) = busy {
        return Some(ModelError::new(
            "singleFlightViolation",
            format!("{id} came while {other} is under way"),
        ));
    }
    if open.contains_key(id) {
        return Some(ModelError::new(
            "singleFlightViolation",
            format!("{id} is under way for another thread"),
        ));
    }
    (open.len() >= MOST_OPEN).then(|| {
        ModelError::new("tooManyRequests", format!("a task may have {MOST_OPEN} model requests under way"))
    })
}

async fn is_canceled(canceled: &mut watch::Receiver<Cancellation>) -> ModelCancelReason {
    // The sender lives as long as the stream is open.
    let reason = canceled.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
    reason.unwrap_or(ModelCancelReason::Superseded)
}

fn model_of(params: &ModelRequestParams) -> String {
    #[derive(serde::Deserialize)]
    struct NamedModel {
        model: String,
    }
    serde_json::from_str::<NamedModel>(params.body.get()).map(|body| body.model).unwrap_or_default()
}

fn word(purpose: &ModelRequestPurpose) -> String {
    serde_json::to_value(purpose).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn model_error(failure: &ModelFailure) -> ModelError {
    let code = match failure.class {
        FailureClass::Unauthorized => "unauthorized",
        FailureClass::InvalidRequest | FailureClass::InvalidImage => "badRequest",
        FailureClass::NotConfigured => "notConfigured",
        FailureClass::Paused => ModelError::PAUSED,
        _ => "providerError",
    };
    ModelError {
        codex_error_info: Some(failure.codex_error_info()),
        http_status: failure.http_status,
        retry_after_ms: failure.retry_after_ms,
        replay_safe: failure.is_retryable(),
        ..ModelError::new(code, failure.message.clone())
    }
}

struct DeliveryState {
    seq: u64,
    credit: StreamCredit,
    /// The runtime has taken an event.
    has_first: bool,
}

enum BatchSent {
    Taken,
    /// The runtime wants no more of it.
    Refused,
    Gone,
}

enum BatchAnswer {
    Yes(ModelStreamEventResponse),
    Later,
    No(String),
    Gone,
}

fn taken(answer: LinkAnswer) -> BatchAnswer {
    match answer {
        Ok(result) => match serde_json::from_str(result.get()) {
            Ok(acknowledged) => BatchAnswer::Yes(acknowledged),
            Err(error) => BatchAnswer::No(error.to_string()),
        },
        Err(Some(error)) if error.code == OVERLOADED => BatchAnswer::Later,
        Err(Some(error)) => BatchAnswer::No(error.message),
        Err(None) => BatchAnswer::Gone,
    }
}

#[derive(Debug)]
enum CarriedEnd {
    Completed(Option<TokenUsageBreakdown>),
    Failed(ModelFailure),
    /// The runtime reads in the last event that there is no answer.
    Passed,
    /// Of a client: the runtime gets no terminal event.
    Broken(StreamBreak),
}

/// A stream on its way from the provider, or from the store.
struct CarriedStream {
    /// The name of whoever answers.
    provider: String,
    events: Option<EventStream>,
    client: Option<ClientSource>,
    /// Held until the stream is over: a client has one request of a lane at a time.
    #[allow(dead_code, reason = "held, not read")]
    lane: Option<OwnedMutexGuard<()>>,
    writer: ResponsesWriter,
    /// Events that the runtime has not taken.
    buffer: VecDeque<Raw>,
    buffered: usize,
    /// Events to store: all but deltas.
    kept: Vec<String>,
    stores: bool,
    /// An item has begun and is not over.
    has_item: bool,
    /// The provider's limits, as told at the beginning of the stream.
    limits: Option<Box<RateLimitSnapshot>>,
    end: Option<CarriedEnd>,
    started: Instant,
    /// Until the provider's answer ends.
    span: Option<Span>,
}

impl CarriedStream {
    fn live(events: EventStream, params: &ModelRequestParams) -> Self {
        let response = format!("resp_{}", params.model_request_id);
        let writer = ResponsesWriter::new(&model_of(params), &response);
        Self { events: Some(events), writer, stores: true, ..Self::empty() }
    }

    fn of_client(source: ClientSource) -> Self {
        Self { client: Some(source), stores: true, ..Self::empty() }
    }

    fn replayed(stored: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stored);
        let buffer = text.lines().filter_map(|line| Raw::parse(line.to_owned()).ok()).collect();
        Self { buffer, end: Some(CarriedEnd::Completed(None)), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            provider: String::new(),
            events: None,
            client: None,
            lane: None,
            writer: ResponsesWriter::new("", ""),
            buffer: VecDeque::new(),
            buffered: 0,
            kept: Vec::new(),
            stores: false,
            has_item: false,
            limits: None,
            end: None,
            started: Instant::now(),
            span: None,
        }
    }

    /// A client that has not sent all of it is told why nobody wants the rest.
    fn give_up(&mut self, reason: ModelCancelReason) {
        if let Some(client) = &mut self.client {
            client.give_up(reason);
        }
    }

    fn has_room(&self) -> bool {
        !self.is_over() && self.buffered < MAX_BUFFERED_BYTES
    }

    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Waits for an event, and takes those that came with it: a fast answer goes on in batches, not one by one.
    async fn read(&mut self) {
        if let Some(client) = &mut self.client {
            let news = client.next().await;
            self.take_news(news);
        } else if let Some(events) = &mut self.events {
            let event = poll_fn(|context| events.as_mut().poll_next(context)).await;
            self.take(event);
        }
        self.read_ready().await;
    }

    /// Takes the events that are there already.
    async fn read_ready(&mut self) {
        while self.has_room() && self.buffered < BATCH_BYTES {
            if let Some(client) = &mut self.client {
                let Some(news) = client.try_next() else { return };
                self.take_news(news);
                continue;
            }
            let Some(events) = &mut self.events else { return };
            let next = poll_fn(|context| match events.as_mut().poll_next(context) {
                std::task::Poll::Ready(event) => std::task::Poll::Ready(Some(event)),
                std::task::Poll::Pending => std::task::Poll::Ready(None),
            });
            match next.await {
                Some(event) => self.take(event),
                None => return,
            }
        }
    }

    fn take(&mut self, event: Option<Result<StreamEvent, ModelFailure>>) {
        let mut out = Vec::new();
        match event {
            Some(Ok(StreamEvent::Failed(failure)) | Err(failure)) => {
                self.limits.clone_from(&failure.rate_limits);
                self.end = Some(CarriedEnd::Failed(failure));
            }
            None => {
                let failure = ModelFailure::stream("the provider's stream ended early");
                self.end = Some(CarriedEnd::Failed(failure));
            }
            Some(Ok(event)) => {
                self.writer.push(&event, &mut out);
                match &event {
                    StreamEvent::Opened(head) => self.limits.clone_from(&head.rate_limits),
                    StreamEvent::RateLimits(limits) => self.limits = Some(limits.clone()),
                    StreamEvent::ItemAdded(_) => self.has_item = true,
                    // An item that came whole goes on whole: nothing of it begins before it is there.
                    StreamEvent::ItemDone(_) if !std::mem::take(&mut self.has_item) => {
                        out.retain(|event| event["type"] == "response.output_item.done");
                    }
                    _ => {}
                }
                if let StreamEvent::Completed { usage, .. } = event {
                    self.end = Some(CarriedEnd::Completed(usage));
                }
            }
        }
        self.end_span();
        for event in out {
            let is_delta = event["type"].as_str().is_some_and(|kind| kind.ends_with(".delta"));
            // Text of a value is always JSON.
            if let Ok(event) = Raw::parse(event.to_string()) {
                self.push(event, is_delta);
            }
        }
    }

    /// An event of a client goes on as it is.
    fn take_news(&mut self, news: StreamNews) {
        match news {
            StreamNews::Broken(broken) => self.end = Some(CarriedEnd::Broken(broken)),
            StreamNews::Event(event) => {
                self.push(event.raw, event.kind == EventKind::Delta);
                self.end = match event.kind {
                    EventKind::Completed(usage) => Some(CarriedEnd::Completed(usage)),
                    EventKind::Failed => Some(CarriedEnd::Passed),
                    EventKind::Delta | EventKind::Other => None,
                };
            }
        }
        self.end_span();
    }

    fn end_span(&mut self) {
        let Some(end) = &self.end else { return };
        let Some(mut span) = self.span.take() else { return };
        match end {
            CarriedEnd::Completed(Some(usage)) => {
                span.number("gen_ai.usage.input_tokens", usage.input_tokens);
                span.number("gen_ai.usage.output_tokens", usage.output_tokens);
            }
            CarriedEnd::Completed(None) => {}
            CarriedEnd::Failed(failure) => span.fail(&format!("{:?}", failure.class)),
            CarriedEnd::Passed | CarriedEnd::Broken(_) => span.fail("Stream"),
        }
    }

    fn push(&mut self, event: Raw, is_delta: bool) {
        if !is_delta {
            self.kept.push(event.get().to_owned());
        }
        self.buffered += event.get().len();
        self.buffer.push_back(event);
    }

    /// As many events as the credit allows, and at least one: a runtime always takes the next.
    fn batch(&mut self, credit: &StreamCredit) -> Vec<Raw> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let most_bytes = BATCH_BYTES.min(usize::try_from(credit.bytes).unwrap_or(usize::MAX));
        while let Some(event) = self.buffer.front() {
            let length = event.get().len();
            let is_full = bytes + length > most_bytes || batch.len() as u64 >= u64::from(credit.events);
            if is_full && !batch.is_empty() {
                break;
            }
            bytes += length;
            batch.extend(self.buffer.pop_front());
        }
        self.buffered = self.buffered.saturating_sub(bytes);
        batch
    }
}

#[cfg(test)]
mod tests;
