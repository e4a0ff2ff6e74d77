//! Notifications that a runtime made and a host passes on: as bytes, after a look at their method.

use std::sync::Arc;

use protocol::{
    Error, ErrorNotification, ExperimentalGate, NotificationMethod, SERVER_NOTIFICATIONS, ServerNotification,
    ThreadId, ThreadStatusChanged, TurnCompleted, TurnCompletedNotification,
};
use rpc::OutgoingMessage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::Hub;
use super::connection::{ClientConnection, ConnectionId};
use super::outgoing::{self, with_ordinal};
use super::questions::TurnEvent;
use super::turn_log;

impl Hub {
    /// Passes a notification about a thread on to whoever would hear it from an app-server. Only subscribers without the
    /// experimental capability cost a parse, and only where the payload may hold something experimental.
    pub(crate) async fn relay(
        &self,
        thread: &ThreadId,
        method: &str,
        params: &RawValue,
        ordinal: Option<u64>,
    ) {
        turn_log::note_relayed(thread, method, params);
        let delta = self.live.note_relayed(thread, method, params);
        let receivers = self.relay_receivers(thread, method);
        if let Some(delta) = delta.filter(|_| !receivers.is_empty()) {
            self.relay_delta(thread, &receivers, &delta, ordinal).await;
        } else if !receivers.is_empty() {
            let group = Some(self.group(thread));
            let full = receivers.iter().any(|connection| connection.is_experimental());
            let stable = receivers.iter().any(|connection| !connection.is_experimental());
            let full = full.then(|| rpc::notification(method, params).unwrap_or_default());
            let stable = stable.then(|| match stable_form(method, params) {
                Some(params) => rpc::notification(method, &params).unwrap_or_default(),
                None => rpc::notification(method, params).unwrap_or_default(),
            });
            let knows =
                |connection: &ClientConnection| connection.is_experimental() && connection.knows_hosts();
            let marked = ordinal.filter(|_| receivers.iter().any(|connection| knows(connection)));
            let marked = marked.and_then(|ordinal| with_ordinal(params, ordinal));
            let marked = marked.map(|params| rpc::notification(method, &params).unwrap_or_default());
            for connection in receivers {
                if let Some(line) = marked.as_ref().filter(|_| knows(&connection)) {
                    connection.deliver(OutgoingMessage::Plain { group, line: line.clone() }).await;
                    continue;
                }
                let form = if connection.is_experimental() { &full } else { &stable };
                let line = form.clone().unwrap_or_default();
                connection.deliver(OutgoingMessage::Plain { group, line }).await;
            }
        }
        // A turn that another runtime takes up begins again, and its questions stay: the host closes them itself.
        let event = match method {
            ThreadStatusChanged::METHOD => TurnEvent::Status,
            _ => TurnEvent::Other,
        };
        self.settle_questions(thread, event).await;
    }

    /// Pieces of a text that wait for a slow reader are merged.
    async fn relay_delta(
        &self,
        thread: &ThreadId,
        receivers: &[Arc<ClientConnection>],
        delta: &ServerNotification,
        ordinal: Option<u64>,
    ) {
        let group = self.group(thread);
        for connection in receivers {
            let knows = connection.is_experimental() && connection.knows_hosts();
            if let Ok(message) = outgoing::delta(delta.clone(), group, ordinal.filter(|_| knows)) {
                connection.deliver(message).await;
            }
        }
    }

    fn relay_receivers(&self, thread: &ThreadId, method: &str) -> Vec<Arc<ClientConnection>> {
        let is_experimental = SERVER_NOTIFICATIONS
            .iter()
            .find(|row| row.name == method)
            .is_none_or(|row| row.experimental_descriptor().is_some());
        let wants = |connection: &&Arc<ClientConnection>| {
            connection.wants(method) && (connection.is_experimental() || !is_experimental)
        };
        let state = self.state();
        if method == ThreadStatusChanged::METHOD {
            return state.connections.values().filter(wants).cloned().collect();
        }
        state.subscribers(thread).filter(wants).cloned().collect()
    }

    /// Notifies subscribers of a thread, and others that `also` picks, of something that is experimental.
    pub(crate) async fn notify_experimental(
        &self,
        thread: &ThreadId,
        also: impl Fn(&ClientConnection) -> bool,
        notification: ServerNotification,
    ) {
        let receivers: Vec<_> = {
            let state = self.state();
            let hears = |connection: &&Arc<ClientConnection>| {
                let is_subscribed = state.subscriptions.contains(thread, connection.id);
                connection.is_experimental()
                    && connection.knows_hosts()
                    && connection.wants(notification.method())
                    && (is_subscribed || also(connection))
            };
            state.connections.values().filter(hears).cloned().collect()
        };
        self.deliver_to(&receivers, Some(thread), notification).await;
    }

    /// Notifies the connections that `picks` picks of something that is experimental.
    pub(crate) async fn notify_those(
        &self,
        picks: impl Fn(&ClientConnection) -> bool,
        notification: ServerNotification,
    ) {
        let hears = |connection: &&Arc<ClientConnection>| {
            connection.is_experimental() && connection.wants(notification.method()) && picks(connection)
        };
        let receivers: Vec<_> = self.state().connections.values().filter(hears).cloned().collect();
        self.deliver_to(&receivers, None, notification).await;
    }

    pub(crate) fn has_connection(&self, picks: impl Fn(&ClientConnection) -> bool) -> bool {
        self.state().connections.values().any(|connection| picks(connection))
    }

    /// As decisions name it.
    pub(crate) fn name_of(&self, connection: ConnectionId) -> String {
        self.state().connections.get(&connection).map(|connection| connection.name()).unwrap_or_default()
    }

    pub(crate) fn is_connected(&self, connection: ConnectionId) -> bool {
        self.state().connections.contains_key(&connection)
    }

    /// Whether the connection agreed on the methods of a host.
    pub(crate) fn knows_hosts(&self, connection: ConnectionId) -> bool {
        self.state().connections.get(&connection).is_some_and(|connection| connection.knows_hosts())
    }

    /// Whether it runs the tools of threads it follows without having said so. A result is part of the work: whoever may
    /// only look on or decide gives none.
    pub(crate) fn runs_undeclared_tools(&self, connection: ConnectionId) -> bool {
        let state = self.state();
        let found = state.connections.get(&connection);
        found.is_some_and(|connection| !connection.knows_hosts() && connection.may_work())
    }

    /// Subscribers of the parent follow the child too.
    pub(crate) fn join_child(&self, parent: &ThreadId, child: &ThreadId) {
        let mut state = self.state();
        let following: Vec<_> = state.subscriptions.of(parent).copied().collect();
        for connection in following {
            state.subscriptions.add(child, connection);
        }
    }
}

/// The payload without what is experimental; nothing where it cannot hold such a thing.
fn stable_form(method: &str, params: &RawValue) -> Option<Box<RawValue>> {
    match method {
        Error::METHOD => stripped::<ErrorNotification>(params),
        TurnCompleted::METHOD => stripped::<TurnCompletedNotification>(params),
        _ => None,
    }
}

fn stripped<P: DeserializeOwned + Serialize + ExperimentalGate>(params: &RawValue) -> Option<Box<RawValue>> {
    let mut payload: P = serde_json::from_str(params.get()).ok()?;
    payload.strip_experimental();
    to_raw_value(&payload).ok()
}
