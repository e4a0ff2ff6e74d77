//! Runtimes that work for one client each, in one placement each: its commands, watches and searches there. What a client has
//! begun there is nobody else's, and ends with its connection, because the runtime does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use rpc::{FrameLimits, FrameReader, Incoming};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::time::timeout;

use crate::link::{LinkAnswer, OrderedAnswer, RuntimeLink};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The longest line that is read of such a runtime: a file or an output in base64.
const MAX_LINE_BYTES: usize = 128 * 1024 * 1024;
/// How long a runtime stays in which nothing is open.
const UNUSED_FOR: Duration = Duration::from_secs(60);
/// Placements in which one client may have something open at the same time.
const MOST_OF_A_CLIENT: usize = 8;

/// The connection that a runtime works for.
pub trait RuntimeClient: Send + Sync {
    /// No other connection has had it.
    fn id(&self) -> u64;

    /// It has ended: nothing is begun for it any more.
    fn is_gone(&self) -> bool;

    /// Passes a notification of the runtime on. Waits while the client has too much to read.
    fn tell<'a>(&'a self, method: &'a str, params: Box<RawValue>) -> BoxFuture<'a, ()>;
}

/// A process that was started for a client.
pub struct RuntimePipes {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Called once the pipes are closed: returns when the process has ended with all it started.
    pub end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}

impl fmt::Debug for RuntimePipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimePipes")
    }
}

/// One runtime. Clones are the same.
#[derive(Debug, Clone)]
pub struct ClientRuntime {
    link: RuntimeLink,
    open: Arc<SyncMutex<OpenThings>>,
    /// Nobody waits for anything of it any more.
    stop: Arc<Notify>,
    /// Released when the process has ended.
    living: Arc<Mutex<()>>,
}

/// The reasons for which a runtime stays.
#[derive(Debug, Default)]
struct OpenThings {
    /// Requests without an answer; a running command is one.
    requests: usize,
    watches: BTreeSet<String>,
    searches: BTreeSet<String>,
    is_over: bool,
}

impl OpenThings {
    fn is_unused(&self) -> bool {
        self.requests == 0 && self.watches.is_empty() && self.searches.is_empty()
    }

    fn answered(&mut self, method: &str, params: &Value, answer: &LinkAnswer) {
        self.requests -= 1;
        let Ok(answer) = answer else { return };
        let named = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        match method {
            "fs/watch" => {
                let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
                self.watches.insert(named(&answer, "watchId"));
            }
            "fs/unwatch" => drop(self.watches.remove(&named(params, "watchId"))),
            "fuzzyFileSearch/sessionStart" => drop(self.searches.insert(named(params, "sessionId"))),
            "fuzzyFileSearch/sessionStop" => drop(self.searches.remove(&named(params, "sessionId"))),
            _ => {}
        }
    }
}

impl ClientRuntime {
    /// Reads and writes the pipes from now on, until the process ends or nothing is open there for a while.
    pub fn begin(pipes: RuntimePipes, client: Arc<dyn RuntimeClient>) -> Self {
        let RuntimePipes { input, output, end } = pipes;
        let (link, backlog) = RuntimeLink::open();
        tokio::spawn(rpc::drain(backlog, input));
        let runtime = Self { link, open: Arc::default(), stop: Arc::default(), living: Arc::default() };
        let reader = runtime.clone();
        // Nobody else has it yet.
        let living = Arc::clone(&runtime.living).try_lock_owned();
        tokio::spawn(async move {
            let _living: Option<OwnedMutexGuard<()>> = living.ok();
            tokio::select! {
                () = reader.read(output, &*client) => {}
                () = reader.stop.notified() => {}
            }
            reader.open.lock().is_over = true;
            reader.link.abandon();
            end().await;
        });
        runtime
    }

    /// For the handshake.
    pub fn link(&self) -> &RuntimeLink {
        &self.link
    }

    /// False where the runtime is about to end, and nothing was sent. The answer is given before what the runtime says after
    /// it is passed on.
    pub fn request(
        &self,
        method: &'static str,
        params: &Value,
        answer: OrderedAnswer,
    ) -> Result<(), OrderedAnswer> {
        {
            let mut open = self.open.lock();
            if open.is_over {
                return Err(answer);
            }
            open.requests += 1;
        }
        let (open, sent) = (Arc::clone(&self.open), params.clone());
        let answer: OrderedAnswer = Box::new(move |result| {
            open.lock().answered(method, &sent, &result);
            answer(result);
        });
        self.link.request_ordered(method, params, &traces::current(), answer);
        Ok(())
    }

    /// Returns when the process has ended, and all it started.
    pub async fn end(&self) {
        self.stop.notify_one();
        drop(self.living.lock().await);
    }

    async fn read(&self, output: impl AsyncRead + Unpin, client: &dyn RuntimeClient) {
        let mut reader = FrameReader::new(output, FrameLimits { max_frame_bytes: MAX_LINE_BYTES });
        loop {
            let Ok(frame) = timeout(UNUSED_FOR, reader.next()).await else {
                let mut open = self.open.lock();
                if open.is_unused() {
                    open.is_over = true;
                    return;
                }
                continue;
            };
            let parsed = match frame {
                None => return,
                Some(Ok(frame)) => rpc::parse(frame),
                Some(Err(error)) => {
                    tracing::warn!(%error, "a client's runtime cannot be read");
                    return;
                }
            };
            match parsed {
                Ok(message) => self.take(message, client).await,
                Err(bad) => tracing::warn!("a client's runtime sent what is no message: {bad}"),
            }
        }
    }

