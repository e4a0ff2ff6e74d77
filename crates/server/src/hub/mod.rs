//! Who is connected, who listens to which thread, and which questions are open. Everything that is sent to a client
//! beside the answers to its own requests goes through here.

mod approvals;
mod connection;
mod delivery;
mod departed;
mod host;
mod outgoing;
mod questions;
mod relay;
mod relayed;
mod starters;
mod subscriptions;
mod turn_log;

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::host::UnfinishedItems;
use protocol::{
    ChatgptAuthTokensRefresh, ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshResponse,
    DynamicToolCall, DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, ThreadId,
};
use rpc::{OrderGroup, Outbox, PendingRequests};
use runtime::{Audience, BoxFuture, Reply};
use tokio::sync::{Notify, watch};

use crate::metrics::MetricsText;

pub(crate) use connection::{ClientConnection, ClientProfile, ConnectionIdentity, WhenFull};
pub use connection::{ConnectionId, Requester};
use delivery::{Delivery, delivery};
use departed::Departed;
pub(crate) use host::HubHost;
use outgoing::Outgoing;
pub(crate) use questions::ClientAnswer;
pub use questions::{AskError, AskTarget};
use questions::{PendingQuestion, TurnEvent};
pub(crate) use relayed::RelayedQuestion;
pub use subscriptions::Leave;
use subscriptions::Subscriptions;

/// The connections of the process. Nothing is awaited and nothing encoded while its lock is held.
#[derive(Debug)]
pub struct Hub {
    state: Mutex<HubState>,
    /// Only touched with the lock of `state` held: who is asked and who joins must agree.
    questions: PendingRequests<PendingQuestion>,
    hasher: RandomState,
    /// Threads were added to those without a listener.
    departures: Notify,
    /// How many connections are open.
    open: watch::Sender<usize>,
    started: Instant,
    /// The server was asked to stop.
    stopping: watch::Sender<bool>,
    /// Changed by whoever notifies about a thread, one after the other with who joins it.
    live: UnfinishedItems,
}

#[derive(Debug, Default)]
struct HubState {
    connections: BTreeMap<ConnectionId, Arc<ClientConnection>>,
    subscriptions: Subscriptions,
    next_connection: u64,
    /// Questions that were taken back, by thread: subscribers have yet to hear of it.
    withdrawn: BTreeMap<ThreadId, Vec<i64>>,
    /// Threads whose last listener has gone away without a word.
    departed: Departed,
    /// Threads that are being put away: how they stand until they are gone is nobody's news.
    leaving: BTreeSet<ThreadId>,
    /// The connections that start threads to which nobody can subscribe yet.
    starters: BTreeMap<ThreadId, ConnectionId>,
}

/// While it lives, nobody is told how the thread stands.
#[derive(Debug)]
pub(crate) struct Hush<'a> {
    hub: &'a Hub,
    thread: &'a ThreadId,
}

impl Drop for Hush<'_> {
    fn drop(&mut self) {
        self.hub.state().leaving.remove(self.thread);
    }
}

