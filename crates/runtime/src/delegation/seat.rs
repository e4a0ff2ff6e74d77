//! The host's seat at a thread: who sits there, on what terms, and which model requests it carries.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::RequestBody;
use protocol::{
    DelegatedStream, DelegationMode, ModelCancelReason, ModelCapabilities, ModelRequestId, StreamCredit,
    ThreadDelegation, ThreadId,
};
use tokio::sync::watch;

use super::error::DelegationError;
use super::failure;
use super::host::{Host, HostId};
use super::stream::Stream;
use crate::runtime::lock;

/// So many requests that are over are still told apart from those that never were.
const REMEMBERED_STREAMS: usize = 8;

/// How long a stream may be silent unless the host says otherwise: as long as a provider may be.
const DEFAULT_TIMEOUT_MS: u64 = 300_000;
const DEFAULT_WINDOW: StreamCredit = StreamCredit { events: 256, bytes: 1 << 20 };

/// Fixed while the thread is loaded, but for who sits there and under which lease.
#[derive(Debug)]
pub struct Seat {
    thread_id: ThreadId,
    terms: ThreadDelegation,
    state: Mutex<State>,
    /// The host is gone, or another one is about to take its place: nothing is waited for that only it could answer.
    is_left: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    host: Arc<dyn Host>,
    epoch: Option<u64>,
    /// The newest last. Turns, compactions and reviews stand in one line: at most one of them is under way.
    streams: VecDeque<Arc<Stream>>,
    last_body: Option<Arc<RequestBody>>,
    /// The host's connection has ended, and nobody else has sat down.
    is_vacant: bool,
    is_closing: bool,
}

impl Seat {
    /// `terms` with every default filled in.
    pub(super) fn new(thread_id: ThreadId, terms: ThreadDelegation, host: Arc<dyn Host>) -> Self {
        let epoch = terms.host_epoch;
        let streams = VecDeque::new();
        let state = State { host, epoch, streams, last_body: None, is_vacant: false, is_closing: false };
        Self { thread_id, terms, state: Mutex::new(state), is_left: watch::Sender::new(false) }
    }

    pub(crate) fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// Whoever sits there now.
    pub fn host(&self) -> Arc<dyn Host> {
        lock(&self.state).host.clone()
    }

    /// Nobody carries requests or keeps records until a host sits down again.
    pub(crate) fn is_vacant(&self) -> bool {
        lock(&self.state).is_vacant
    }

    /// Another host is about to sit down. The one before may be dead without anybody having noticed.
    pub(super) fn expect(&self, host: HostId) {
        if lock(&self.state).host.id() != host {
            self.is_left.send_replace(true);
        }
    }

    /// Returns when it makes no sense any more to wait for whoever sits there.
    pub(crate) async fn left(&self) {
        // The sender lives as long as this seat.
        let _ = self.is_left.subscribe().wait_for(|is_left| *is_left).await;
    }

    /// The lease the host works under; 0 when it named none.
    pub fn epoch(&self) -> u64 {
        lock(&self.state).epoch.unwrap_or(0)
    }

    /// What the host is told that it gets.
    pub(crate) fn effective(&self) -> ThreadDelegation {
        ThreadDelegation { host_epoch: lock(&self.state).epoch, ..self.terms.clone() }
    }

    pub(crate) fn carries_requests(&self) -> bool {
        self.terms.mode == DelegationMode::Full
    }

    /// What requests must stay within, where the host carries them.
    pub(crate) fn capabilities(&self) -> Option<&ModelCapabilities> {
        self.terms.provider.as_ref().map(|provider| &provider.capabilities)
    }

    pub(super) fn window(&self) -> StreamCredit {
        let stream = self.terms.stream.as_ref();
        StreamCredit {
            events: stream.and_then(|stream| stream.window_events).unwrap_or(DEFAULT_WINDOW.events),
            bytes: stream.and_then(|stream| stream.window_bytes).unwrap_or(DEFAULT_WINDOW.bytes),
        }
    }

    pub(super) fn first_event_timeout(&self) -> Duration {
        let asked = self.terms.stream.as_ref().and_then(|stream| stream.first_event_timeout_ms);
        Duration::from_millis(asked.unwrap_or(DEFAULT_TIMEOUT_MS))
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        let asked = self.terms.stream.as_ref().and_then(|stream| stream.idle_timeout_ms);
        Duration::from_millis(asked.unwrap_or(DEFAULT_TIMEOUT_MS))
    }

