//! A host at the other end of a pipe.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::RefusedRequest;
use crate::outgoing::Outgoing;
use crate::script::{Answer, Ending, Manners};

/// Time limit of a message. Long, because measurements use it too.
const HOST_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Counts of messages on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// `model/request`s, retries included.
    pub requests: usize,
    pub cancels: usize,
    pub notifications: usize,
    /// Refused batches.
    pub refusals: usize,
}

/// A host of one app-server: negotiates, carries its model requests by a script, and counts. Blocking on purpose: tests
/// and measurements are sequential.
pub struct ScriptedHost {
    /// How batches are sent from now on.
    pub manners: Manners,
    /// Params of every `model/request`, in order.
    pub requests: Vec<Value>,
    /// Notifications and requests not taken yet.
    pub heard: VecDeque<Value>,
    counts: Counts,
    script: VecDeque<Answer>,
    streams: Vec<Outgoing>,
    answers: VecDeque<Value>,
    next_id: u64,
    agreed: Value,
    output: Box<dyn Write + Send>,
    input: Receiver<String>,
    child: Option<Child>,
}

impl std::fmt::Debug for ScriptedHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedHost").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl ScriptedHost {
    /// Starts a server on its standard streams, and negotiates with it.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let (output, input) = pipes.ok_or_else(|| io::Error::other("the command has no pipes"))?;
        let mut host = Self::over(output, input);
        host.child = Some(child);
        Ok(host)
    }

    /// Negotiates with a running server.
    pub fn over(from: impl Read + Send + 'static, to: impl Write + Send + 'static) -> Self {
        // Bounded: a host that does not read slows the server down, like a real one.
        let (lines, input) = mpsc::sync_channel(1_024);
        thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                let Ok(line) = line else { return };
                if lines.send(line).is_err() {
                    return;
                }
            }
        });
        let mut host = Self {
            manners: Manners::default(),
            requests: Vec::new(),
            heard: VecDeque::new(),
            counts: Counts::default(),
            script: VecDeque::new(),
            streams: Vec::new(),
            answers: VecDeque::new(),
            next_id: 0,
            agreed: Value::Null,
            output: Box::new(to),
            input,
            child: None,
        };
        let features = ["modelTransport", "clientRollout", "operations", "subagents", "toolSet", "suspend"];
        let capabilities =
            json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": features}});
        let client = json!({"name": "scripted_host", "version": "1"});
        let told = host.ask("initialize", &json!({"clientInfo": client, "capabilities": capabilities}));
        host.agreed = told["capabilities"]["hostDelegation"].clone();
        assert!(host.agreed.is_object(), "the server delegates nothing: {told}");
        host
    }

    /// The features agreed in `initialize`.
    pub fn agreed(&self) -> &Value {
        &self.agreed
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The answers to the next model requests, one each. A request beyond the script fails the test.
    pub fn play(&mut self, answers: impl IntoIterator<Item = Answer>) {
        self.script.extend(answers);
    }

    /// Full delegation to a provider that supports everything.
    pub fn delegation() -> Value {
        json!({"mode": "full", "version": 1, "provider": {"id": "scripted", "capabilities": {
            "wire": "responses", "freeformTools": true, "hostedTools": ["web_search"], "reasoningReplay": "opaque",
        }}})
    }

    /// Starts a thread whose requests this host carries; returns its id. `params` may choose its own delegation.
    pub fn start_thread(&mut self, mut params: Value) -> String {
        if params.get("delegation").is_none() {
            params["delegation"] = Self::delegation();
        }
        let started = self.ask("thread/start", &params);
        started["thread"]["id"].as_str().expect("an id").to_owned()
    }

    /// A whole turn with all its model requests; returns it from `turn/completed`.
    pub fn turn(&mut self, thread: &str, said: &str) -> Value {
        let input = json!([{"type": "text", "text": said}]);
        self.ask("turn/start", &json!({"threadId": thread, "input": input}));
        self.wait_for("turn/completed", |params| params["threadId"] == thread)["turn"].clone()
    }

    /// A request that must succeed. Answers model requests meanwhile.
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let outcome = self.request(method, params);
        outcome.unwrap_or_else(|refused| panic!("{method} was refused: {refused:?}"))
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value, RefusedRequest> {
        let id = self.send(method, params);
        let deadline = Instant::now() + HOST_WAIT_LIMIT;
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                let mut answer = self.answers.remove(at).expect("it is there");
                return match answer.get_mut("error") {
                    None => Ok(answer["result"].take()),
                    Some(error) => Err(RefusedRequest {
                        code: error["code"].as_i64().unwrap_or(0),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error["data"].take(),
                    }),
                };
            }
            self.receive(&format!("the answer to {method}"), deadline);
        }
    }

    /// Sends a request without waiting; returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Answers a server request that is not in the script.
    pub fn answer(&mut self, question: &Value, result: &Value) {
        self.write(&json!({"id": question["id"], "result": result}).to_string());
    }

    /// The params of the next matching notification or request of this method; all of a request.
    pub fn wait_for(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + HOST_WAIT_LIMIT;
        loop {
            let fits = |message: &Value| message["method"] == method && fits(&message["params"]);
            if let Some(at) = self.heard.iter().position(fits) {
                let mut message = self.heard.remove(at).expect("it is there");
                return if message.get("id").is_some() { message } else { message["params"].take() };
            }
            self.receive(method, deadline);
        }
    }

    /// Handles one message of the server.
    fn receive(&mut self, wanted: &str, deadline: Instant) {
        let line = self.input.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        let line = line.unwrap_or_else(|error| {
            panic!("waited up to {HOST_WAIT_LIMIT:?} for {wanted}: {error}; {:?}", self.counts)
        });
        let message: Value = serde_json::from_str(&line).expect("JSON");
        match (message.get("id").and_then(Value::as_u64), message["method"].as_str()) {
            (Some(_), Some("model/request")) => self.carry(&message),
            (Some(_), Some("model/cancel")) => self.cancel(&message),
            (_, Some(_)) => {
                self.counts.notifications += usize::from(message.get("id").is_none());
                self.heard.push_back(message);
            }
            (Some(id), None) => {
                let is_batch = self.streams.iter_mut().any(|stream| stream.answered(id, &message));
                if is_batch {
                    self.counts.refusals += usize::from(message.get("error").is_some());
                    self.pump();
                } else {
                    self.answers.push_back(message);
                }
            }
            (None, None) => panic!("the server complains: {line}"),
        }
    }

    fn carry(&mut self, asked: &Value) {
        self.counts.requests += 1;
        let params = asked["params"].clone();
        let answer = self.script.pop_front().unwrap_or_else(|| panic!("no answer is left for {params}"));
        match &answer.ending {
            Ending::Silence => {}
            Ending::Reject(error) => self.answer(asked, &json!({"disposition": "rejected", "error": error})),
            Ending::Nothing | Ending::Abort { .. } => {
                self.answer(asked, &json!({"disposition": "accepted", "provider": "scripted", "model": "m"}));
                self.streams.push(Outgoing::new(&params, answer, self.manners));
                self.pump();
            }
        }
        self.requests.push(params);
    }

    /// Like a correct host: responds at once, and ends the stream.
    fn cancel(&mut self, asked: &Value) {
        self.counts.cancels += 1;
        let id = asked["params"]["modelRequestId"].clone();
        self.streams.iter_mut().filter(|stream| stream.is(&id)).for_each(Outgoing::cancel);
        self.answer(asked, &json!({"disposition": "canceled"}));
        let thread = &asked["params"]["threadId"];
        let params = json!({"threadId": thread, "modelRequestId": id, "seq": 0, "reason": "canceled"});
        self.send("model/streamAborted", &params);
    }

    fn pump(&mut self) {
        let mut lines = Vec::new();
        for stream in &mut self.streams {
            lines.append(&mut stream.lines(&mut self.next_id));
        }
        self.streams.retain(|stream| !stream.is_done());
        for line in lines {
            self.write(&line);
        }
    }

    fn write(&mut self, line: &str) {
        let sent = self.output.write_all(line.as_bytes()).and_then(|()| self.output.write_all(b"\n"));
        sent.and_then(|()| self.output.flush()).expect("the server reads");
    }

    /// Checks that every answer of the script was used. Ends the server, if this host started it.
    pub fn finish(mut self) {
        assert!(self.script.is_empty(), "{} answers are left", self.script.len());
        let Some(mut child) = self.child.take() else { return };
        self.output = Box::new(io::sink());
        let began = Instant::now();
        while began.elapsed() < HOST_WAIT_LIMIT {
            // Reads the rest of its output, so that it can end.
            match self.input.recv_timeout(Duration::from_millis(100)) {
                Ok(_) | Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = child.wait().expect("a child of ours");
                    assert!(status.success(), "the server ended with {status}");
                    return;
                }
            }
        }
        let _ = child.kill();
        panic!("the server does not end");
    }
}

impl Drop for ScriptedHost {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
