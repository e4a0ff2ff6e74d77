//! JSON-RPC with one server: matches responses to requests and passes on the server's requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tools::BoxFuture;

use crate::McpError;
use crate::wire::{Arrival, MAX_MESSAGE, McpWire};

/// Limit of concurrent requests of a server. More are refused.
const REQUESTS_AT_ONCE: usize = 8;

/// Handles requests from a server.
pub(crate) trait Inbound: Send + Sync + 'static {
    /// Answers a request: a result, or an error code and its text.
    fn request(&self, method: &str, params: Value) -> BoxFuture<'static, Result<Value, (i64, String)>>;

    /// Handles a notification. Must not block.
    fn notification(&self, method: &str, params: &Value);
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl std::fmt::Debug for dyn Inbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbound")
    }
}

/// The connection to a server. Clones share it; dropping the last one closes it.
#[derive(Debug, Clone)]
pub(crate) struct Peer(Arc<PeerShared>);

#[derive(Debug)]
struct PeerShared {
    outgoing: mpsc::Sender<Value>,
    open: Arc<OpenRequests>,
    next_id: AtomicU64,
}

#[derive(Debug, Default)]
struct OpenRequests {
    requests: Mutex<HashMap<u64, PendingRequest>>,
    /// Set when the connection has ended, with the reason.
    ended: watch::Sender<Option<String>>,
}

#[derive(Debug)]
struct PendingRequest {
    answer: oneshot::Sender<Result<Value, McpError>>,
    progress: Option<mpsc::Sender<String>>,
}

/// Removes a request that is no longer awaited, and notifies the server.
struct RequestGuard<'a> {
    peer: &'a Peer,
    id: u64,
    is_cancellable: bool,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let was_open = self.peer.0.open.requests.lock().remove(&self.id).is_some();
        if was_open && self.is_cancellable {
            let params = json!({"requestId": self.id, "reason": "the call was cancelled"});
            // Fails if the server does not read.
            let _ = self.peer.0.outgoing.try_send(notification("notifications/cancelled", &params));
        }
    }
}

impl Peer {
    /// Starts reading. The task ends with the connection.
    pub(crate) fn start(wire: McpWire, inbound: Arc<dyn Inbound>) -> Self {
        let open = Arc::new(OpenRequests::default());
        let answers = wire.outgoing.downgrade();
        tokio::spawn(read(wire.arrivals, answers, open.clone(), inbound));
        Self(Arc::new(PeerShared { outgoing: wire.outgoing, open, next_id: AtomicU64::new(1) }))
    }

    /// Sends a request and waits for the response. Dropping the future cancels it.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, McpError> {
        self.request_with(method, params, None).await
    }

    /// Like `request`, with progress reports to `progress`.
    pub(crate) async fn request_with(
        &self,
        method: &str,
        mut params: Value,
        progress: Option<mpsc::Sender<String>>,
    ) -> Result<Value, McpError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        if progress.is_some()
            && let Some(params) = params.as_object_mut()
        {
            params.insert("_meta".to_owned(), json!({"progressToken": id}));
        }
        let (sender, answer) = oneshot::channel();
        self.0.open.requests.lock().insert(id, PendingRequest { answer: sender, progress });
        let _waiting = RequestGuard { peer: self, id, is_cancellable: method != "initialize" };
        if let Some(reason) = self.ended() {
            return Err(McpError::Ended(reason));
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if self.0.outgoing.send(message).await.is_err() {
            return Err(McpError::Ended(
                self.ended().unwrap_or_else(|| "the connection is closed".to_owned()),
            ));
        }
        answer.await.unwrap_or_else(|_| Err(McpError::Ended("the connection is closed".to_owned())))
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        // Fails if the connection has ended.
        let _ = self.0.outgoing.send(notification(method, &params)).await;
    }

    /// Why the connection has ended, if it has.
    pub(crate) fn ended(&self) -> Option<String> {
        self.0.open.ended.borrow().clone()
    }
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

async fn read(
    mut arrivals: mpsc::Receiver<Arrival>,
    outgoing: mpsc::WeakSender<Value>,
    open: Arc<OpenRequests>,
    inbound: Arc<dyn Inbound>,
) {
    let slots = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    let mut reason = "the connection is closed".to_owned();
    while let Some(arrival) = arrivals.recv().await {
        match arrival {
            Arrival::Message(Value::Array(batch)) => {
                for message in batch {
                    take(message, &outgoing, &open, &inbound, &slots);
                }
            }
            Arrival::Message(message) => take(message, &outgoing, &open, &inbound, &slots),
            Arrival::TooLarge => open.fail_all(&McpError::TooLarge(MAX_MESSAGE)),
            Arrival::Undelivered { id, reason } => open.settle(id, Err(McpError::Ended(reason))),
            Arrival::Ended(why) => {
                reason = why;
                break;
            }
        }
    }
    open.ended.send_replace(Some(reason.clone()));
    open.fail_all(&McpError::Ended(reason));
}

