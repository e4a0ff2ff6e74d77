//! Searching files: once, or as sessions, which belong to their connection.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{
    FuzzyFileSearch, FuzzyFileSearchParams, FuzzyFileSearchResponse, FuzzyFileSearchSessionStart,
    FuzzyFileSearchSessionStartParams, FuzzyFileSearchSessionStartResponse, FuzzyFileSearchSessionStopParams,
    FuzzyFileSearchSessionStopResponse, FuzzyFileSearchSessionUpdateParams,
    FuzzyFileSearchSessionUpdateResponse,
};
use runtime::{RuntimeError, SearchError, SearchSession, SearchUpdates};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::app::App;
use crate::hub::{ConnectionId, Hub, Requester};
use crate::reply::MethodReply;

/// Sessions that one connection may have open.
const MAX_SESSIONS: usize = 16;

/// The searches of every connection that has any.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSearches {
    by_connection: Mutex<HashMap<ConnectionId, OpenSearches>>,
}

#[derive(Debug, Default)]
struct OpenSearches {
    sessions: HashMap<String, OpenSession>,
    /// Searches that run, by their number. Dropping a sender cancels its search.
    running: HashMap<u64, RunningSearch>,
    next_number: u64,
}

#[derive(Debug)]
struct RunningSearch {
    token: Option<String>,
    _cancel: oneshot::Sender<()>,
}

#[derive(Debug)]
struct OpenSession {
    session: SearchSession,
    telling: JoinHandle<()>,
}

impl OpenSession {
    /// Once this has returned, nothing more is told.
    async fn end(self) {
        drop(self.session);
        self.telling.abort();
        // An error says that it was aborted.
        let _ = self.telling.await;
    }
}

impl ConnectionSearches {
    /// Cancels the search that has the same token. The receiver ends when this one is cancelled.
    fn begin(&self, caller: &Requester, token: Option<String>) -> Option<(u64, oneshot::Receiver<()>)> {
        let mut connections = self.by_connection.lock();
        // Looked at with the lock held: a connection closes its outbox before it calls `close`.
        if caller.connection.outbox.is_closed() {
            return None;
        }
        let searches = connections.entry(caller.id()).or_default();
        if token.is_some() {
            searches.running.retain(|_, other| other.token != token);
        }
        let number = searches.next_number;
        searches.next_number += 1;
        let (cancel, cancelled) = oneshot::channel();
        searches.running.insert(number, RunningSearch { token, _cancel: cancel });
        Some((number, cancelled))
    }

    fn end(&self, connection: ConnectionId, number: u64) {
        if let Some(searches) = self.by_connection.lock().get_mut(&connection) {
            searches.running.remove(&number);
        }
    }

    fn check_room(&self, connection: ConnectionId, id: &str) -> Result<(), SearchError> {
        let connections = self.by_connection.lock();
        let Some(searches) = connections.get(&connection) else { return Ok(()) };
        let is_full = searches.sessions.len() >= MAX_SESSIONS && !searches.sessions.contains_key(id);
        if is_full { Err(SearchError::TooManySessions(MAX_SESSIONS)) } else { Ok(()) }
    }

    /// Gives the former session of that id, or this one if the connection has ended.
    fn open(&self, caller: &Requester, id: String, opened: OpenSession) -> Option<OpenSession> {
        let mut connections = self.by_connection.lock();
        if caller.connection.outbox.is_closed() {
            return Some(opened);
        }
        connections.entry(caller.id()).or_default().sessions.insert(id, opened)
    }

    fn set_query(&self, connection: ConnectionId, id: &str, query: String) -> Result<(), SearchError> {
        let connections = self.by_connection.lock();
        let session = connections.get(&connection).and_then(|searches| searches.sessions.get(id));
        let session = session.ok_or_else(|| SearchError::UnknownSession(id.to_owned()))?;
        session.session.set_query(query);
        Ok(())
    }

    async fn stop(&self, connection: ConnectionId, id: &str) {
        let stopped = {
            let mut connections = self.by_connection.lock();
            connections.get_mut(&connection).and_then(|searches| searches.sessions.remove(id))
        };
        if let Some(stopped) = stopped {
            stopped.end().await;
        }
    }

    /// The connection is gone: ends its sessions and cancels its searches.
    pub(crate) async fn close(&self, connection: ConnectionId) {
        let ended = self.by_connection.lock().remove(&connection).unwrap_or_default();
        for session in ended.sessions.into_values() {
            session.end().await;
        }
    }
}

/// Answers when the folders were searched. Other requests do not wait for that. A cancelled search finds nothing.
pub(crate) async fn search(
    app: Arc<App>,
    caller: Requester,
    params: FuzzyFileSearchParams,
    reply: MethodReply<FuzzyFileSearch>,
) {
    let FuzzyFileSearchParams { query, roots, cancellation_token, .. } = params;
    let search = match app.runtime.search_files(query, roots) {
        Ok(search) => search,
        Err(error) => return reply.send(Err(error.into())),
    };
    let Some((number, cancelled)) = app.searches.begin(&caller, cancellation_token) else { return };
    tokio::spawn(async move {
        let files = tokio::select! {
            files = search => files,
            _ = cancelled => Vec::new(),
        };
        app.searches.end(caller.id(), number);
        reply.send(Ok(FuzzyFileSearchResponse { files }));
    });
}

pub(crate) async fn session_start(
    app: Arc<App>,
    caller: Requester,
    params: FuzzyFileSearchSessionStartParams,
    reply: MethodReply<FuzzyFileSearchSessionStart>,
) {
    let FuzzyFileSearchSessionStartParams { session_id, roots, .. } = params;
    let started = app.searches.check_room(caller.id(), &session_id).map_err(RuntimeError::from);
    let started = started.and_then(|()| app.runtime.start_file_search(session_id.clone(), roots));
    let (session, updates) = match started {
        Ok(started) => started,
        Err(error) => return reply.send(Err(error.into())),
    };
    let hub = app.hub.clone();
    let (begin, begins) = oneshot::channel::<()>();
    let telling = tokio::spawn(async move {
        // Nothing is told of a session before its start is answered.
        if begins.await.is_ok() {
            tell(&hub, updates).await;
        }
    });
    if let Some(former) = app.searches.open(&caller, session_id, OpenSession { session, telling }) {
        former.end().await;
    }
    reply.send(Ok(FuzzyFileSearchSessionStartResponse {}));
    // Fails if the session has ended already.
    let _ = begin.send(());
}

async fn tell(hub: &Hub, mut updates: SearchUpdates) {
    while let Some(notification) = updates.next().await {
        hub.broadcast(notification).await;
    }
}

pub(crate) async fn session_update(
    app: Arc<App>,
    caller: Requester,
    params: FuzzyFileSearchSessionUpdateParams,
) -> Result<FuzzyFileSearchSessionUpdateResponse, RuntimeError> {
    app.searches.set_query(caller.id(), &params.session_id, params.query)?;
    Ok(FuzzyFileSearchSessionUpdateResponse {})
}

pub(crate) async fn session_stop(
    app: Arc<App>,
    caller: Requester,
    params: FuzzyFileSearchSessionStopParams,
) -> Result<FuzzyFileSearchSessionStopResponse, RuntimeError> {
    app.searches.stop(caller.id(), &params.session_id).await;
    Ok(FuzzyFileSearchSessionStopResponse {})
}
