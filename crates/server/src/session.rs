//! One connection from its first message to its end: reading, understanding, handing over. What is written, the hub
//! and the handlers put into the connection's outbox.

use std::sync::Arc;
use std::time::Duration;

use protocol::{
    Initialize, RequestMethod as _, ReviewStart, TaskResume, ThreadCompactStart, ThreadGoalSet,
    ThreadRealtimeStart, ThreadShellCommand, TurnStart,
};
use rpc::{BadMessage, Closed, Incoming, IncomingNotification, IncomingRequest};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;
use traces::{TraceContext, within};

use crate::application::ServerApplication;
use crate::handshake;
use crate::hub::{ClientConnection, Requester};
use crate::reply::ReplyTo;
use crate::router::{RoutedCall, request_row};
use crate::server::ServerState;
use crate::wire_error::WireError;

/// Notifications of a client that were read and not carried out.
const WAITING_NOTIFICATIONS: usize = 1024;
/// Limit on bytes of unwritten answers before `initialize` is done; above it no further message is read.
const FIRST_ANSWER_BYTES: usize = 64 * 1024;

/// The methods that begin a turn, or go on with one. A server that stops refuses them.
const STARTS_TURNS: &[&str] = &[
    TurnStart::METHOD,
    ReviewStart::METHOD,
    ThreadCompactStart::METHOD,
    ThreadShellCommand::METHOD,
    ThreadGoalSet::METHOD,
    ThreadRealtimeStart::METHOD,
    TaskResume::METHOD,
];

pub(crate) struct ConnectionSession<A> {
    shared: Arc<ServerState<A>>,
    connection: Arc<ClientConnection>,
    /// Bytes of messages that are read and not done.
    bytes: Arc<Semaphore>,
    notifications: Arc<Semaphore>,
    tasks: JoinSet<()>,
}

impl<A: ServerApplication> ConnectionSession<A> {
    pub(crate) fn new(shared: Arc<ServerState<A>>, connection: Arc<ClientConnection>) -> Self {
        let bytes = Arc::new(Semaphore::new(shared.options.max_request_bytes.clamp(1, u32::MAX as usize)));
        let notifications = Arc::new(Semaphore::new(WAITING_NOTIFICATIONS));
        Self { shared, connection, bytes, notifications, tasks: JoinSet::new() }
    }

    /// The client has said who it is.
    pub(crate) fn is_initialized(&self) -> bool {
        self.connection.profile().is_some()
    }

    /// Takes one message, whatever it is. Waits while the connection has as much under way as it may; `Err` when the
    /// connection takes nothing more.
    pub(crate) async fn take(&mut self, frame: &[u8]) -> Result<(), Closed> {
        self.reap();
        if !self.is_initialized() {
            // Answers to somebody who has not said who it is, and perhaps reads nothing.
            self.connection.outbox.wait_for_answers_below(FIRST_ANSWER_BYTES).await?;
        }
        let id = self.connection.id;
        match rpc::parse(frame) {
            Ok(Incoming::Request(request)) => self.request(request, frame.len()).await?,
            Ok(Incoming::Notification(notification)) => self.hear(notification, frame.len()).await,
            Ok(Incoming::Response(response)) => {
                self.shared.hub.answer(id, &response.id, Ok(response.result));
            }
            // An error is never answered: two peers would go on for ever.
            Ok(Incoming::Error(error)) => match error.id {
                Some(asked) => self.shared.hub.answer(id, &asked, Err(error.error)),
                None => {
                    let said = rpc::shorten(&error.error.message, 200);
                    tracing::warn!(connection = %id, "the client reports an error: {said}");
                }
            },
            Err(bad) => self.refuse(&bad).await?,
        }
        Ok(())
    }

    /// Answers what was no message; the connection lives on.
    pub(crate) async fn refuse(&self, bad: &BadMessage) -> Result<(), Closed> {
        tracing::warn!(connection = %self.connection.id, kind = ?bad.kind, "a message was refused: {bad}");
        self.connection.outbox.answer(bad.to_line()).await
    }

    /// Two requests under the same id are two requests, and both are answered.
    async fn request(&mut self, request: IncomingRequest, length: usize) -> Result<(), Closed> {
        let id = request.id.clone();
        let unanswered = move || WireError::unanswered().to_line(&id);
        let slot = self.connection.outbox.reserve(unanswered).await?;
        let to = ReplyTo { slot, id: request.id.clone(), is_experimental: self.connection.is_experimental() };
        if request.method == Initialize::METHOD {
            self.initialize(&request, to).await;
            return Ok(());
        }
        match self.understand(&request) {
            Ok(call) => {
                let trace = TraceContext::read(request.trace.as_deref());
                self.start(call, to, length, trace).await;
            }
            Err(error) => to.refuse(&error),
        }
        Ok(())
    }