impl Hub {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            questions: PendingRequests::new(),
            hasher: RandomState::new(),
            departures: Notify::new(),
            open: watch::Sender::new(0),
            started: Instant::now(),
            stopping: watch::Sender::new(false),
            live: UnfinishedItems::default(),
        })
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// From here on no turn begins.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Returns when the server was asked to stop.
    pub async fn stopping(&self) {
        let mut stopping = self.stopping.subscribe();
        // An error cannot be: the sender lives as long as the hub.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    }

    fn state(&self) -> MutexGuard<'_, HubState> {
        // Nothing panics while it holds the lock, and if it did, the tables would still be sound.
        self.state.lock()
    }

    pub(crate) fn connect(
        &self,
        outbox: Outbox,
        when_full: WhenFull,
        identity: ConnectionIdentity,
    ) -> Arc<ClientConnection> {
        let mut state = self.state();
        let id = ConnectionId(state.next_connection);
        state.next_connection += 1;
        let connection = Arc::new(ClientConnection::new(id, outbox, when_full, identity));
        state.connections.insert(id, connection.clone());
        self.open.send_replace(state.connections.len());
        connection
    }

    /// Its subscriptions go with it. Threads stay loaded and their questions stay open, but for those that nobody
    /// else may answer.
    pub(crate) fn disconnect(&self, id: ConnectionId) {
        let mut state = self.state();
        state.connections.remove(&id);
        self.open.send_replace(state.connections.len());
        let left = state.subscriptions.remove_connection(id);
        if !left.is_empty() {
            state.departed.add(left);
            self.departures.notify_one();
        }
        let orphans = self.questions.remove_where(|question| question.is_for(id));
        drop(state);
        for (_, question) in orphans {
            question.end(Err(AskError::Gone));
        }
    }

    /// Ends the connections of these names.
    pub(crate) fn disconnect_named(&self, names: &[String]) {
        let is_named = |connection: &&Arc<ClientConnection>| {
            connection.identity.name.as_ref().is_some_and(|name| names.contains(name))
        };
        let found: Vec<_> = self.state().connections.values().filter(is_named).cloned().collect();
        found.iter().for_each(|connection| connection.kick());
    }

    /// Returns when nobody is connected.
    pub(crate) async fn deserted(&self) {
        let mut open = self.open.subscribe();
        // An error cannot be: the sender lives as long as the hub.
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// Connections that are open, initialized or not.
    pub fn connections(&self) -> usize {
        self.state().connections.len()
    }

    /// Numbers for `/metrics`.
    pub(crate) fn metrics(&self, text: &mut MetricsText) {
        let about = "Connections that are open.";
        text.gauge("oarlock_connections", about, &[], self.connections() as f64);
        let about = "Questions to clients that nobody has answered.";
        text.gauge("oarlock_open_questions", about, &[], self.open_questions() as f64);
        let about = "Seconds since this process began to serve.";
        text.gauge("oarlock_uptime_seconds", about, &[], self.uptime().as_secs_f64());
        let about = "Whether this process was asked to stop.";
        text.gauge("oarlock_stopping", about, &[], f64::from(u8::from(self.is_stopping())));
        if let Some(bytes) = memory_bytes() {
            let about = "Resident memory of this process, without its commands and runtimes.";
            text.gauge("process_resident_memory_bytes", about, &[], bytes as f64);
        }
    }

    /// The order that matters to each other is that of one thread. Two threads of the same number would only be
    /// merged less.
    fn group(&self, thread: &ThreadId) -> OrderGroup {
        OrderGroup(self.hasher.hash_one(thread))
    }

    pub(crate) fn hush<'a>(&'a self, thread: &'a ThreadId) -> Hush<'a> {
        self.state().leaving.insert(thread.clone());
        Hush { hub: self, thread }
    }

    /// Sends a notification about a thread to everyone or to its subscribers, as its kind requires. Whoever calls this
    /// for one thread does so one after the other.
    pub async fn notify_thread(&self, thread: &ThreadId, notification: ServerNotification) {
        let event = TurnEvent::of(&notification);
        turn_log::note(thread, &notification);
        self.live.note(thread, &notification);
        self.publish(Some(thread), notification).await;
        self.settle_questions(thread, event).await;
    }

    /// Sends a notification that concerns no thread to everyone.
    pub async fn broadcast(&self, notification: ServerNotification) {
        self.publish(None, notification).await;
    }

    /// Notifies one connection, unless it opted out or is gone.
    pub async fn notify(&self, connection: ConnectionId, notification: ServerNotification) {
        let found = self.state().connections.get(&connection).cloned();
        if let Some(connection) = found {
            Requester { connection }.notify(notification).await;
        }
    }

    async fn publish(&self, thread: Option<&ThreadId>, notification: ServerNotification) {
        let receivers = self.receivers(thread, &notification);
        self.deliver_to(&receivers, thread, notification).await;
    }

    async fn deliver_to(
        &self,
        receivers: &[Arc<ClientConnection>],
        thread: Option<&ThreadId>,
        notification: ServerNotification,
    ) {
        let Some((last, others)) = receivers.split_last() else { return };
        let full = receivers.iter().any(|connection| connection.is_experimental());
        let stable = receivers.iter().any(|connection| !connection.is_experimental());
        let group = thread.map(|thread| self.group(thread));
        let outgoing = Outgoing::new(notification, group, full, stable);
        for connection in others {
            if let Some(message) = outgoing.copy(connection.is_experimental()) {
                connection.deliver(message).await;
            }
        }
        if let Some(message) = outgoing.take(last.is_experimental()) {
            last.deliver(message).await;
        }
    }

    fn receivers(
        &self,
        thread: Option<&ThreadId>,
        notification: &ServerNotification,
    ) -> Vec<Arc<ClientConnection>> {
        let wants = |connection: &&Arc<ClientConnection>| connection.wants(notification.method());
        let state = self.state();
        match (delivery(notification), thread) {
            (Delivery::Everyone, Some(thread))
                if matches!(notification, ServerNotification::ThreadStatusChanged(_))
                    && state.leaving.contains(thread) =>
            {
                Vec::new()
            }
            (Delivery::Everyone, _) | (_, None) => {
                state.connections.values().filter(wants).cloned().collect()
            }
            (Delivery::Subscribers | Delivery::Caller, Some(thread)) => {
                state.subscribers(thread).filter(wants).cloned().collect()
            }
        }
    }
}

/// The resident memory of this process.
pub(crate) fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

impl HubState {
    fn subscribers(&self, thread: &ThreadId) -> impl Iterator<Item = &Arc<ClientConnection>> {
        self.subscriptions.of(thread).filter_map(|id| self.connections.get(id))
    }
}

/// A handle on the hub for the runtime, which speaks to clients through it.
#[derive(Debug, Clone)]
pub struct HubAudience(pub Arc<Hub>);

impl Audience for HubAudience {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(self.0.notify_thread(thread, notification))
    }

    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        let answer = self.0.ask::<DynamicToolCall>(AskTarget::Thread(params.thread_id.clone()), params);
        Box::pin(async move {
            answer.await.map_err(|error| match error {
                AskError::Unreadable(_) => "dynamic tool response was invalid".to_owned(),
                AskError::Refused { .. } | AskError::TurnEnded | AskError::Gone => {
                    "dynamic tool request failed".to_owned()
                }
            })
        })
    }

    fn ask(&self, question: runtime::Question) -> BoxFuture<'static, Result<Reply, String>> {
        let hub = self.0.clone();
        Box::pin(approvals::ask(hub, question))
    }

    fn refresh_tokens(
        &self,
        params: ChatgptAuthTokensRefreshParams,
    ) -> BoxFuture<'static, Result<ChatgptAuthTokensRefreshResponse, String>> {
        let answer = self.0.ask::<ChatgptAuthTokensRefresh>(AskTarget::Everyone, params);
        Box::pin(async move {
            // An answer that cannot be read may hold a token, so nothing of it is shown.
            answer.await.map_err(|error| match error {
                AskError::Unreadable(_) => "its answer cannot be read".to_owned(),
                AskError::Refused { .. } => "it refused".to_owned(),
                AskError::TurnEnded | AskError::Gone => "nobody is left to answer".to_owned(),
            })
        })
    }

    fn appeared(&self, thread: &ThreadId) {
        self.0.join_all(thread);
    }

    fn left(&self, thread: &ThreadId) {
        self.0.forget(thread);
    }
}