impl OpenRequests {
    fn settle(&self, id: u64, answer: Result<Value, McpError>) {
        if let Some(pending) = self.requests.lock().remove(&id) {
            // The caller may have stopped waiting.
            let _ = pending.answer.send(answer);
        }
    }

    fn fail_all(&self, error: &McpError) {
        for (_, pending) in self.requests.lock().drain() {
            let _ = pending.answer.send(Err(error.clone()));
        }
    }

    fn progress(&self, params: &Value) {
        let Some(id) = params.get("progressToken").and_then(Value::as_u64) else { return };
        if let Some(PendingRequest { progress: Some(progress), .. }) = self.requests.lock().get(&id) {
            // Drops some if there are too many.
            let _ = progress.try_send(progress_text(params));
        }
    }
}

fn progress_text(params: &Value) -> String {
    const MAX_CHARS: usize = 1000;
    let number = |key: &str| params.get(key).and_then(Value::as_f64);
    let count = match (number("progress"), number("total")) {
        (Some(done), Some(total)) => format!("{done}/{total}"),
        (Some(done), None) => done.to_string(),
        (None, _) => String::new(),
    };
    match params.get("message").and_then(Value::as_str) {
        Some(text) if !text.is_empty() => text.chars().take(MAX_CHARS).collect(),
        _ => count,
    }
}

/// One message: a response, a request or a notification. Anything else is ignored.
fn take(
    mut message: Value,
    outgoing: &mpsc::WeakSender<Value>,
    open: &OpenRequests,
    inbound: &Arc<dyn Inbound>,
    slots: &Arc<Semaphore>,
) {
    let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    match (method, id) {
        (None, Some(id)) => {
            if let Some(id) = id.as_u64() {
                open.settle(id, answer_in(&mut message));
            }
        }
        (None, None) => {
            tracing::debug!("a message of an MCP server is neither answer, request nor notification");
        }
        (Some(method), None) if method == "notifications/progress" => open.progress(&params),
        (Some(method), None) => inbound.notification(&method, &params),
        (Some(method), Some(id)) => {
            let Some(outgoing) = outgoing.upgrade() else { return };
            let Ok(slot) = slots.clone().try_acquire_owned() else {
                // Does not wait for a server that sends without reading: then even this is dropped.
                let refused = Err((-32000, "too many requests at once".to_owned()));
                let _ = outgoing.try_send(reply(&id, refused));
                return;
            };
            let answer = inbound.request(&method, params);
            tokio::spawn(async move {
                let _slot = slot;
                let reply = reply(&id, answer.await);
                let _ = outgoing.send(reply).await;
            });
        }
    }
}

fn reply(id: &Value, answer: Result<Value, (i64, String)>) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    }
}

fn answer_in(message: &mut Value) -> Result<Value, McpError> {
    if let Some(error) = message.get("error") {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
        let text = error.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(McpError::Refused { code, message: text.chars().take(2000).collect() });
    }
    message
        .get_mut("result")
        .map(Value::take)
        .ok_or_else(|| McpError::Unusable("it has neither result nor error".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Echo;

    impl Inbound for Echo {
        fn request(&self, _: &str, params: Value) -> BoxFuture<'static, Result<Value, (i64, String)>> {
            Box::pin(std::future::ready(Ok(params)))
        }

        fn notification(&self, _: &str, _: &Value) {}
    }

    /// Otherwise each request would leave a task that waits for space in the queue.
    #[tokio::test]
    async fn a_server_that_asks_without_reading_fills_no_memory() {
        let (outgoing, mut unread) = mpsc::channel(4);
        let (arrived, arrivals) = mpsc::channel(4);
        let peer = Peer::start(McpWire { outgoing, arrivals }, Arc::new(Echo));
        for id in 0..1_000 {
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {}});
            arrived.send(Arrival::Message(asked)).await.expect("it is read");
        }
        // Read after all of them.
        arrived.send(Arrival::Undelivered { id: 0, reason: String::new() }).await.expect("it is read");
        tokio::task::yield_now().await;
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        assert!(tasks <= REQUESTS_AT_ONCE + 2, "{tasks} tasks");
        // When it reads again, it gets responses again.
        while let Ok(Some(_)) =
            tokio::time::timeout(std::time::Duration::from_millis(50), unread.recv()).await
        {}
        let asked = json!({"jsonrpc": "2.0", "id": "last", "method": "ping", "params": {"a": 1}});
        arrived.send(Arrival::Message(asked)).await.expect("it is read");
        let answer = unread.recv().await.expect("an answer");
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": "last", "result": {"a": 1}}));
        drop(peer);
    }
}
