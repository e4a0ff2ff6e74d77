//! A model behind a loopback port that the test plays: each request waits until the test takes it, by order or by
//! thread, and is answered event by event.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::deadline::{WAIT_LIMIT, within};

/// Dropping it ends the server.
#[derive(Debug)]
pub struct ScriptedModel {
    port: u16,
    requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    /// Requests that were received and not taken.
    waiting: Vec<ReceivedRequest>,
    _serving: JoinSet<()>,
}

/// The same answer to every request.
#[derive(Debug)]
struct FixedAnswer {
    /// A line of the response's head, or nothing.
    header: String,
    /// The response of the first event.
    created: Value,
}

/// A request, and the connection for its answer.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// In lower case.
    pub head: String,
    pub body: Value,
    answer: TcpStream,
}

impl ScriptedModel {
    /// The test answers each request.
    pub async fn new() -> Self {
        Self::start(None).await
    }

    /// Answers every request with "hello" at once. `header` is a whole line, or empty; `created` is the response of the
    /// first event.
    pub async fn answering(header: &str, created: Value) -> Self {
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        Self::start(Some(FixedAnswer { header, created })).await
    }

    async fn start(fixed: Option<FixedAnswer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (received, requests) = mpsc::unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, fixed.map(Arc::new), received));
        Self { port, requests, waiting: Vec::new(), _serving: serving }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The oldest request.
    pub async fn next(&mut self) -> ReceivedRequest {
        self.take("a model request", |_| true).await
    }

    /// The oldest request of a thread.
    pub async fn of(&mut self, thread: &str) -> ReceivedRequest {
        self.take(&format!("a model request of {thread}"), |request| request.thread() == thread).await
    }

    /// The oldest matching request.
    pub async fn take(&mut self, what: &str, fits: impl Fn(&ReceivedRequest) -> bool) -> ReceivedRequest {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(at) = self.waiting.iter().position(&fits) {
                return self.waiting.remove(at);
            }
            match timeout_at(deadline, self.requests.recv()).await {
                Ok(next) => self.waiting.push(next.expect("it serves")),
                Err(_) => panic!("waited {WAIT_LIMIT:?} for {what}; others wait: {:?}", self.waiting()),
            }
        }
    }

    /// Threads with waiting requests. Complete only for requests that have certainly arrived.
    pub fn waiting(&self) -> Vec<&str> {
        self.waiting.iter().map(ReceivedRequest::thread).collect()
    }
}

async fn serve(
    listener: TcpListener,
    fixed: Option<Arc<FixedAnswer>>,
    received: mpsc::UnboundedSender<ReceivedRequest>,
) {
    // Ends its connections with itself.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (fixed, received) = (fixed.clone(), received.clone());
        connections.spawn(async move {
            // A client may close before its request is complete.
            let Some(mut request) = within("the rest of a model request", receive(stream)).await else {
                return;
            };
            let header = fixed.as_ref().map_or("", |fixed| &fixed.header);
            request.open(header).await;
            if let Some(fixed) = &fixed {
                request.answer_hello(&fixed.created).await;
            }
            let _ = received.send(request);
        });
    }
}

async fn receive(mut stream: TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&bytes[end..]).expect("JSON");
    Some(ReceivedRequest { head, body, answer: stream })
}

