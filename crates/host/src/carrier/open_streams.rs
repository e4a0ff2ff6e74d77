//! The streams of all clients that carry model requests, found by their connection, thread and request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{
    ModelRequestId, ModelRequestRejectedParams, ModelStreamAbortedParams, ModelStreamEventParams,
    StreamAbortReason, ThreadId,
};
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

use super::CarrierLane;
use super::incoming::{
    BatchResponder, ClientStreamError, IncomingStream, StreamAbort, StreamBreak, StreamNews,
};
use crate::task_host::TaskHost;

/// Ended streams we remember, so that late events get `staleRequest` instead of `unknownRequest`.
const REMEMBERED: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StreamKey {
    pub(super) connection: u64,
    pub(super) thread: ThreadId,
    pub(super) request: ModelRequestId,
}

#[derive(Debug, Default)]
struct OpenStream {
    stream: Mutex<IncomingStream>,
    changed: Notify,
}

impl OpenStream {
    fn end(&self, how: StreamBreak) {
        self.stream.lock().end(how);
        self.changed.notify_one();
    }
}

type LaneLock = Arc<AsyncMutex<()>>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ClientStreams {
    open: Mutex<HashMap<StreamKey, Arc<OpenStream>>>,
    ended: Mutex<VecDeque<StreamKey>>,
    /// Lanes that somebody holds or waits for.
    lanes: Mutex<HashMap<(ThreadId, CarrierLane), LaneLock>>,
}

impl ClientStreams {
    pub(super) fn open(self: &Arc<Self>, key: StreamKey) -> StreamReader {
        let stream = Arc::<OpenStream>::default();
        // A later runtime may ask the same connection the same again.
        self.ended.lock().retain(|ended| *ended != key);
        self.open.lock().insert(key.clone(), stream.clone());
        StreamReader { streams: self.clone(), key, stream }
    }

    /// One request of a lane is at a client at a time, also when the runtime that asked it is gone: the next one finds its
    /// answer stored.
    pub(super) async fn enter(&self, thread: ThreadId, lane: CarrierLane) -> OwnedMutexGuard<()> {
        let lock = {
            let mut lanes = self.lanes.lock();
            lanes.retain(|_, lock| Arc::strong_count(lock) > 1);
            lanes.entry((thread, lane)).or_default().clone()
        };
        lock.lock_owned().await
    }

    fn find(
        &self,
        connection: u64,
        thread: &ThreadId,
        request: &ModelRequestId,
    ) -> Result<Arc<OpenStream>, ClientStreamError> {
        let key = StreamKey { connection, thread: thread.clone(), request: request.clone() };
        if let Some(stream) = self.open.lock().get(&key) {
            return Ok(stream.clone());
        }
        let name = request.to_string();
        match self.ended.lock().contains(&key) {
            true => Err(ClientStreamError::StaleRequest(name)),
            false => Err(ClientStreamError::UnknownRequest(name)),
        }
    }
}

/// Reads one stream. Dropped, the stream is over, and what still comes is refused.
#[derive(Debug)]
pub(super) struct StreamReader {
    streams: Arc<ClientStreams>,
    key: StreamKey,
    stream: Arc<OpenStream>,
}

impl StreamReader {
    pub(super) async fn next(&self) -> StreamNews {
        loop {
            if let Some(news) = self.try_next() {
                return news;
            }
            self.stream.changed.notified().await;
        }
    }

    pub(super) fn try_next(&self) -> Option<StreamNews> {
        self.stream.stream.lock().next()
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.streams.open.lock().remove(&self.key);
        // Whoever waits for the answer to a batch gets it.
        self.stream.stream.lock().end(StreamBreak::plain(StreamAbortReason::Canceled, false));
        let mut ended = self.streams.ended.lock();
        if ended.len() == REMEMBERED {
            ended.pop_front();
        }
        ended.push_back(self.key.clone());
    }
}

impl TaskHost {
    /// Events of a client that carries a request. Acknowledged late when there is no credit to give.
    pub fn stream_event(&self, connection: u64, params: ModelStreamEventParams, responder: BatchResponder) {
        match self.shared.streams.find(connection, &params.thread_id, &params.model_request_id) {
            Ok(stream) => {
                stream.stream.lock().take(params.seq, params.events, responder);
                stream.changed.notify_one();
            }
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// As [`TaskHost::stream_event`], from a client that wants no answers.
    pub fn stream_event_unacknowledged(
        &self,
        connection: u64,
        params: ModelStreamEventParams,
    ) -> Result<(), ClientStreamError> {
        let stream = self.shared.streams.find(connection, &params.thread_id, &params.model_request_id)?;
        let heard = stream.stream.lock().hear(params.seq, params.events);
        stream.changed.notify_one();
        heard
    }

    /// The client ends a stream without a terminal event. One that is over stays as it is.
    pub fn stream_aborted(
        &self,
        connection: u64,
        params: ModelStreamAbortedParams,
    ) -> Result<(), ClientStreamError> {
        let ModelStreamAbortedParams {
            thread_id, model_request_id, reason, error, usage, replay_safe, ..
        } = params;
        let broken = match reason {
            // The task outlives its clients: it waits for the next one.
            StreamAbortReason::HostShutdown => StreamBreak::plain(StreamAbortReason::Disconnected, true),
            reason => StreamBreak::Aborted(StreamAbort { reason, error, usage, replay_safe }),
        };
        self.break_stream(connection, &thread_id, &model_request_id, broken)
    }

    /// The client found out late that it does not carry a request.
    pub fn request_rejected(
        &self,
        connection: u64,
        params: ModelRequestRejectedParams,
    ) -> Result<(), ClientStreamError> {
        let ModelRequestRejectedParams { thread_id, model_request_id, error } = params;
        self.break_stream(connection, &thread_id, &model_request_id, StreamBreak::Rejected(error))
    }

    fn break_stream(
        &self,
        connection: u64,
        thread: &ThreadId,
        request: &ModelRequestId,
        broken: StreamBreak,
    ) -> Result<(), ClientStreamError> {
        match self.shared.streams.find(connection, thread, request) {
            Ok(stream) => stream.end(broken),
            // The answer to a cancellation.
            Err(ClientStreamError::StaleRequest(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The connection ended, and every stream of it.
    pub fn carrier_left(&self, connection: u64) {
        let open = self.shared.streams.open.lock();
        let left: Vec<_> = open.iter().filter(|(key, _)| key.connection == connection).collect();
        for (_, stream) in left {
            stream.end(StreamBreak::CarrierGone);
        }
    }
}