    async fn take(&self, message: Incoming, client: &dyn RuntimeClient) {
        match message {
            Incoming::Response(response) => {
                if let Some(waiter) = self.link.waiting.resolve(&response.id) {
                    waiter.give(Ok(response.result));
                }
            }
            Incoming::Error(error) => {
                if let Some(waiter) = error.id.and_then(|id| self.link.waiting.resolve(&id)) {
                    waiter.give(Err(Some(error.error)));
                }
            }
            Incoming::Notification(notification) => {
                if let Some(params) = notification.params {
                    client.tell(&notification.method, params).await;
                }
            }
            // It has no thread, so it has nothing to ask.
            Incoming::Request(request) => {
                let message = format!("this host does not do {}", request.method);
                self.link.refuse(&request.id, -32601, &message, &None);
            }
        }
    }
}

/// By client and placement. Held while one is started.
type Slot = Arc<Mutex<Option<ClientRuntime>>>;

/// The runtimes of all clients.
#[derive(Debug, Default)]
pub struct ClientRuntimes {
    slots: SyncMutex<BTreeMap<(u64, String), Slot>>,
}

impl ClientRuntimes {
    /// Sends the request to the client's runtime in this placement, which is started where there is none.
    pub async fn request<E>(
        &self,
        (client, placement): (&Arc<dyn RuntimeClient>, &str),
        (method, params): (&'static str, Value),
        mut answer: OrderedAnswer,
        start: impl Future<Output = Result<ClientRuntime, E>> + Send,
        too_many: impl FnOnce(usize) -> E,
    ) -> Result<(), E> {
        let key = (client.id(), placement.to_owned());
        let Some(slot) = self.slot(&key) else { return Err(too_many(MOST_OF_A_CLIENT)) };
        let mut held = slot.lock().await;
        if let Some(runtime) = &*held {
            match runtime.request(method, &params, answer) {
                Ok(()) => return Ok(()),
                Err(back) => answer = back,
            }
        }
        let runtime = match start.await {
            Ok(runtime) => runtime,
            Err(error) => {
                *held = None;
                self.forget(&key, &slot);
                return Err(error);
            }
        };
        if client.is_gone() || !self.has(&key, &slot) {
            // It ended meanwhile, and nobody else would end this.
            runtime.end().await;
            self.forget(&key, &slot);
            answer(Err(None));
            return Ok(());
        }
        if let Err(answer) = runtime.request(method, &params, answer) {
            answer(Err(None));
        }
        *held = Some(runtime);
        Ok(())
    }

    fn slot(&self, key: &(u64, String)) -> Option<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(key) {
            return Some(Arc::clone(slot));
        }
        // A slot that somebody else holds is about to be used.
        slots.retain(|(client, _), slot| *client != key.0 || Arc::strong_count(slot) > 1 || is_in_use(slot));
        let of_client = slots.keys().filter(|(client, _)| *client == key.0).count();
        if of_client >= MOST_OF_A_CLIENT {
            return None;
        }
        Some(Arc::clone(slots.entry(key.clone()).or_default()))
    }

    fn has(&self, key: &(u64, String), slot: &Slot) -> bool {
        self.slots.lock().get(key).is_some_and(|known| Arc::ptr_eq(known, slot))
    }

    fn forget(&self, key: &(u64, String), slot: &Slot) {
        let mut slots = self.slots.lock();
        if slots.get(key).is_some_and(|known| Arc::ptr_eq(known, slot)) {
            slots.remove(key);
        }
    }

    /// Whether a client has something open in the placement.
    pub fn uses(&self, placement: &str) -> bool {
        let of_it = self.taken(|(_, other)| other == placement, false);
        of_it.iter().any(|slot| match slot.try_lock() {
            Ok(runtime) => runtime.as_ref().is_some_and(|runtime| !runtime.open.lock().is_unused()),
            // One is being started.
            Err(_) => true,
        })
    }

    /// The connection has ended, and all that it has begun ends.
    pub async fn end_client(&self, client: u64) {
        end_all(self.taken(|(other, _)| *other == client, true)).await;
    }

    /// Before the placement is suspended or removed.
    pub async fn end_placement(&self, placement: &str) {
        end_all(self.taken(|(_, other)| other == placement, true)).await;
    }

    fn taken(&self, is_meant: impl Fn(&(u64, String)) -> bool, takes: bool) -> Vec<Slot> {
        let mut slots = self.slots.lock();
        let found = slots.iter().filter(|(key, _)| is_meant(key)).map(|(_, slot)| Arc::clone(slot)).collect();
        if takes {
            slots.retain(|key, _| !is_meant(key));
        }
        found
    }
}

fn is_in_use(slot: &Slot) -> bool {
    slot.try_lock().is_ok_and(|runtime| runtime.as_ref().is_some_and(|runtime| !runtime.open.lock().is_over))
}

/// One that is just being started is ended by whoever starts it.
async fn end_all(slots: Vec<Slot>) {
    for slot in slots {
        if let Some(runtime) = slot.lock().await.take() {
            runtime.end().await;
        }
    }
}

#[cfg(test)]
mod tests;
