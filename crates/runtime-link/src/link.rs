//! The connection to one runtime: our requests with their answers, and answers to its requests.

use std::fmt;
use std::sync::Arc;

use rpc::{Closed, ErrorObject, Id, Outbox, OutboxLimits, OutgoingMessage, PendingRequests};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use traces::TraceContext;

/// A whole history goes to a runtime in one message.
const MAX_QUEUED_BYTES: usize = 512 * 1024 * 1024;

/// The answer of a runtime. Without an error object, it ended first.
pub type LinkAnswer = Result<Box<RawValue>, Option<ErrorObject>>;

/// Called in the order in which messages came from the runtime, before what follows the answer is passed on.
pub type OrderedAnswer = Box<dyn FnOnce(LinkAnswer) + Send>;

pub enum Waiter {
    Direct(oneshot::Sender<LinkAnswer>),
    Ordered(OrderedAnswer),
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiter")
    }
}

impl Waiter {
    pub fn give(self, answer: LinkAnswer) {
        match self {
            // The caller may have stopped waiting.
            Self::Direct(sender) => drop(sender.send(answer)),
            Self::Ordered(call) => call(answer),
        }
    }
}

/// Clones write to the same runtime.
#[derive(Clone)]
pub struct RuntimeLink {
    outbox: Outbox,
    pub waiting: Arc<PendingRequests<Waiter>>,
}

impl fmt::Debug for RuntimeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeLink").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl RuntimeLink {
    /// The link, and what its writer takes from.
    pub fn open() -> (Self, rpc::Backlog) {
        let limits = OutboxLimits { max_message_bytes: MAX_QUEUED_BYTES, ..OutboxLimits::default() };
        let (outbox, backlog) = Outbox::open(limits);
        (Self { outbox, waiting: Arc::default() }, backlog)
    }

    fn put(&self, line: rpc::EncodedLine) -> Result<(), Closed> {
        self.outbox.try_send(OutgoingMessage::Plain { group: None, line }).map_err(|refused| {
            tracing::warn!(%refused, "a runtime does not read what it is sent");
            Closed
        })
    }

    /// Queued at once; the answer is given in the order of all that comes from the runtime.
    pub fn request_ordered(
        &self,
        method: &str,
        params: &impl Serialize,
        trace: &Option<TraceContext>,
        answer: OrderedAnswer,
    ) {
        self.ask(method, params, trace, Waiter::Ordered(answer));
    }

    fn ask(&self, method: &str, params: &impl Serialize, trace: &Option<TraceContext>, waiter: Waiter) {
        let id = self.waiting.insert(waiter);
        let line = rpc::traced_request(&id, method, params, trace);
        let sent = line.map_err(drop).and_then(|line| self.put(line).map_err(drop));
        if sent.is_err()
            && let Some(waiter) = self.waiting.remove(&id)
        {
            waiter.give(Err(None));
        }
    }

    /// Queued when this is called; the answer may come before messages that the runtime sent earlier are passed on.
    pub fn request(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> impl Future<Output = LinkAnswer> + Send + 'static {
        let (sender, answer) = oneshot::channel();
        self.ask(method, params, &traces::current(), Waiter::Direct(sender));
        async move { answer.await.unwrap_or(Err(None)) }
    }

    /// As `request`, with a typed answer and the failure in words.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<T, String> {
        match self.request(method, params).await {
            Ok(result) => serde_json::from_str(result.get()).map_err(|error| format!("{method}: {error}")),
            Err(Some(error)) => Err(format!("{method}: {}", error.message)),
            Err(None) => Err(format!("{method}: the runtime ended")),
        }
    }

    pub fn notify(&self, method: &str) {
        self.notify_of(method, &());
    }

    pub fn notify_of(&self, method: &str, params: &impl Serialize) {
        if let Ok(line) = rpc::notification(method, params) {
            let _ = self.put(line);
        }
    }

    pub fn respond(&self, id: &Id, result: &impl Serialize) {
        match rpc::response(id, result) {
            Ok(line) => drop(self.put(line)),
            Err(error) => tracing::error!(%error, "an answer to a runtime is lost"),
        }
    }

    pub fn refuse(&self, id: &Id, code: i64, message: &str, data: &Option<Value>) {
        if let Ok(line) = rpc::error(Some(id), code, message, data) {
            let _ = self.put(line);
        }
    }

    /// The runtime reads the end of its input and stops.
    pub fn close(&self) {
        self.outbox.close();
    }

    /// It is gone: nobody waits for its answers any longer.
    pub fn abandon(&self) {
        self.outbox.close();
        for (_, waiter) in self.waiting.remove_where(|_| true) {
            waiter.give(Err(None));
        }
    }
}
