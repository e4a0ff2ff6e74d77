//! A request, a provider made of raw bytes, and ways to read a stream.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use model::protocol::ResponseItem;
use model::{Metadata, ModelFailure, ModelTransport, PreparedRequest, RequestBody, StreamEvent, ToolChoice};
use oarlock_model_http::{ClientOptions, HttpTransport, Provider};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub(crate) fn request(user: &str) -> PreparedRequest {
    prepared(vec![user_message(user)], Vec::new())
}

pub(crate) fn prepared(input: Vec<Value>, tools: Vec<Value>) -> PreparedRequest {
    let item = |value| Arc::new(serde_json::from_value::<ResponseItem>(value).unwrap());
    let body = RequestBody {
        model: "test-model".into(),
        instructions: "Be brief.".into(),
        input: input.into_iter().map(item).collect(),
        tools: tools.into_iter().map(Arc::new).collect(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: false,
        reasoning: None,
        store: false,
        stream: true,
        include: Vec::new(),
        service_tier: None,
        prompt_cache_key: "thread-1".into(),
        text: None,
    };
    let turn_state = Some("state-1".into());
    let metadata = Metadata { turn_state, ..Metadata::first("thread-1".into(), "turn-1".into()) };
    PreparedRequest { body: Arc::new(body), metadata }
}

pub(crate) fn user_message(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

/// The same request with another body.
pub(crate) fn with_body(request: PreparedRequest, change: impl FnOnce(&mut RequestBody)) -> PreparedRequest {
    let mut body = RequestBody::clone(&request.body);
    change(&mut body);
    PreparedRequest { body: Arc::new(body), ..request }
}

pub(crate) async fn events(
    transport: &dyn ModelTransport,
    request: PreparedRequest,
) -> Vec<Result<StreamEvent, ModelFailure>> {
    let all = transport.open(request).collect::<Vec<_>>();
    tokio::time::timeout(Duration::from_secs(20), all).await.expect("the stream ends")
}

/// One short line per event.
pub(crate) fn lines(events: &[Result<StreamEvent, ModelFailure>]) -> Vec<String> {
    let line = |event: &Result<StreamEvent, ModelFailure>| match event {
        Ok(StreamEvent::Opened(_)) => "opened".to_owned(),
        Ok(StreamEvent::TextDelta { delta }) => format!("delta {delta}"),
        Ok(StreamEvent::Completed { response_id, .. }) => format!("completed {response_id}"),
        Ok(StreamEvent::Failed(failure)) => format!("failed {:?}: {failure}", failure.class),
        Ok(other) => format!("{other:?}"),
        Err(failure) => format!("{:?}: {failure}", failure.class),
    };
    events.iter().map(line).collect()
}

/// The bytes to answer one request with, and the fate of its connection then.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) then: Then,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Then {
    Close,
    /// Waits for the client to close.
    Hold,
    /// Reads the next request.
    KeepAlive,
}

impl Answer {
    pub(crate) fn raw(text: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![text.into()], then: Then::Close }
    }

    pub(crate) fn status(status: u16, body: &str) -> Self {
        let length = body.len();
        Self::raw(format!(
            "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ))
    }

    /// A stream that ends with the connection.
    pub(crate) fn stream(events: &[Value]) -> Self {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        Self::raw(format!("{STREAM_HEAD}{body}"))
    }

    pub(crate) fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }
}

pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

pub(crate) fn delta(text: &str) -> Value {
    json!({ "type": "response.output_text.delta", "delta": text })
}

pub(crate) fn completed() -> Value {
    json!({ "type": "response.completed", "response": { "id": "resp_1" } })
}

/// A provider that answers request after request with the given bytes; a request beyond them is not answered.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    requests: Vec<Recorded>,
    connections: usize,
    closed_by_client: usize,
    is_done: bool,
}

#[derive(Clone)]
pub(crate) struct Recorded {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Log::default()));
        let task = tokio::spawn(run(listener, answers, Arc::clone(&log)));
        Self { address, log, task }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn provider(&self) -> Provider {
        let mut provider = Provider::new("test", self.base_url());
        provider.request_max_retries = 2;
        provider
    }

    pub(crate) fn transport(&self) -> HttpTransport {
        transport(&self.provider())
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.log.lock().unwrap().requests.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// Whether an answer was written to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.log.lock().unwrap().is_done
    }

    /// Waits until a client has closed a connection that was held.
    pub(crate) async fn client_closed(&self) {
        while self.log.lock().unwrap().closed_by_client == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

pub(crate) fn transport(provider: &Provider) -> HttpTransport {
    let options = ClientOptions::new("oarlock_test", "oarlock_test/1.0 (test)");
    HttpTransport::new(provider, &options).unwrap()
}

async fn run(listener: TcpListener, answers: Vec<Answer>, log: Arc<Mutex<Log>>) {
    let mut answers = answers.into_iter();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        log.lock().unwrap().connections += 1;
        while let Some(request) = read_request(&mut stream).await {
            log.lock().unwrap().requests.push(request);
            let Some(answer) = answers.next() else { break };
            for piece in answer.pieces {
                if stream.write_all(&piece).await.is_err() {
                    break;
                }
                // Lets the client see the pieces one by one.
                tokio::task::yield_now().await;
            }
            log.lock().unwrap().is_done = true;
            match answer.then {
                Then::Close => break,
                Then::Hold => {
                    // Nothing more comes from the client, so this ends when it closes.
                    let _ = stream.read(&mut [0; 1]).await;
                    log.lock().unwrap().closed_by_client += 1;
                    break;
                }
                Then::KeepAlive => {}
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let request = Recorded { head, body: Vec::new() };
    let length: usize = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes[end..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Recorded { body, ..request })
}
