//! The session of a host with a thread: the attached host, its terms, and the model requests it carries.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use model::{Purpose, RequestBody};
use protocol::{
    DelegatedStream, DelegationMode, ModelCancelReason, ModelCapabilities, ModelRequestId, StreamCredit,
    ThreadDelegation, ThreadId,
};
use tokio::sync::watch;

use super::error::DelegationError;
use super::failure;
use super::host::{Host, HostId};
use super::stream::Stream;

/// Ended streams we remember, so that late events get `staleRequest` instead of `unknownRequest`.
const REMEMBERED_STREAMS: usize = 8;

/// How long a stream may be silent, unless the host says otherwise: as long as a provider's.
const DEFAULT_TIMEOUT_MS: u64 = 300_000;
const DEFAULT_WINDOW: StreamCredit = StreamCredit { events: 256, bytes: 1 << 20 };

/// Request lanes: each has at most one request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestLane {
    /// Turns, compactions and reviews.
    Turn,
    /// Memories, which run beside turns.
    Aux,
}

impl RequestLane {
    pub(super) fn of(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Turn | Purpose::Compaction | Purpose::Review => Self::Turn,
            Purpose::Memory => Self::Aux,
        }
    }
}

/// Fixed while the thread is loaded, except for the attached host and its lease.
#[derive(Debug)]
pub struct HostSession {
    thread_id: ThreadId,
    terms: ThreadDelegation,
    state: Mutex<SessionState>,
    /// The host is gone or about to be replaced: its responses are no longer awaited.
    is_left: watch::Sender<bool>,
}

#[derive(Debug)]
struct SessionState {
    host: Arc<dyn Host>,
    epoch: Option<u64>,
    /// By lane, the newest last.
    streams: [VecDeque<Arc<Stream>>; 2],
    last_body: Option<Arc<RequestBody>>,
    /// The host's connection has ended, and no other host has attached.
    is_vacant: bool,
    is_closing: bool,
}

impl HostSession {
    /// `terms` has every default filled in.
    pub(super) fn new(thread_id: ThreadId, terms: ThreadDelegation, host: Arc<dyn Host>) -> Self {
        let epoch = terms.host_epoch;
        let streams = Default::default();
        let state =
            SessionState { host, epoch, streams, last_body: None, is_vacant: false, is_closing: false };
        Self { thread_id, terms, state: Mutex::new(state), is_left: watch::Sender::new(false) }
    }

    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The attached host, or the last one that was attached.
    pub fn host(&self) -> Arc<dyn Host> {
        self.state.lock().host.clone()
    }

    /// No host is attached to carry requests or keep records.
    pub fn is_vacant(&self) -> bool {
        self.state.lock().is_vacant
    }

    /// Another host is about to attach. The previous one may have disconnected unnoticed.
    pub(super) fn expect(&self, host: HostId) {
        if self.state.lock().host.id() != host {
            self.is_left.send_replace(true);
        }
    }

    /// Returns when waiting for the attached host is pointless.
    pub async fn left(&self) {
        // The sender lives as long as this session.
        let _ = self.is_left.subscribe().wait_for(|is_left| *is_left).await;
    }

    /// The epoch of the host's lease; 0 if it named none.
    pub fn epoch(&self) -> u64 {
        self.state.lock().epoch.unwrap_or(0)
    }

    /// The granted terms.
    pub fn effective(&self) -> ThreadDelegation {
        ThreadDelegation { host_epoch: self.state.lock().epoch, ..self.terms.clone() }
    }

    pub fn carries_requests(&self) -> bool {
        self.terms.mode == DelegationMode::Full
    }

    /// The limits of requests, if the host carries them.
    pub fn capabilities(&self) -> Option<&ModelCapabilities> {
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

    /// Returns when another host is attached.
    pub async fn taken_from(&self, before: HostId) {
        let mut changes = self.is_left.subscribe();
        while self.host().id() == before && changes.changed().await.is_ok() {}
    }

    /// Attaches another host, or the same one after a reconnect. Requests of the previous one are retried.
    pub(super) fn attach(&self, host: Arc<dyn Host>, epoch: Option<u64>) {
        let mut state = self.state.lock();
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

    /// The host disconnected. The session is kept for the next host.
    pub fn detach(&self, host: HostId) {
        let mut state = self.state.lock();
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

    /// Replaces the previous request of its lane, which must be settled before this one is sent.
    pub(super) fn enter(&self, stream: &Arc<Stream>, lane: RequestLane) -> Option<Arc<Stream>> {
        let mut state = self.state.lock();
        let streams = &mut state.streams[lane as usize];
        let before = streams.back().cloned();
        if streams.len() == REMEMBERED_STREAMS {
            streams.pop_front();
        }
        streams.push_back(stream.clone());
        before
    }

    /// The number of leading items that a request shares with the previous one.
    pub(super) fn shared_prefix(&self, body: &Arc<RequestBody>) -> u32 {
        let before = self.state.lock().last_body.replace(body.clone());
        let Some(before) = before else { return 0 };
        let pairs = before.input.iter().zip(&body.input);
        u32::try_from(pairs.take_while(|(one, other)| Arc::ptr_eq(one, other)).count()).unwrap_or(u32::MAX)
    }

    /// The thread is being unloaded: the cancel reason from now on.
    pub fn close(&self) {
        self.state.lock().is_closing = true;
    }

    /// The default cancel reason.
    pub(super) fn drop_reason(&self) -> ModelCancelReason {
        match self.state.lock().is_closing {
            true => ModelCancelReason::ThreadClosed,
            false => ModelCancelReason::TurnInterrupted,
        }
    }

    /// The stream of a request, if this host carries it, and whether it is the newest of its lane.
    pub(super) fn stream(
        &self,
        from: HostId,
        id: &ModelRequestId,
    ) -> Result<(Arc<Stream>, bool), DelegationError> {
        let state = self.state.lock();
        let in_lane = |streams: &VecDeque<Arc<Stream>>| {
            let at = streams.iter().rposition(|stream| stream.id == *id)?;
            Some((streams[at].clone(), at + 1 == streams.len()))
        };
        let Some((stream, is_newest)) = state.streams.iter().find_map(in_lane) else {
            return Err(match state.host.id() == from {
                true => DelegationError::UnknownRequest(id.clone()),
                false => DelegationError::NotTheHost(self.thread_id.to_string()),
            });
        };
        if stream.host != from {
            return Err(DelegationError::NotTheHost(self.thread_id.to_string()));
        }
        Ok((stream, is_newest))
    }
}

impl SessionState {
    fn streams_of(&self, host: HostId) -> Vec<Arc<Stream>> {
        self.streams.iter().flatten().filter(|stream| stream.host == host).cloned().collect()
    }
}

/// Fills in the defaults.
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
