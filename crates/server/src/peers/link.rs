//! One client's link to one replica: its requests there with their answers, and what that replica sends it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use host::{HeardTurn, TaskError, TaskOwner};
use parking_lot::Mutex;
use protocol::{
    Initialize, ProvidedTool, RequestMethod, TaskDelete, ThreadArchive, ThreadDelegation, ThreadDelete,
    ThreadId, ThreadResume, ThreadUnsubscribe, TurnStart,
};
use rpc::{
    ErrorObject, FrameLimits, FrameReader, Id, Incoming, IncomingNotification, IncomingRequest, Outbox,
    OutboxLimits, OutgoingMessage, PendingRequests, drain,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::port::CHALLENGE_WITHIN;
use super::relay::{RelayedCall, relay};
use super::{HeardThreads, PEER_SCHEME, PeerCaller, PeerTable};
use crate::host_face::{ALL_TASKS, HostApp};
use crate::hub::{AskError, ClientAnswer, ClientConnection, ClientProfile, RelayedQuestion, Requester};
use crate::reply::ReplyTo;
use crate::wire_error::WireError;

/// How long another replica may take to accept a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// The longest message of another replica.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A request whose answer the other replica owes.
enum RelayedRequest {
    /// Of the client.
    Client { app: Arc<HostApp>, caller: Requester, to: ReplyTo, call: Box<RelayedCall> },
    /// Of this replica, for the client: it follows the thread there from now on.
    Follow(ThreadId),
    /// Of this replica, and nobody waits for it.
    Other(&'static str),
}

/// A request that was not sent, whole.
pub(super) struct Unsent {
    pub(super) to: ReplyTo,
    pub(super) call: Box<RelayedCall>,
}

pub(crate) struct PeerLink {
    outbox: Outbox,
    waiting: PendingRequests<RelayedRequest>,
    /// The threads that the client follows there.
    followed: Mutex<HeardThreads>,
    over: AtomicBool,
    /// The other replica is gone, whether or not its connection shows it.
    gone: Notify,
    reader: Mutex<Option<AbortHandle>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PeerMessageHead {
    #[serde(default)]
    thread_id: Option<ThreadId>,
    #[serde(default)]
    thread: Option<ThreadHead>,
    #[serde(default)]
    operation: Option<OperationHead>,
    #[serde(default)]
    request_id: Option<i64>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ThreadHead {
    id: ThreadId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationHead {
    task_id: ThreadId,
}

impl PeerMessageHead {
    /// The thread that a message is about. What is about the other machine has none.
    fn of(params: Option<&RawValue>) -> Option<(ThreadId, Self)> {
        let mut head: Self = serde_json::from_str(params?.get()).ok()?;
        let thread = head.thread_id.take();
        let thread = thread.or_else(|| head.thread.take().map(|thread| thread.id));
        let thread = thread.or_else(|| head.operation.take().map(|operation| operation.task_id));
        Some((thread?, head))
    }
}

/// The client as it would introduce itself there.
fn introduction(profile: &ClientProfile) -> serde_json::Value {
    let agreed = profile.agreed.as_ref().and_then(|agreed| agreed.host.as_ref());
    let host = agreed.map(|host| {
        json!({ "versions": [host.version], "allTasks": host.features.iter().any(|name| name == ALL_TASKS) })
    });
    let mut capabilities = json!({
        "experimentalApi": profile.experimental,
        "optOutNotificationMethods": profile.opt_outs.iter().collect::<Vec<_>>(),
    });
    if let Some(host) = host {
        capabilities["host"] = host;
    }
    let client = json!({ "name": profile.client_name, "title": null, "version": profile.client_version });
    json!({ "clientInfo": client, "capabilities": capabilities })
}

impl PeerLink {
    /// Connects and introduces the client.
    pub(super) async fn open(
        table: &Arc<PeerTable>,
        client: &Arc<ClientConnection>,
        owner: &TaskOwner,
    ) -> io::Result<Arc<Self>> {
        let profile = client.profile().ok_or(io::ErrorKind::NotConnected)?;
        let address = owner.address.strip_prefix(PEER_SCHEME).unwrap_or(&owner.address);
        let connecting = timeout(CONNECT_WITHIN, TcpStream::connect(address));
        let mut stream = connecting.await.map_err(|_| io::ErrorKind::TimedOut)??;
        stream.set_nodelay(true)?;
        let caller = PeerCaller::new(client.name(), client.identity.role, client.identity.is_local);
        let challenge = access::connect(&mut stream, &table.secret, &table.own, &owner.replica, &caller);
        timeout(CHALLENGE_WITHIN, challenge).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let (input, output) = stream.into_split();
        let (outbox, backlog) = Outbox::open(OutboxLimits::default());
        let link = Arc::new(Self {
            outbox,
            waiting: PendingRequests::new(),
            followed: Mutex::default(),
            over: AtomicBool::new(false),
            gone: Notify::new(),
            reader: Mutex::default(),
        });
        link.send(RelayedRequest::Other(Initialize::METHOD), Initialize::METHOD, &introduction(profile));
        let reader = LinkReader {
            table: table.clone(),
            link: link.clone(),
            client: client.clone(),
            questions: Arc::default(),
            answers: JoinSet::new(),
        };
        let reading = tokio::spawn(async move {
            let mut writer = JoinSet::new();
            writer.spawn(drain(backlog, output));
            reader.run(input, &mut writer).await;
        });
        *link.reader.lock() = Some(reading.abort_handle());
        Ok(link)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(super) fn follows(&self, thread: &ThreadId) -> bool {
        self.followed.lock().contains_key(thread)
    }

    /// Ends it without a word to anybody: its client is gone.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Release);
        if let Some(reader) = self.reader.lock().take() {
            reader.abort();
        }
        self.outbox.close();
    }

    /// The other replica has no lease any more: nothing it owes is waited for.
    pub(super) fn give_up(&self) {
        self.gone.notify_one();
    }

    /// The request back when it was not sent.
    fn send(&self, request: RelayedRequest, method: &str, params: &impl Serialize) -> Option<RelayedRequest> {
        let id = self.waiting.insert(request);
        let line = rpc::traced_request(&id, method, params, &traces::current()).unwrap_or_default();
        match self.outbox.try_send(OutgoingMessage::Plain { group: None, line }) {
            Ok(()) => None,
            // Whoever ended the link may have taken it already, and answers it.
            Err(_) => self.waiting.remove(&id),
        }
    }

    /// Sends a request of the client.
    pub(super) fn pass(
        &self,
        app: Arc<HostApp>,
        caller: Requester,
        to: ReplyTo,
        call: RelayedCall,
    ) -> Result<(), Unsent> {
        let (method, params) = (call.method, call.params.clone());
        let request = RelayedRequest::Client { app, caller, to, call: Box::new(call) };
        match self.send(request, method, &params) {
            Some(RelayedRequest::Client { to, call, .. }) => Err(Unsent { to, call }),
            _ => Ok(()),
        }
    }

    /// Follows a thread there for the client, which did not ask for it and has heard this much of it.
    pub(super) fn follow(
        &self,
        thread: &ThreadId,
        provides: &[ProvidedTool],
        delegation: Option<ThreadDelegation>,
        heard: HeardTurn,
    ) {
        let mut params = json!({ "threadId": thread, "excludeTurns": true, "resync": true });
        if !provides.is_empty() {
            params["provides"] = json!(provides);
        }
        if let Some(delegation) = delegation {
            params["delegation"] = json!(delegation);
        }
        self.followed.lock().insert(thread.clone(), heard);
        self.send(RelayedRequest::Follow(thread.clone()), ThreadResume::METHOD, &params);
    }

    /// Nothing that is said of the thread there is for the client any more. What it has heard.
    pub(super) fn leave(&self, thread: &ThreadId) -> Option<HeardTurn> {
        self.followed.lock().remove(thread)
    }

    pub(super) fn unsubscribe(&self, thread: &ThreadId) {
        if self.leave(thread).is_some() {
            let request = RelayedRequest::Other(ThreadUnsubscribe::METHOD);
            self.send(request, ThreadUnsubscribe::METHOD, &json!({ "threadId": thread }));
        }
    }
}

/// A question of the other replica that the client has.
struct HeldQuestion {
    /// As the client knows it.
    id: Id,
    thread: ThreadId,
    is_announced: bool,
}

/// By the other replica's ids.
type HeldQuestions = Arc<Mutex<BTreeMap<i64, HeldQuestion>>>;

/// Reads what the other replica sends, in order.
struct LinkReader {
    table: Arc<PeerTable>,
    link: Arc<PeerLink>,
    client: Arc<ClientConnection>,
    questions: HeldQuestions,
    /// Tasks that wait for answers of the client.
    answers: JoinSet<()>,
}

impl LinkReader {
    /// Until either side ends.
    async fn run(mut self, input: OwnedReadHalf, writer: &mut JoinSet<io::Result<()>>) {
        let link = self.link.clone();
        tokio::select! {
            () = self.read(input) => {}
            _ = writer.join_next() => {}
            () = link.gone.notified() => {}
        }
        self.finish().await;
    }

    async fn read(&mut self, input: OwnedReadHalf) {
        let mut reader = FrameReader::new(input, FrameLimits { max_frame_bytes: MAX_LINE_BYTES });
        while let Some(Ok(frame)) = reader.next().await {
            while self.answers.try_join_next().is_some() {}
            match rpc::parse(frame) {
                Ok(Incoming::Response(response)) => self.answered(&response.id, Ok(response.result)).await,
                Ok(Incoming::Error(error)) => {
                    if let Some(id) = error.id {
                        self.answered(&id, Err(error.error)).await;
                    }
                }
                Ok(Incoming::Notification(notification)) => self.notified(notification).await,
                Ok(Incoming::Request(request)) => self.asked(request).await,
                Err(bad) => tracing::warn!("another host sent what is no message: {bad}"),
            }
        }
    }

    async fn answered(&mut self, id: &Id, answer: Result<Box<RawValue>, ErrorObject>) {
        match self.link.waiting.resolve(id) {
            Some(RelayedRequest::Client { to, call, .. }) => {
                to.pass_on(call.method, &answer);
                if let Ok(result) = &answer {
                    self.carried_out(&call, result);
                }
            }
            Some(RelayedRequest::Follow(thread)) => self.followed(thread, answer).await,
            Some(RelayedRequest::Other(method)) => {
                if let Err(error) = answer {
                    tracing::warn!(method, "another host refused: {}", error.message);
                    self.link.give_up();
                }
            }
            None => {}
        }
    }

    /// The client follows the thread there from now on, or at whoever has it next.
    async fn followed(&self, thread: ThreadId, answer: Result<Box<RawValue>, ErrorObject>) {
        if let Err(error) = answer {
            tracing::info!(%thread, "a thread cannot be followed: {}", error.message);
            // Another client may carry its model requests by now: then it is followed without that.
            self.table.carriers.leave(&thread, self.client.id);
            let heard = self.link.leave(&thread).map(|heard| (thread, heard));
            return self.table.lose(self.client.id, heard.into_iter().collect());
        }
        // Its place is kept: the thread counts as followed meanwhile.
        let Some(mut heard) = self.link.followed.lock().get_mut(&thread).map(std::mem::take) else { return };
        self.table.catch_up(self.client.id, &thread, &mut heard).await;
        if let Some(place) = self.link.followed.lock().get_mut(&thread) {
            *place = heard;
        }
    }

    /// Keeps here what has to outlive the other replica.
    fn carried_out(&self, call: &RelayedCall, result: &RawValue) {
        match call.method {
            TurnStart::METHOD => {
                if let Some(heard) = self.link.followed.lock().get_mut(&call.thread) {
                    heard.answered(call.method, result);
                }
            }
            ThreadResume::METHOD => {
                let mut followed = self.link.followed.lock();
                followed.entry(call.thread.clone()).or_default().answered(call.method, result);
                drop(followed);
                self.table.take_lost(self.client.id, &call.thread);
                self.table.hub.subscribe_quietly(&call.thread, self.client.id);
                let ResumeHead { provides, delegation } =
                    serde_json::from_str(call.params.get()).unwrap_or_default();
                let provides = provides.unwrap_or_default();
                self.table.providers.declare(&call.thread, self.client.id, provides);
                let of_client = (&call.thread, self.client.id);
                if let Some(asked) = delegation
                    && let Ok(claim) = self.table.carriers.claim(&self.table.hub, of_client, &asked)
                {
                    claim.settle();
                }
            }
            ThreadArchive::METHOD | ThreadDelete::METHOD | TaskDelete::METHOD => {
                self.table.hub.forget(&call.thread);
            }
            _ => {}
        }
    }

    async fn notified(&mut self, notification: IncomingNotification) {
        let IncomingNotification { method, params } = notification;
        let Some((thread, head)) = PeerMessageHead::of(params.as_deref()) else { return };
        if let Some(asked) = head.request_id {
            let held = self.questions.lock().remove(&asked);
            if let Some(held) = held {
                let (client, reason) = (self.client.id, head.reason.as_deref());
                self.table.hub.close_relayed(client, &held.thread, &held.id, reason).await;
            }
            return;
        }
        if let (Some(heard), Some(params)) = (self.link.followed.lock().get_mut(&thread), &params)
            && !heard.note(&method, params)
        {
            return;
        }
        if let Ok(line) = rpc::notification(&method, &params) {
            self.table.hub.pass_to(&self.client, &thread, line).await;
        }
    }

    /// Asks the client, whose answer goes back whenever it comes.
    async fn asked(&mut self, request: IncomingRequest) {
        let IncomingRequest { id, method, params, .. } = request;
        let (Some((thread, _)), Some(params), Id::Integer(number)) =
            (PeerMessageHead::of(params.as_deref()), params, &id)
        else {
            // Not about a thread: for clients of that machine.
            return;
        };
        let hub = &self.table.hub;
        let Some(question) = hub.ask_relayed(self.client.id, &thread, &method, &params).await else { return };
        let RelayedQuestion { id: own, answer, is_announced } = question;
        let number = *number;
        self.questions.lock().insert(number, HeldQuestion { id: own, thread, is_announced });
        let (link, questions) = (self.link.clone(), self.questions.clone());
        self.answers.spawn(async move {
            let Ok(answer) = answer.await else { return };
            if !is_announced {
                questions.lock().remove(&number);
            }
            if let Some(line) = line_of(&id, answer) {
                // When it is gone, it asks again elsewhere.
                let _ = link.outbox.send(OutgoingMessage::Plain { group: None, line }).await;
            }
        });
    }

    /// The link is over: what it owed is answered, and its questions are asked by the next owner.
    async fn finish(self) {
        self.link.over.store(true, Ordering::Release);
        self.link.outbox.close();
        let followed = std::mem::take(&mut *self.link.followed.lock());
        self.table.link_ended(self.client.id, followed);
        let held = std::mem::take(&mut *self.questions.lock());
        for question in held.into_values().filter(|question| question.is_announced) {
            let HeldQuestion { id, thread, .. } = question;
            self.table.hub.close_relayed(self.client.id, &thread, &id, None).await;
        }
        for (_, request) in self.link.waiting.remove_where(|_| true) {
            if let RelayedRequest::Client { app, caller, to, call } = request {
                match call.is_repeatable() {
                    true => drop(tokio::spawn(relay(app, caller, to, *call))),
                    false => to.refuse(&WireError::from(TaskError::OwnerLost(call.thread.clone()))),
                }
            }
        }
    }
}

#[derive(Default, Deserialize)]
struct ResumeHead {
    #[serde(default)]
    provides: Option<Vec<ProvidedTool>>,
    #[serde(default)]
    delegation: Option<ThreadDelegation>,
}

/// The client's answer for the other replica; nothing when there is none.
fn line_of(id: &Id, answer: ClientAnswer) -> Option<rpc::EncodedLine> {
    match answer {
        Ok((result, _)) => rpc::response(id, &result).ok(),
        Err(AskError::Refused { error, .. }) => {
            rpc::error(Some(id), error.code, &error.message, &error.data).ok()
        }
        Err(AskError::Unreadable(_) | AskError::TurnEnded | AskError::Gone) => None,
    }
}
