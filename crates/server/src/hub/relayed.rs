//! Questions of another replica to a client of this one: asked under ids of this hub, answered by that client alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::{SERVER_REQUESTS, ThreadId};
use rpc::{Id, OutgoingMessage};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::Hub;
use super::connection::{ClientConnection, ConnectionId};
use super::delivery::is_announced;
use super::questions::{AskTarget, ClientAnswer, PendingQuestion, resolved};

/// A question that a client of this hub was sent for another replica.
#[derive(Debug)]
pub(crate) struct RelayedQuestion {
    pub(crate) id: Id,
    pub(crate) answer: oneshot::Receiver<ClientAnswer>,
    /// The replica that asks tells when it is no longer open.
    pub(crate) is_announced: bool,
}

impl Hub {
    /// `None` when the client is gone, or when nobody knows such a question.
    pub(crate) async fn ask_relayed(
        &self,
        connection: ConnectionId,
        thread: &ThreadId,
        method: &str,
        params: &RawValue,
    ) -> Option<RelayedQuestion> {
        let method = SERVER_REQUESTS.iter().find(|row| row.name == method)?.name;
        let (sender, answer) = oneshot::channel();
        let (client, id) = {
            let state = self.state();
            let client = state.connections.get(&connection)?.clone();
            let target = AskTarget::Connection { connection, thread: Some(thread.clone()) };
            (client, self.questions.insert(PendingQuestion::of_one(target, method, connection, sender)))
        };
        // Raw JSON always can be written; a connection skips an empty line.
        let line = rpc::request(&id, method, params).unwrap_or_default();
        client.deliver(OutgoingMessage::Plain { group: Some(self.group(thread)), line }).await;
        Some(RelayedQuestion { id, answer, is_announced: is_announced(method) })
    }

    /// The question is not open any more: the client is told so, and an answer has no effect.
    pub(crate) async fn close_relayed(
        &self,
        connection: ConnectionId,
        thread: &ThreadId,
        id: &Id,
        reason: Option<&str>,
    ) {
        drop(self.questions.remove(id));
        if let Id::Integer(id) = id {
            self.notify_these(&[connection], thread, resolved(thread, *id, reason)).await;
        }
    }

    /// The threads that clients of this replica follow, with these clients.
    pub(crate) fn followed_here(&self) -> BTreeMap<ThreadId, Vec<Arc<ClientConnection>>> {
        let state = self.state();
        let mut followed = BTreeMap::new();
        for thread in state.subscriptions.threads() {
            let own = state.subscribers(thread).filter(|client| !client.identity.is_relayed);
            let own: Vec<_> = own.cloned().collect();
            if !own.is_empty() {
                followed.insert(thread.clone(), own);
            }
        }
        followed
    }

    /// Passes a message about a thread on to one client, as it came.
    pub(crate) async fn pass_to(&self, client: &ClientConnection, thread: &ThreadId, line: rpc::EncodedLine) {
        client.deliver(OutgoingMessage::Plain { group: Some(self.group(thread)), line }).await;
    }
}
