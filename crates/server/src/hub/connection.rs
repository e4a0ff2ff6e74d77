//! A connection as the hub knows it: who it is, what it wants, and how to reach it.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use protocol::{ServerCapabilities, ServerNotification};
use rpc::{Outbox, OutgoingMessage, Refused};
use tokio::sync::watch;

use super::outgoing;
use crate::roles::ClientRole;
use transport::TokenHolder;

/// Connections are numbered from 0 on, and no number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub(crate) u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How to treat messages that do not fit in the outbound queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// Whoever sends waits: there is one client, and nobody else to harm.
    Wait,
    /// The slow reader is disconnected, and may come back and resume.
    Disconnect,
}

/// The client's `initialize` parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientProfile {
    pub(crate) client_name: String,
    pub(crate) client_version: String,
    pub(crate) user_agent: String,
    pub(crate) experimental: bool,
    pub(crate) opt_outs: HashSet<String>,
    pub(crate) agreed: Option<ServerCapabilities>,
}

/// Who opened a connection, as far as this server knows by itself.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionIdentity {
    /// By its token.
    pub(crate) name: Option<String>,
    pub(crate) role: ClientRole,
    /// Over standard input or a Unix socket of this user.
    pub(crate) is_local: bool,
    /// Another replica connected on its behalf, and knows the rest. Its requests are relayed no further.
    pub(crate) is_relayed: bool,
}

impl ConnectionIdentity {
    pub(crate) fn local() -> Self {
        Self { name: None, role: ClientRole::Admin, is_local: true, is_relayed: false }
    }

    /// Without a token, whoever reaches the port may do the work and not change how it is set up.
    pub(crate) fn of_network(holder: Option<TokenHolder>) -> Self {
        match holder {
            Some(TokenHolder { name, role }) => {
                Self { name: Some(name), role, is_local: false, is_relayed: false }
            }
            None => Self { name: None, role: ClientRole::Operator, is_local: false, is_relayed: false },
        }
    }
}

#[derive(Debug)]
pub(crate) struct ClientConnection {
    pub(crate) id: ConnectionId,
    pub(crate) outbox: Outbox,
    when_full: WhenFull,
    pub(crate) identity: ConnectionIdentity,
    profile: OnceLock<ClientProfile>,
    kicked: watch::Sender<bool>,
}

impl ClientConnection {
    pub(crate) fn new(
        id: ConnectionId,
        outbox: Outbox,
        when_full: WhenFull,
        identity: ConnectionIdentity,
    ) -> Self {
        let (profile, kicked) = (OnceLock::new(), watch::Sender::new(false));
        Self { id, outbox, when_full, identity, profile, kicked }
    }

    /// As decisions and the audit trail name it: by its token, else by what it says of itself.
    pub(crate) fn name(&self) -> String {
        let claimed = || self.profile().map_or("", |profile| &profile.client_name);
        self.identity.name.clone().unwrap_or_else(|| format!("client:{}", claimed()))
    }

    /// Whether it agreed on the methods of a host.
    pub(crate) fn knows_hosts(&self) -> bool {
        let agreed = self.profile().and_then(|profile| profile.agreed.as_ref());
        agreed.is_some_and(|agreed| agreed.host.is_some())
    }

    /// Whether it is asked what people decide.
    pub(crate) fn may_decide(&self) -> bool {
        self.identity.role >= ClientRole::Approver
    }

    /// Whether it may do part of the work.
    pub(crate) fn may_work(&self) -> bool {
        self.identity.role >= ClientRole::Operator
    }

    pub(crate) fn profile(&self) -> Option<&ClientProfile> {
        self.profile.get()
    }

    /// From here on the connection is initialized and hears broadcasts.
    pub(crate) fn introduce(&self, profile: ClientProfile) {
        let _ = self.profile.set(profile);
    }

    pub(crate) fn is_experimental(&self) -> bool {
        self.profile().is_some_and(|profile| profile.experimental)
    }

    pub(crate) fn wants(&self, method: &str) -> bool {
        self.profile().is_some_and(|profile| !profile.opt_outs.contains(method))
    }

    pub(crate) async fn deliver(&self, message: OutgoingMessage) {
        match self.when_full {
            // A closed connection hears nothing more; that is no failure of the sender.
            WhenFull::Wait => drop(self.outbox.send(message).await),
            WhenFull::Disconnect => {
                if self.outbox.try_send(message) == Err(Refused::Full) {
                    tracing::warn!(connection = %self.id, "disconnected: it does not read what it is sent");
                    self.kick();
                }
            }
        }
    }

    /// Encodes and delivers to this connection alone.
    pub(crate) async fn notify(&self, mut notification: ServerNotification) {
        if !self.is_experimental() {
            notification.strip_experimental();
        }
        if let Some(message) = outgoing::encode(notification, None) {
            self.deliver(message).await;
        }
    }

    /// Ends the connection at once. What waits in its queue is lost.
    pub(crate) fn kick(&self) {
        self.outbox.close();
        self.kicked.send_replace(true);
    }

    pub(crate) async fn kicked(&self) {
        // The sender lives as long as this connection, so there is always an answer.
        let _ = self.kicked.subscribe().wait_for(|kicked| *kicked).await;
    }
}

/// The sender of a request, as its handler sees it.
#[derive(Debug, Clone)]
pub struct Requester {
    pub(crate) connection: Arc<ClientConnection>,
}

impl Requester {
    pub fn id(&self) -> ConnectionId {
        self.connection.id
    }

    /// Whether the connection may use and see what is experimental.
    pub fn is_experimental(&self) -> bool {
        self.connection.is_experimental()
    }

    /// As decisions and the audit trail name it.
    pub(crate) fn name(&self) -> String {
        self.connection.name()
    }

    pub(crate) fn identity(&self) -> &ConnectionIdentity {
        &self.connection.identity
    }

    /// The name the client gave itself.
    pub fn client_name(&self) -> &str {
        self.connection.profile().map_or("", |profile| &profile.client_name)
    }

    pub fn client_version(&self) -> &str {
        self.connection.profile().map_or("", |profile| &profile.client_version)
    }

    /// As `initialize` answered it.
    pub fn user_agent(&self) -> &str {
        self.connection.profile().map_or("", |profile| &profile.user_agent)
    }

    /// The negotiated capabilities beyond the stock protocol.
    pub fn agreed(&self) -> Option<&ServerCapabilities> {
        self.connection.profile()?.agreed.as_ref()
    }

    /// Tells this connection alone, unless it opted out.
    pub async fn notify(&self, notification: ServerNotification) {
        if self.connection.wants(notification.method()) {
            self.connection.notify(notification).await;
        }
    }
}