/// Answers.
impl ReceivedRequest {
    async fn open(&mut self, header: &str) {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{header}connection: close\r\n\r\n"
        );
        // The client may have gone.
        let _ = within("room for the head of an answer", self.answer.write_all(head.as_bytes())).await;
    }

    async fn answer_hello(&mut self, created: &Value) {
        let events = [
            json!({"type": "response.created", "response": created}),
            json!({"type": "response.output_item.done", "item": message("hello")}),
            json!({"type": "response.completed", "response": {"id": "r1", "usage": null}}),
        ];
        let text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        within("room for an answer", self.answer.write_all(text.as_bytes())).await.expect("writable");
        self.answer.shutdown().await.expect("closed");
    }

    pub async fn send(&mut self, event: Value) {
        let line = format!("data: {event}\n\n");
        within("room for an event", self.answer.write_all(line.as_bytes())).await.expect("writable");
    }

    /// Starts a message.
    pub async fn begin(&mut self, text: &str) {
        let item = json!({"type": "message", "id": "m1", "role": "assistant", "content": []});
        self.send(json!({"type": "response.created", "response": {"id": "r1"}})).await;
        self.send(json!({"type": "response.output_item.added", "output_index": 0, "item": item})).await;
        self.send(json!({
            "type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0,
            "delta": text,
        }))
        .await;
    }

    /// Ends the answer with a message.
    pub async fn say(mut self, text: &str) {
        self.send(json!({"type": "response.output_item.done", "item": message(text)})).await;
        self.complete().await;
    }

    /// Ends the answer with a call.
    pub async fn call(self, call_id: &str, name: &str, arguments: &Value) {
        self.call_all([(call_id.to_owned(), name, arguments.clone())]).await;
    }

    /// Ends the answer with several calls.
    pub async fn call_all(mut self, calls: impl IntoIterator<Item = (String, &str, Value)>) {
        for (call_id, name, arguments) in calls {
            let item = json!({
                "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments.to_string(),
            });
            self.send(json!({"type": "response.output_item.done", "item": item})).await;
        }
        self.complete().await;
    }

    /// Ends the answer with a permanent error.
    pub async fn fail(mut self, said: &str) {
        let error = json!({"code": "invalid_prompt", "message": said});
        self.send(json!({"type": "response.failed", "response": {"id": "r1", "error": error}})).await;
        self.answer.shutdown().await.expect("closed");
    }

    async fn complete(mut self) {
        self.send(json!({"type": "response.completed", "response": {"id": "r1", "usage": null}})).await;
        self.answer.shutdown().await.expect("closed");
    }
}

/// A request that the model got.
impl ReceivedRequest {
    /// The requesting thread.
    pub fn thread(&self) -> &str {
        self.body["prompt_cache_key"].as_str().expect("a thread")
    }

    /// A header, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn input(&self) -> std::slice::Iter<'_, Value> {
        self.body["input"].as_array().expect("input").iter()
    }

    /// The texts of the input, one per part, prefixed by the role.
    pub fn texts(&self) -> Vec<String> {
        let parts = self.input().flat_map(|item| {
            let role = item["role"].as_str().unwrap_or("-").to_owned();
            let parts = item["content"].as_array().into_iter().flatten();
            parts.filter_map(move |part| Some(format!("{role}: {}", part["text"].as_str()?)))
        });
        parts.collect()
    }

    /// How often the model was notified that an agent ended.
    pub fn news_of(&self, agent: &str) -> usize {
        let is_news = |text: &&String| text.contains("<subagent_notification>") && text.contains(agent);
        self.texts().iter().filter(is_news).count()
    }

    /// The names of the offered tools.
    pub fn tools(&self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().or(tool["type"].as_str()).unwrap_or("?").to_owned();
        self.body["tools"].as_array().expect("tools").iter().map(name).collect()
    }

    /// All context messages.
    pub fn context(&self) -> Vec<String> {
        let parts = self.input().flat_map(|item| item["content"].as_array().into_iter().flatten());
        let texts = parts.filter_map(|part| part["text"].as_str());
        texts.filter(|text| text.starts_with("<environment_context>")).map(str::to_owned).collect()
    }

    /// The part of the input that is not in an earlier request of the thread.
    pub fn told_after(&self, before: &[String]) -> String {
        let now = self.context();
        assert_eq!(now.get(..before.len()), Some(before), "what was said stays said");
        now[before.len()..].concat()
    }

    /// The output of a call, as the model gets it.
    pub fn output_of(&self, call_id: &str) -> String {
        let is_it = |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call_id;
        let mut found = self.input().filter(is_it);
        let item = found.next().unwrap_or_else(|| panic!("no output of {call_id} in {}", self.body["input"]));
        assert!(found.next().is_none(), "{call_id} has two outputs");
        item["output"].as_str().map_or_else(|| item["output"].to_string(), str::to_owned)
    }

    /// The output of the last call.
    pub fn last_output(&self) -> String {
        let mut outputs = self.input().rev().filter(|item| item["type"] == "function_call_output");
        outputs.next().map_or_else(String::new, |item| item["output"].to_string())
    }
}

fn message(text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    json!({"type": "message", "id": "m1", "role": "assistant", "content": content})
}