    /// Returns when another host than this one sits there.
    pub(crate) async fn taken_from(&self, before: HostId) {
        let mut changes = self.is_left.subscribe();
        while self.host().id() == before && changes.changed().await.is_ok() {}
    }

    /// Another host sits down, or the same one after it lost its connection. What the one before carried is tried again.
    pub(super) fn attach(&self, host: Arc<dyn Host>, epoch: Option<u64>) {
        let mut state = lock(&self.state);
        let before = std::mem::replace(&mut state.host, host);
        state.epoch = epoch.or(state.epoch);
        state.is_vacant = false;
        self.is_left.send_replace(false);
        if before.id() == state.host.id() {
            return;
        }
        let orphans = state.streams_of(before.id());
        drop(state);
        for stream in orphans {
            stream.end(failure::superseded());
        }
    }

    /// The host is gone. The seat stays its own until somebody else sits down.
    pub(crate) fn detach(&self, host: HostId) {
        let mut state = lock(&self.state);
        if state.host.id() == host {
            state.is_vacant = true;
            self.is_left.send_replace(true);
        }
        let orphans = state.streams_of(host);
        drop(state);
        for stream in orphans {
            stream.end(failure::gone());
        }
    }

    /// Takes the place of the request before, which must be settled before this one is sent.
    pub(super) fn enter(&self, stream: &Arc<Stream>) -> Option<Arc<Stream>> {
        let mut state = lock(&self.state);
        let before = state.streams.back().cloned();
        if state.streams.len() == REMEMBERED_STREAMS {
            state.streams.pop_front();
        }
        state.streams.push_back(stream.clone());
        before
    }

    /// How many leading items a request shares with the one before it.
    pub(super) fn shared_prefix(&self, body: &Arc<RequestBody>) -> u32 {
        let before = lock(&self.state).last_body.replace(body.clone());
        let Some(before) = before else { return 0 };
        let pairs = before.input.iter().zip(&body.input);
        u32::try_from(pairs.take_while(|(one, other)| Arc::ptr_eq(one, other)).count()).unwrap_or(u32::MAX)
    }

    /// The thread is put away: what is canceled from now on is canceled for that.
    pub(crate) fn close(&self) {
        lock(&self.state).is_closing = true;
    }

    /// Why a request is dropped for which nothing else says why.
    pub(super) fn drop_reason(&self) -> ModelCancelReason {
        match lock(&self.state).is_closing {
            true => ModelCancelReason::ThreadClosed,
            false => ModelCancelReason::TurnInterrupted,
        }
    }

    /// The stream of a request, if this host carries it, and whether it is the newest.
    pub(super) fn stream(
        &self,
        from: HostId,
        id: &ModelRequestId,
    ) -> Result<(Arc<Stream>, bool), DelegationError> {
        let state = lock(&self.state);
        let found = state.streams.iter().rposition(|stream| stream.id == *id);
        let Some(at) = found else {
            return Err(match state.host.id() == from {
                true => DelegationError::UnknownRequest(id.clone()),
                false => DelegationError::NotTheHost(self.thread_id.to_string()),
            });
        };
        let stream = &state.streams[at];
        if stream.host != from {
            return Err(DelegationError::NotTheHost(self.thread_id.to_string()));
        }
        Ok((stream.clone(), at + 1 == state.streams.len()))
    }
}

impl State {
    fn streams_of(&self, host: HostId) -> Vec<Arc<Stream>> {
        self.streams.iter().filter(|stream| stream.host == host).cloned().collect()
    }
}

/// With what holds where the host says nothing.
pub(super) fn filled(stream: Option<&DelegatedStream>) -> DelegatedStream {
    DelegatedStream {
        window_events: stream.and_then(|stream| stream.window_events).or(Some(DEFAULT_WINDOW.events)),
        window_bytes: stream.and_then(|stream| stream.window_bytes).or(Some(DEFAULT_WINDOW.bytes)),
        first_event_timeout_ms: stream
            .and_then(|stream| stream.first_event_timeout_ms)
            .or(Some(DEFAULT_TIMEOUT_MS)),
        idle_timeout_ms: stream.and_then(|stream| stream.idle_timeout_ms).or(Some(DEFAULT_TIMEOUT_MS)),
    }
}

/// Two seats are never the same one by chance.
impl PartialEq for Seat {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Seat {}