    /// A name that does not exist is told so to anybody; everything else needs `initialize` first.
    fn understand(&self, request: &IncomingRequest) -> Result<RoutedCall<A>, WireError> {
        let row = request_row(&request.method).ok_or_else(|| WireError::unknown_method(&request.method))?;
        let profile = self.connection.profile().ok_or_else(WireError::not_initialized)?;
        let identity = &self.connection.identity;
        let params = request.params.as_deref().map(|params| params.get());
        self.shared.app.permit((identity.role, identity.is_local), row.name, params)?;
        if STARTS_TURNS.contains(&row.name) && self.shared.hub.is_stopping() {
            return Err(WireError::stopping());
        }
        // Of one that is relayed, the host that the client is connected to has seen to that.
        let is_experimental = profile.experimental || identity.is_relayed;
        self.shared.router.call(row, request.params.as_deref(), is_experimental)
    }

    /// Done before the next message is read: what it says decides about all that follow.
    async fn initialize(&self, request: &IncomingRequest, to: ReplyTo) {
        let is_known = self.connection.profile().is_some();
        let read = handshake::read(request.params.as_deref(), is_known).and_then(|params| {
            Ok((self.shared.app.negotiate(&params, self.connection.identity.role)?, params))
        });
        let (agreed, params) = match read {
            Ok(read) => read,
            Err(error) => return to.refuse(&error),
        };
        let ServerState { greeting, options, .. } = &*self.shared;
        handshake::welcome(&self.connection, greeting, options, params, agreed, to).await;
        if let Some(profile) = self.connection.profile() {
            let (connection, identity) = (self.connection.id, &self.connection.identity);
            let client = rpc::shorten(&profile.user_agent, 100);
            let by = identity.name.as_deref().unwrap_or_default();
            let (role, is_local) = (identity.role.word(), identity.is_local);
            tracing::info!(%connection, client = ?client, by, role, is_local, "a client connected");
        }
    }

    async fn start(&mut self, call: RoutedCall<A>, to: ReplyTo, length: usize, trace: Option<TraceContext>) {
        let Ok(permit) = self.shared.requests.clone().try_acquire_owned() else {
            return to.refuse(&WireError::overloaded());
        };
        let bytes = self.charge(length).await;
        // Requests of one family that name no thread keep the order in which the connection sent them.
        let key = call.order_key.unwrap_or_else(|| format!("{} of {}", call.family, self.connection.id));
        let mut place = self.shared.lanes.enter(&key);
        let app = self.shared.app.clone();
        let caller = Requester { connection: self.connection.clone() };
        self.tasks.spawn(within(trace, async move {
            place.reached().await;
            (call.run)(app, caller, to).await;
            drop((place, bytes, permit));
        }));
    }

    async fn hear(&mut self, notification: IncomingNotification, length: usize) {
        let Some(profile) = self.connection.profile() else { return };
        let IncomingNotification { method, params } = notification;
        let hearing = match self.shared.router.hearing(&method, params.as_deref(), profile.experimental) {
            Some(Ok(hearing)) => hearing,
            Some(Err(error)) => {
                let connection = self.connection.id;
                return tracing::warn!(%connection, method, "a notification was refused: {}", error.message);
            }
            None => return,
        };
        let Ok(permit) = self.notifications.clone().acquire_owned().await else { return };
        let bytes = self.charge(length).await;
        let key = hearing.order_key.unwrap_or_else(|| format!("notifications of {}", self.connection.id));
        let mut place = self.shared.lanes.enter(&key);
        let app = self.shared.app.clone();
        let caller = Requester { connection: self.connection.clone() };
        self.tasks.spawn(async move {
            place.reached().await;
            (hearing.run)(app, caller).await;
            drop((place, bytes, permit));
        });
    }

    /// Waits until what is under way leaves room for so many bytes more.
    async fn charge(&self, length: usize) -> Option<OwnedSemaphorePermit> {
        let length = length.min(self.shared.options.max_request_bytes).max(1);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        // Nobody closes it.
        self.bytes.clone().acquire_many_owned(length).await.ok()
    }

    /// A panic, in a program that is built to unwind, was answered by the reply that went down with it. It is logged here
    /// and harms nobody else.
    fn reap(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::error!(connection = %self.connection.id, "a handler failed: {error}");
            }
        }
    }

    /// The connection ends: it is told nothing more, and what it asked for goes on. `write` is what still writes the
    /// last answers, for so long at most.
    pub(crate) async fn end(mut self, write: impl Future<Output = ()>, grace: Duration) {
        let id = self.connection.id;
        self.shared.hub.disconnect(id);
        self.connection.outbox.close();
        let ServerState { options, app, .. } = &*self.shared;
        if timeout(options.grace_after_signal, app.disconnected(id)).await.is_err() {
            tracing::error!(connection = %id, "what ran for the connection did not stop in time");
        }
        if timeout(grace, write).await.is_err() {
            tracing::warn!(connection = %id, "ended with answers that were not written");
        }
        self.connection.kick();
        self.reap();
        if self.is_initialized() {
            tracing::info!(connection = %id, "a client left");
        }
        self.tasks.detach_all();
    }
}
