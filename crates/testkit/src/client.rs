//! A client that stores everything it receives, in order.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::{Instant, timeout_at};

use crate::deadline::{WAIT_LIMIT, within};
use crate::redact::Redactor;

/// An unused thread id.
pub const UNKNOWN_THREAD: &str = "019a8b3c-0000-7000-8000-000000000001";

pub struct TestClient {
    input: tokio::io::Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
    next_id: i64,
    /// The methods of requests by their ids.
    asked: BTreeMap<i64, String>,
    /// Responses not taken yet.
    answers: BTreeMap<i64, Value>,
    /// Notifications and server requests not taken yet.
    unread: VecDeque<Value>,
    /// Everything received, one word each.
    transcript: Vec<String>,
    /// The full lines of those words.
    lines: Vec<String>,
}

impl std::fmt::Debug for TestClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestClient").field("transcript", &self.transcript).finish_non_exhaustive()
    }
}

/// The error that refuses a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedRequest {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl TestClient {
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let input: Box<dyn AsyncRead + Send + Unpin> = Box::new(input);
        Self {
            input: BufReader::new(input).lines(),
            output: Box::new(output),
            next_id: 1,
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
            unread: VecDeque::new(),
            transcript: Vec::new(),
            lines: Vec::new(),
        }
    }

    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({"name": "methods_test", "version": "1"});
        self.ask("initialize", json!({"clientInfo": client, "capabilities": capabilities})).await
    }

    pub async fn send_line(&mut self, line: &str) {
        let sent = async {
            self.output.write_all(format!("{line}\n").as_bytes()).await?;
            self.output.flush().await
        };
        within("the server to read a line", sent).await.expect("the server reads");
    }

    /// Sends a request without waiting.
    pub async fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.asked.insert(id, method.to_owned());
        self.send_line(&json!({"id": id, "method": method, "params": params}).to_string()).await;
        id
    }

    /// Answers a server request.
    pub async fn answer(&mut self, question: &Value, result: Value) {
        self.send_line(&json!({"id": question["id"], "result": result}).to_string()).await;
    }

    pub async fn outcome(&mut self, id: i64) -> Result<Value, RefusedRequest> {
        let deadline = Instant::now() + WAIT_LIMIT;
        while !self.answers.contains_key(&id) {
            let what = format!("the answer to {} ({id})", self.asked[&id]);
            self.receive(&what, deadline).await;
        }
        let answer = self.answers.remove(&id).expect("it is there");
        match answer.get("error") {
            None => Ok(answer["result"].clone()),
            Some(error) => Err(RefusedRequest {
                code: error["code"].as_i64().expect("a code"),
                message: error["message"].as_str().expect("a message").to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// The outcome of a request, or an earlier message that must be answered first.
    pub async fn outcome_or_next(&mut self, id: i64) -> Result<Result<Value, RefusedRequest>, Value> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if self.answers.contains_key(&id) {
                return Ok(self.outcome(id).await);
            }
            if let Some(message) = self.unread.pop_front() {
                return Err(message);
            }
            self.receive("an answer or a message", deadline).await;
        }
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, RefusedRequest> {
        let id = self.send(method, params).await;
        self.outcome(id).await
    }

    /// A request that must succeed.
    pub async fn ask(&mut self, method: &str, params: Value) -> Value {
        let outcome = self.request(method, params).await;
        outcome.unwrap_or_else(|refused| panic!("{method} was refused: {refused:?}"))
    }

    /// A request that must fail as a bad request; returns the message.
    pub async fn refused(&mut self, method: &str, params: Value) -> String {
        match self.request(method, params).await {
            Ok(result) => panic!("{method} was not refused: {result}"),
            Err(RefusedRequest { code, message, data }) => {
                assert_eq!((code, data), (-32600, Value::Null), "{message}");
                message
            }
        }
    }

    /// Takes the first matching notification or server request of this method; returns all of a request, or the params
    /// of a notification.
    pub async fn wait_for(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let wanted = |message: &Value| message["method"] == method && fits(&message["params"]);
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            if let Some(at) = self.unread.iter().position(wanted) {
                let message = self.unread.remove(at).expect("it is there");
                return if message.get("id").is_some() { message } else { message["params"].clone() };
            }
            self.receive(method, deadline).await;
        }
    }

    pub async fn next_of(&mut self, method: &str) -> Value {
        self.wait_for(method, |_| true).await
    }

    /// The next notification or server request.
    pub async fn next(&mut self) -> Value {
        let deadline = Instant::now() + WAIT_LIMIT;
        while self.unread.is_empty() {
            self.receive("any message", deadline).await;
        }
        self.unread.pop_front().expect("it is there")
    }

    /// The next error without a request.
    pub async fn next_error(&mut self) -> Value {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            let is_error = |message: &Value| message.get("method").is_none();
            if let Some(at) = self.unread.iter().position(is_error) {
                return self.unread.remove(at).expect("it is there");
            }
            self.receive("an error", deadline).await;
        }
    }

    /// The next `item/completed` with an item of this type.
    pub async fn item(&mut self, kind: &str) -> Value {
        self.wait_for("item/completed", |params| params["item"]["type"] == kind).await["item"].clone()
    }

    pub async fn status(&mut self, thread: &str, kind: &str) -> Value {
        let fits = |params: &Value| params["threadId"] == thread && params["status"]["type"] == kind;
        self.wait_for("thread/status/changed", fits).await
    }

    /// All remaining messages, after a round trip that guarantees that earlier ones have arrived.
    pub async fn rest(&mut self) -> Vec<String> {
        self.ask("model/list", json!({"limit": 1})).await;
        self.unread.drain(..).map(|message| text(&message["method"])).collect()
    }

    /// Like [`TestClient::rest`], with whole messages.
    pub async fn rest_whole(&mut self) -> Vec<Value> {
        self.ask("model/list", json!({"limit": 1})).await;
        self.unread.drain(..).collect()
    }

    /// One word per message since the last call: `= m` is the response to m, `! m` its error, `? m` a server request.
    pub fn transcript(&mut self) -> Vec<String> {
        self.lines.clear();
        std::mem::take(&mut self.transcript)
    }

    /// Like [`TestClient::transcript`], with the contents, the same in each run. Leaves out rate limits, which come at
    /// any time.
    pub fn whole_transcript(&mut self, redactor: &mut Redactor) -> String {
        let lines = std::mem::take(&mut self.lines);
        let words = std::mem::take(&mut self.transcript);
        let mut text = String::new();
        for (word, line) in words.iter().zip(&lines).filter(|(word, _)| *word != "account/rateLimits/updated")
        {
            let message: Value = serde_json::from_str(line).expect("JSON");
            let said = ["params", "result", "error"].into_iter().find_map(|part| message.get(part));
            let mut said = said.cloned().unwrap_or_default();
            redactor.redact(&mut said);
            text.push_str(&format!("{word} {said:#}\n"));
        }
        text
    }

    pub async fn start_thread(&mut self, params: Value) -> String {
        text(&self.ask("thread/start", params).await["thread"]["id"])
    }

    /// Starts a turn with a text and returns its id.
    pub async fn start_turn(&mut self, thread: &str, said: &str) -> String {
        text(&self.ask("turn/start", turn(thread, said)).await["turn"]["id"])
    }

    /// A whole turn; returns it from `turn/completed`.
    pub async fn turn(&mut self, thread: &str, said: &str) -> Value {
        self.turn_with(turn(thread, said)).await
    }

    pub async fn turn_with(&mut self, params: Value) -> Value {
        let id = self.ask("turn/start", params).await["turn"]["id"].clone();
        self.wait_for("turn/completed", |params| params["turn"]["id"] == id).await["turn"].clone()
    }

    /// A thread with one turn, answered by one step of the script.
    pub async fn spoken_thread(&mut self, said: &str) -> String {
        let thread = self.start_thread(json!({})).await;
        let turn = self.turn(&thread, said).await;
        assert_eq!(turn["status"], "completed", "{turn}");
        thread
    }

    async fn receive(&mut self, wanted: &str, deadline: Instant) {
        let line = match timeout_at(deadline, self.input.next_line()).await {
            Ok(line) => line.ok().flatten(),
            Err(_) => panic!("waited {WAIT_LIMIT:?} for {wanted}; so far: {:#?}", self.transcript),
        };
        let Some(line) = line else {
            panic!("the server hung up before {wanted}; so far: {:#?}", self.transcript);
        };
        let message: Value = serde_json::from_str(&line).expect("JSON");
        self.lines.push(line);
        match (message["id"].as_i64(), message["method"].as_str()) {
            (Some(_), Some(method)) => self.transcript.push(format!("? {method}")),
            (None, Some(method)) => self.transcript.push(method.to_owned()),
            (Some(id), None) => {
                let method = self.asked.get(&id).expect("an answer to a request");
                let sign = if message.get("error").is_some() { '!' } else { '=' };
                self.transcript.push(format!("{sign} {method}"));
                self.answers.insert(id, message);
                return;
            }
            (None, None) => {
                assert!(message.get("error").is_some(), "no message at all: {message}");
                self.transcript.push("! nobody".to_owned());
            }
        }
        self.unread.push_back(message);
    }
}

/// The params of a turn with one text.
pub fn turn(thread: &str, said: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": said}]})
}

/// Like [`turn`], with one more field.
pub fn turn_plus(thread: &str, said: &str, field: &str, value: Value) -> Value {
    let mut params = turn(thread, said);
    params[field] = value;
    params
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("text, not {value}")).to_owned()
}

/// The types of the items of a turn.
pub fn kinds(turn: &Value) -> Vec<&str> {
    let items = turn["items"].as_array().expect("items");
    items.iter().map(|item| item["type"].as_str().expect("a type")).collect()
}

/// `status: first user text` of each turn.
pub fn told(thread: &Value) -> Vec<String> {
    let turns = thread["turns"].as_array().expect("turns").iter();
    let line = |turn: &Value| {
        let items = turn["items"].as_array().expect("items");
        let said = items.iter().find(|item| item["type"] == "userMessage");
        let said = said.map_or("-", |item| item["content"][0]["text"].as_str().unwrap_or("-"));
        format!("{}: {said}", turn["status"].as_str().unwrap_or("?"))
    };
    turns.map(line).collect()
}
