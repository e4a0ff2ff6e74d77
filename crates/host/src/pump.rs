//! Reads what a runtime sends, in order: records are committed before they are acknowledged, and whatever the runtime said
//! after them is passed on after that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use protocol::{
    ModelCancelParams, ModelRequestParams, ServerNotification, Thread, ThreadId, ThreadStartedNotification,
};
use rpc::{FrameLimits, FrameReader, Id, Incoming, IncomingNotification, IncomingRequest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;
use store::TaskLease;
use tokio::io::AsyncRead;
use tokio::sync::{Mutex, mpsc};
use traces::TraceContext;

use crate::append::{AppendRefusal, AppendRequest, TaskThreads, append};
use crate::carrier::ModelCarrier;
use crate::counters::count;
use crate::error::TaskError;
use crate::link::RuntimeLink;
use crate::messages::{LinkQuestion, TaskCommand};
use crate::seen_limits::{SeenLimits, USAGE};
use crate::shared::HostShared;
use host_limits::{AppendLimiter, MAX_OPEN_OPERATIONS};
use task::questions::{QuestionHead, is_question};
use task::{Generation, RecordFact, TaskInput};

/// The longest line a runtime may send.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Notifications that the host makes itself, or that mean nothing to its clients.
const NOT_RELAYED: &[&str] = &[
    "thread/started",
    "thread/closed",
    "thread/archived",
    "thread/unarchived",
    "thread/deleted",
    "thread/resynced",
    "thread/name/updated",
    "task/updated",
    "operation/updated",
    "placement/progress",
    "placement/status/changed",
    "account/updated",
    "account/login/completed",
    "configWarning",
];

/// Everything that reading one runtime needs.
pub(crate) struct RuntimePump {
    pub(crate) shared: Arc<HostShared>,
    pub(crate) link: RuntimeLink,
    pub(crate) lease: TaskLease,
    pub(crate) generation: Generation,
    pub(crate) threads: TaskThreads,
    pub(crate) limiter: AppendLimiter,
    /// The last record of each thread that this runtime has appended to.
    pub(crate) ordinals: BTreeMap<ThreadId, u64>,
    pub(crate) carrier: ModelCarrier,
    pub(crate) limits_seen: Arc<SeenLimits>,
    pub(crate) mailbox: mpsc::Sender<TaskCommand>,
    /// Held while a message is passed on, so that whoever joins the thread misses nothing and hears nothing twice.
    pub(crate) gate: Arc<Mutex<()>>,
    /// The host itself suspends the turn: its questions stay open for clients.
    pub(crate) is_suspending: Arc<AtomicBool>,
}

const NOT_OF_TASK: &str = "threadId is not one of this task";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NotificationHead {
    #[serde(default)]
    thread_id: Option<ThreadId>,
    #[serde(default)]
    request_id: Option<i64>,
}

#[derive(Deserialize)]
struct StatusHead {
    status: StatusType,
}

#[derive(Deserialize)]
struct StatusType {
    r#type: String,
}

impl RuntimePump {
    /// Until the runtime's output ends.
    pub(crate) async fn run(mut self, output: impl AsyncRead + Unpin) {
        let mut reader = FrameReader::new(output, FrameLimits { max_frame_bytes: MAX_LINE_BYTES });
        while let Some(frame) = reader.next().await {
            let parsed = match frame {
                Ok(frame) => rpc::parse(frame),
                Err(error) => match error.into_bad_message() {
                    Ok(bad) => Err(bad),
                    Err(error) => {
                        tracing::warn!(%error, "a runtime cannot be read");
                        break;
                    }
                },
            };
            match parsed {
                Ok(message) => self.take(message).await,
                Err(bad) => {
                    tracing::warn!(task = %self.lease.task, "a runtime sent what is no message: {bad}");
                }
            }
        }
        self.link.abandon();
        self.carrier.end();
        let gone = TaskCommand::Input(TaskInput::RuntimeGone(self.generation));
        // The task may be gone as well.
        let _ = self.mailbox.send(gone).await;
    }

    async fn take(&mut self, message: Incoming) {
        match message {
            Incoming::Response(response) => {
                if let Some(waiter) = self.link.waiting.resolve(&response.id) {
                    let _held = self.gate.lock().await;
                    waiter.give(Ok(response.result));
                }
            }
            Incoming::Error(error) => {
                if let Some(waiter) = error.id.and_then(|id| self.link.waiting.resolve(&id)) {
                    let _held = self.gate.lock().await;
                    waiter.give(Err(Some(error.error)));
                }
            }
            Incoming::Notification(notification) => self.notification(notification).await,
            Incoming::Request(request) => self.request(request).await,
        }
    }

    async fn notification(&mut self, notification: IncomingNotification) {
        let IncomingNotification { method, params } = notification;
        // Later code reads and changes the params as an object, so a runtime may send nothing else.
        let Some(params) = params.filter(|params| params.get().starts_with('{')) else { return };
        let Ok(head) = serde_json::from_str::<NotificationHead>(params.get()) else { return };
        if method == "serverRequest/resolved" {
            if let Some(question) = head.request_id.and_then(|id| u64::try_from(id).ok()) {
                self.post(TaskCommand::Input(TaskInput::QuestionGone { question })).await;
            }
            return;
        }
        let is_own = method == "turn/suspended" && self.is_suspending.load(Ordering::Acquire);
        if NOT_RELAYED.contains(&method.as_str()) || is_own || is_unloading(&method, &params) {
            return;
        }
        // A runtime speaks for the threads of its own task: clients tell threads apart by what a notification says.
        let thread = head.thread_id.unwrap_or_else(|| self.threads.root.clone());
        if !self.threads.known.contains(&thread) {
            tracing::debug!(task = %self.lease.task, %thread, method, "not relayed: no thread of this task");
            return;
        }
        let _held = self.gate.lock().await;
        if self.shared.early.keep(&thread, &method, &params) {
            return;
        }
        let ordinal = self.ordinals.get(&thread).copied();
        self.shared.clients.relay(&thread, &method, &params, ordinal).await;
        match method.as_str() {
            USAGE => self.limits_seen.counted(&*self.shared.clients, &thread, &params).await,
            "thread/status/changed" => self.shared.note_failed(thread, is_failed(&params)),
            "turn/completed" => self.post(TaskCommand::Input(TaskInput::TurnTold(thread))).await,
            _ => {}
        }
    }

    async fn request(&mut self, request: IncomingRequest) {
        let IncomingRequest { id, method, params, trace } = request;
        let trace = TraceContext::read(trace.as_deref());
        match method.as_str() {
            "rollout/append" => self.append(&id, params.as_deref()).await,
            "model/request" => {
                if let Some(params) = self.read::<ModelRequestParams>(&id, params.as_deref()) {
                    match self.may_ask_for(&params).await {
                        true => self.ask_model(id, params, trace).await,
                        false => self.link.refuse(&id, -32602, NOT_OF_TASK, &None),
                    }
                }
            }
            "model/cancel" => {
                if let Some(params) = self.read::<ModelCancelParams>(&id, params.as_deref()) {
                    self.carrier.cancel(&id, params);
                }
            }
            method if is_question(method) => self.question(id, method, params, trace).await,
            method => {
                let message = format!("this host does not do {method}");
                self.link.refuse(&id, -32601, &message, &None);
            }
        }
    }

    /// For a thread of the task, or for an agent that keeps no record: a thread that is nobody else's either.
    async fn may_ask_for(&self, params: &ModelRequestParams) -> bool {
        let thread = &params.thread_id;
        self.threads.known.contains(thread)
            || (params.agent_path.len() > 1 && matches!(self.shared.store.task(thread).await, Ok(None)))
    }

    async fn ask_model(&mut self, id: Id, params: ModelRequestParams, trace: Option<TraceContext>) {
        let (generation, request) = (self.generation, params.model_request_id.clone());
        self.post(TaskCommand::Input(TaskInput::ModelAsked { generation, request: request.clone() })).await;
        let mailbox = self.mailbox.clone();
        self.carrier.request(id, params, trace, async move {
            let _ = mailbox.send(TaskCommand::Input(TaskInput::ModelDone { generation, request })).await;
        });
    }

    fn read<T: DeserializeOwned>(&self, id: &Id, params: Option<&RawValue>) -> Option<T> {
        match serde_json::from_str(params.map_or("{}", RawValue::get)) {
            Ok(params) => Some(params),
            Err(error) => {
                self.link.refuse(id, -32602, &format!("params: {error}"), &None);
                None
            }
        }
    }

    async fn append(&mut self, id: &Id, params: Option<&RawValue>) {
        let Some(request) = self.read::<AppendRequest>(id, params) else { return };
        self.limiter.pace().await;
        let held = self.gate.clone().lock_owned().await;
        let (began, thread) = (Instant::now(), request.thread_id.clone());
        match append(&self.shared, &self.lease, &mut self.threads, request).await {
            Ok(appended) => {
                self.shared.counters.appended(began.elapsed());
                if let Some(last) = appended.response.next_ordinal.checked_sub(1) {
                    self.ordinals.insert(thread, last);
                }
                let ended = appended.facts.iter().filter(|fact| matches!(fact, RecordFact::TurnEnded { .. }));
                ended.for_each(|_| count(&self.shared.counters.turns));
                if !self.limiter.take(&appended.facts) {
                    let message =
                        format!("a task may have {MAX_OPEN_OPERATIONS} open operations; its runtime ends");
                    tracing::error!(task = %self.lease.task, "{message}");
                    self.link.refuse(id, -32602, &message, &Some(json!({"code": "tooManyOperations"})));
                    return self.link.close();
                }
                if let Some((parent, child)) = &appended.child {
                    self.shared.clients.child_appeared(parent, child);
                    self.announce(child).await;
                }
                for fact in appended.facts {
                    self.post(TaskCommand::Input(TaskInput::Recorded(fact))).await;
                }
                self.link.respond(id, &appended.response);
            }
            Err(AppendRefusal { code, message, data }) => {
                tracing::warn!(task = %self.lease.task, "an append is refused: {message}");
                self.link.refuse(id, code, &message, &data);
            }
        }
        drop(held);
    }

    /// Its first record is in the store: from now on clients can read it.
    async fn announce(&self, child: &ThreadId) {
        match self.shown(child).await {
            Ok(thread) => {
                let told = ServerNotification::ThreadStarted(ThreadStartedNotification { thread });
                self.shared.clients.notify(child, told).await;
            }
            Err(error) => tracing::warn!(%error, thread = %child, "an agent is not announced"),
        }
    }

    async fn shown(&self, child: &ThreadId) -> Result<Thread, TaskError> {
        let row = self.shared.store.task(child).await?;
        self.shared.thread_of(&row.ok_or_else(|| TaskError::NotLoaded(child.clone()))?).await
    }

    async fn question(
        &mut self,
        id: Id,
        method: &str,
        params: Option<Box<RawValue>>,
        trace: Option<TraceContext>,
    ) {
        let Some(head) = self.read::<QuestionHead>(&id, params.as_deref()) else { return };
        let (Some(params), Id::Integer(number)) = (params, &id) else { return };
        if !self.threads.known.contains(&head.thread_id) {
            return self.link.refuse(&id, -32602, NOT_OF_TASK, &None);
        }
        let mut span = self.shared.options.tracer.start("operation", trace);
        span.word("rpc.method", method);
        if let Some(operation) = &head.operation_id {
            span.word("oarlock.operation.id", operation.as_str());
        }
        let question = LinkQuestion {
            number: u64::try_from(*number).unwrap_or(0),
            id,
            link: self.link.clone(),
            method: method.to_owned(),
            thread: head.thread_id,
            operation: head.operation_id,
            digest: head.arguments_digest,
            params,
            was_refused: false,
            span,
        };
        self.post(TaskCommand::Asked(Box::new(question))).await;
    }

    async fn post(&self, command: TaskCommand) {
        // The task ends with its runtime; then nobody is left to hear of it.
        let _ = self.mailbox.send(command).await;
    }
}

/// The last turn of the thread failed.
fn is_failed(params: &RawValue) -> bool {
    serde_json::from_str::<StatusHead>(params.get()).is_ok_and(|head| head.status.r#type == "systemError")
}

/// That a runtime lets go of a thread is no news: the host says whether a thread has a runtime.
fn is_unloading(method: &str, params: &RawValue) -> bool {
    method == "thread/status/changed"
        && serde_json::from_str::<StatusHead>(params.get())
            .is_ok_and(|head| head.status.r#type == "notLoaded")
}
