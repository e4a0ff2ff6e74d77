//! The client at the other end: lines in, lines out, and questions to it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A longer line is skipped.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// How many messages may wait to be written. A client that does not read slows its own calls.
const WAITING: usize = 64;

/// A line of the client.
#[derive(Debug, PartialEq)]
pub(super) enum ClientLine {
    Message(Value),
    Garbage,
    TooLong,
}

/// Writes messages, and pairs its questions with their answers.
#[derive(Debug)]
pub(super) struct ClientPeer {
    outgoing: mpsc::Sender<Value>,
    questions: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    next_id: AtomicU64,
    /// The client said that it can ask its user.
    can_ask: AtomicBool,
}

impl ClientPeer {
    /// The task ends once the peer is dropped and everything is written.
    pub(super) fn start(out: impl AsyncWrite + Unpin + Send + 'static) -> (Arc<Self>, JoinHandle<()>) {
        let (outgoing, to_write) = mpsc::channel(WAITING);
        let peer = Self {
            outgoing,
            questions: Mutex::default(),
            next_id: AtomicU64::new(0),
            can_ask: AtomicBool::new(false),
        };
        (Arc::new(peer), tokio::spawn(write(out, to_write)))
    }

    pub(super) fn learn(&self, can_ask: bool) {
        self.can_ask.store(can_ask, Ordering::Relaxed);
    }

    async fn send(&self, message: Value) {
        // A client that is gone is noticed when its input ends.
        let _ = self.outgoing.send(message).await;
    }

    pub(super) async fn succeed(&self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    pub(super) async fn fail(&self, id: &Value, code: i64, message: &str) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).await;
    }

    pub(super) async fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Asks the client. `None` where it cannot be asked, or answers with an error. Dropping the future withdraws the
    /// question.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        if !self.can_ask.load(Ordering::Relaxed) {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.questions().insert(id, sender);
        let _open = AskedClient { peer: self, id };
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        answer.await.ok().and_then(|mut answer| answer.get_mut("result").map(Value::take))
    }

    /// An answer of the client. One to nothing is ignored.
    pub(super) fn answered(&self, id: &Value, message: Value) {
        let question = id.as_u64().and_then(|id| self.questions().remove(&id));
        if let Some(question) = question {
            let _ = question.send(message);
        }
    }

    fn questions(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Value>>> {
        self.questions.lock()
    }
}

/// Tells the client when nobody waits for its answer any more.
struct AskedClient<'a> {
    peer: &'a ClientPeer,
    id: u64,
}

impl Drop for AskedClient<'_> {
    fn drop(&mut self) {
        if self.peer.questions().remove(&self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the turn went on without an answer"});
            let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
            // A client that does not read cannot be told.
            let _ = self.peer.outgoing.try_send(message);
        }
    }
}

async fn write(mut out: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Value>) {
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if out.write_all(line.as_bytes()).await.is_err() || out.flush().await.is_err() {
            return;
        }
    }
}

/// The next line that is not empty, or `None` at the end.
pub(super) async fn read_message(input: &mut (impl AsyncBufRead + Unpin)) -> Option<ClientLine> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let available = input.fill_buf().await.ok()?;
        if available.is_empty() && line.is_empty() && !is_too_long {
            return None;
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let is_last = available.is_empty() || end.is_some();
        let piece = &available[..end.unwrap_or(available.len())];
        match is_too_long || line.len() + piece.len() > MAX_LINE {
            true => (line, is_too_long) = (Vec::new(), true),
            false => line.extend_from_slice(piece),
        }
        let used = end.map_or(available.len(), |end| end + 1);
        input.consume(used);
        if !is_last {
            continue;
        }
        match is_too_long {
            true => return Some(ClientLine::TooLong),
            false if line.trim_ascii().is_empty() => line.clear(),
            false => {
                return Some(serde_json::from_slice(&line).map_or(ClientLine::Garbage, ClientLine::Message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_whatever_they_hold() {
        let long = "x".repeat(MAX_LINE + 1);
        let text = format!("\n{{\"a\":1}}\n  \nnot json\n{long}\n[1]\n7");
        let mut input = tokio::io::BufReader::new(text.as_bytes());
        let mut all = Vec::new();
        while let Some(message) = read_message(&mut input).await {
            all.push(message);
        }
        let message = ClientLine::Message;
        let expected = [
            message(json!({"a": 1})),
            ClientLine::Garbage,
            ClientLine::TooLong,
            message(json!([1])),
            message(json!(7)),
        ];
        assert_eq!(all, expected);
    }
}
