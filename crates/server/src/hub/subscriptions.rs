//! Which connections listen to which threads.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use host::ThreadStanding;
use protocol::{ServerNotification, ThreadId, ThreadResyncedNotification};

use super::Hub;
use super::connection::{ClientConnection, ConnectionId};
use super::questions::AskError;

/// The outcome of an unsubscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// There was none.
    NotSubscribed,
    /// It is gone; so many others still listen.
    Left { others: usize },
}

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_thread: HashMap<ThreadId, BTreeSet<ConnectionId>>,
}

impl Subscriptions {
    pub(super) fn of(&self, thread: &ThreadId) -> impl Iterator<Item = &ConnectionId> {
        self.by_thread.get(thread).into_iter().flatten()
    }

    /// The threads that somebody listens to.
    pub(super) fn threads(&self) -> impl Iterator<Item = &ThreadId> {
        self.by_thread.keys()
    }

    pub(super) fn contains(&self, thread: &ThreadId, connection: ConnectionId) -> bool {
        self.by_thread.get(thread).is_some_and(|listening| listening.contains(&connection))
    }

    pub(super) fn add(&mut self, thread: &ThreadId, connection: ConnectionId) {
        self.by_thread.entry(thread.clone()).or_default().insert(connection);
    }

    fn remove(&mut self, thread: &ThreadId, connection: ConnectionId) -> Leave {
        let Some(listening) = self.by_thread.get_mut(thread) else { return Leave::NotSubscribed };
        let was_there = listening.remove(&connection);
        let others = listening.len();
        if others == 0 {
            self.by_thread.remove(thread);
        }
        if was_there { Leave::Left { others } } else { Leave::NotSubscribed }
    }

    /// The threads that nobody listens to any more.
    pub(super) fn remove_connection(&mut self, connection: ConnectionId) -> Vec<ThreadId> {
        let mut left = Vec::new();
        self.by_thread.retain(|thread, listening| {
            if listening.remove(&connection) && listening.is_empty() {
                left.push(thread.clone());
            }
            !listening.is_empty()
        });
        left
    }

    fn remove_thread(&mut self, thread: &ThreadId) {
        self.by_thread.remove(thread);
    }
}

impl Hub {
    /// Subscribes a connection and sends it the thread's open questions, oldest first. Called from where the thread's
    /// events come from, one after the other with them, nothing is missed and nothing comes twice. False when the
    /// connection is gone.
    pub async fn join(&self, thread: &ThreadId, connection: ConnectionId) -> bool {
        let (connection, open) = {
            let mut state = self.state();
            let Some(found) = state.connections.get(&connection).cloned() else { return false };
            state.subscriptions.add(thread, connection);
            state.departed.remove(thread);
            let open = self.questions_of(thread, &found);
            (found, open)
        };
        for message in open {
            connection.deliver(message).await;
        }
        true
    }

    /// Subscribes a connection to a thread of another replica, which sends its questions itself.
    pub(crate) fn subscribe_quietly(&self, thread: &ThreadId, connection: ConnectionId) {
        let mut state = self.state();
        if state.connections.contains_key(&connection) {
            state.subscriptions.add(thread, connection);
            state.departed.remove(thread);
        }
    }

    /// Sends a connection that has just joined every item that has begun and not ended, with what it holds so far, and the
    /// plan. Called as [`Self::join`] is, and right after it.
    pub async fn send_open_items(&self, thread: &ThreadId, connection: ConnectionId) {
        for notification in self.live.of(thread) {
            self.notify_these(&[connection], thread, notification).await;
        }
    }

    /// Tells a connection how a thread stands that another host had until now, with what this one has heard of it. Called as
    /// [`Self::join`] is.
    pub(crate) async fn resync(&self, connection: ConnectionId, standing: ThreadStanding) {
        let ThreadStanding { thread, ordinal, mut open_items } = standing;
        let mut plan = None;
        for told in self.live.of(&thread) {
            match told {
                ServerNotification::ItemStarted(told) => {
                    open_items.retain(|open| open.item.id() != told.item.id());
                    open_items.push(told);
                }
                told => plan = Some(told),
            }
        }
        let knows =
            |connection: &Arc<ClientConnection>| connection.is_experimental() && connection.knows_hosts();
        let mut all: Vec<_> = match self.state().connections.get(&connection).is_some_and(knows) {
            true => {
                let told = ThreadResyncedNotification { thread_id: thread.clone(), ordinal, open_items };
                vec![ServerNotification::ThreadResynced(told)]
            }
            false => open_items.into_iter().map(ServerNotification::ItemStarted).collect(),
        };
        all.extend(plan);
        for notification in all {
            self.notify_these(&[connection], &thread, notification).await;
        }
    }

    /// Another host has the thread: what this one heard of it is old.
    pub(crate) fn forget_open_items(&self, thread: &ThreadId) {
        self.live.forget(thread);
    }

    /// Subscribes every connection that is initialized, as to a thread that the model started.
    pub fn join_all(&self, thread: &ThreadId) {
        let mut state = self.state();
        let all: Vec<ConnectionId> = state
            .connections
            .values()
            .filter(|connection| connection.profile().is_some())
            .map(|connection| connection.id)
            .collect();
        if !all.is_empty() {
            state.departed.remove(thread);
        }
        for connection in all {
            state.subscriptions.add(thread, connection);
        }
    }

    /// Ends one connection's subscription.
    pub fn leave(&self, thread: &ThreadId, connection: ConnectionId) -> Leave {
        self.state().subscriptions.remove(thread, connection)
    }

    pub fn subscribers(&self, thread: &ThreadId) -> Vec<ConnectionId> {
        self.state().subscriptions.of(thread).copied().collect()
    }

    /// For a thread that is unloaded: its subscriptions end, and its questions without a word.
    pub fn forget(&self, thread: &ThreadId) {
        self.live.forget(thread);
        let dropped = {
            let mut state = self.state();
            state.subscriptions.remove_thread(thread);
            state.withdrawn.remove(thread);
            state.departed.remove(thread);
            self.questions.remove_where(|question| question.is_about(thread))
        };
        for (_, question) in dropped {
            question.end(Err(AskError::Gone));
        }
    }

    /// Tells the given connections only, as far as they are still there.
    pub async fn notify_these(
        &self,
        connections: &[ConnectionId],
        thread: &ThreadId,
        notification: ServerNotification,
    ) {
        let receivers: Vec<_> = {
            let state = self.state();
            connections
                .iter()
                .filter_map(|id| state.connections.get(id))
                .filter(|connection| connection.wants(notification.method()))
                .cloned()
                .collect()
        };
        self.deliver_to(&receivers, Some(thread), notification).await;
    }
}
