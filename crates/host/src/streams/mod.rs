//! The streams of all clients that carry model requests, found by their connection, thread and request.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{ModelRequestId, StreamAbortReason, ThreadId};
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

use task::{ClientStreamError, IncomingStream, StreamBreak, StreamNews};

/// Ended streams we remember, so that late events get `staleRequest` instead of `unknownRequest`.
const REMEMBERED: usize = 1_024;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StreamKey {
    pub(crate) connection: u64,
    pub(crate) thread: ThreadId,
    pub(crate) request: ModelRequestId,
}

/// Requests of one lane come one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CarrierLane {
    Turn,
    Aux,
}

/// A stream that a client fills and one reader empties.
#[derive(Debug, Default)]
pub(crate) struct SharedStream {
    stream: Mutex<IncomingStream>,
    changed: Notify,
}

impl SharedStream {
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut IncomingStream) -> T) -> T {
        let changed = change(&mut self.stream.lock());
        self.changed.notify_one();
        changed
    }

    pub(crate) fn end(&self, how: StreamBreak) {
        self.change(|stream| stream.end(how));
    }
}

type LaneLock = Arc<AsyncMutex<()>>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ClientStreams {
    open: Mutex<HashMap<StreamKey, Arc<SharedStream>>>,
    ended: Mutex<VecDeque<StreamKey>>,
    /// Lanes that somebody holds or waits for.
    lanes: Mutex<HashMap<(ThreadId, CarrierLane), LaneLock>>,
}

impl ClientStreams {
    pub(crate) fn open(self: &Arc<Self>, key: StreamKey) -> StreamReader {
        let stream = Arc::<SharedStream>::default();
        // A later runtime may ask the same connection the same again.
        self.ended.lock().retain(|ended| *ended != key);
        self.open.lock().insert(key.clone(), stream.clone());
        StreamReader { streams: self.clone(), key, stream }
    }

    /// One request of a lane is at a client at a time, also when the runtime that asked it is gone: the next one finds its
    /// answer stored.
    pub(crate) async fn enter(&self, thread: ThreadId, lane: CarrierLane) -> OwnedMutexGuard<()> {
        let lock = {
            let mut lanes = self.lanes.lock();
            lanes.retain(|_, lock| Arc::strong_count(lock) > 1);
            lanes.entry((thread, lane)).or_default().clone()
        };
        lock.lock_owned().await
    }

    pub(crate) fn find(
        &self,
        connection: u64,
        thread: &ThreadId,
        request: &ModelRequestId,
    ) -> Result<Arc<SharedStream>, ClientStreamError> {
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

impl ClientStreams {
    /// The connection ended, and every stream of it.
    pub(crate) fn disconnect(&self, connection: u64) {
        let open = self.open.lock();
        let left = open.iter().filter(|(key, _)| key.connection == connection);
        left.for_each(|(_, stream)| stream.end(StreamBreak::CarrierGone));
    }
}

/// Reads one stream. Dropped, the stream is over, and what still comes is refused.
#[derive(Debug)]
pub(crate) struct StreamReader {
    streams: Arc<ClientStreams>,
    key: StreamKey,
    stream: Arc<SharedStream>,
}

impl StreamReader {
    pub(crate) async fn next(&self) -> StreamNews {
        loop {
            if let Some(news) = self.try_next() {
                return news;
            }
            self.stream.changed.notified().await;
        }
    }

    pub(crate) fn try_next(&self) -> Option<StreamNews> {
        self.stream.stream.lock().pop()
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
