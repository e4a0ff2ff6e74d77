//! Full delegation over the wire: a host that carries model requests, well and badly.
#![allow(clippy::needless_pass_by_value, reason = "test code reads better without")]

mod decisions;
mod departures;
mod faults;
mod host_record;
mod hostile;
mod keeper;
mod negotiation;
mod sdk_delegation;
mod streams;
mod subagents;
mod tool_set;
mod websocket;

use serde_json::{Value, json};
use testkit::{PLANTED, Stage, TestClient, TestServer, text, turn};

/// The offer of a host that wants everything.
pub(crate) fn offer() -> Value {
    json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": ["modelTransport", "later"]}})
}

/// Full delegation to a provider that can do everything.
pub(crate) fn full() -> Value {
    json!({"mode": "full", "version": 1, "provider": {"id": "host-models", "capabilities": {
        "wire": "responses", "freeformTools": true, "hostedTools": ["web_search"], "reasoningReplay": "opaque",
    }}})
}

/// As [`full`], with options for its streams.
pub(crate) fn full_with(stream: Value) -> Value {
    let mut delegation = full();
    delegation["stream"] = stream;
    delegation
}

/// A client that carries the model requests of one thread.
pub(crate) struct Host {
    pub(crate) client: TestClient,
    pub(crate) thread: String,
}

impl Host {
    /// On a server of its own. Nothing on the stage's model is used: whoever asks it fails the test.
    pub(crate) async fn new(stage: &Stage, delegation: Value) -> (TestServer, Self) {
        let (server, mut client) = stage.open_raw(None);
        client.initialize(offer()).await;
        (server, Self::start(client, stage, delegation).await)
    }

    pub(crate) async fn start(mut client: TestClient, stage: &Stage, delegation: Value) -> Self {
        let params = json!({"cwd": stage.cwd(), "model": "mock-model", "delegation": delegation});
        let thread = client.start_thread(params).await;
        Self { client, thread }
    }

    /// The next `model/request`, accepted. Gives its params.
    pub(crate) async fn accept(&mut self) -> Value {
        let asked = self.client.next_of("model/request").await;
        assert_clean(&asked);
        self.client.answer(&asked, json!({"disposition": "accepted", "provider": "p", "model": "m"})).await;
        asked["params"].clone()
    }

    pub(crate) fn batch(&self, request: &Value, seq: u64, events: Value) -> Value {
        let id = &request["modelRequestId"];
        json!({"threadId": self.thread, "modelRequestId": id, "seq": seq, "events": events})
    }

    /// Sends a batch that must be taken.
    pub(crate) async fn push(&mut self, request: &Value, seq: u64, events: Value) -> Value {
        let batch = self.batch(request, seq, events);
        self.client.ask("model/streamEvent", batch).await
    }

    /// Sends a batch that must be refused; gives the code and all of the error's data.
    pub(crate) async fn refused(&mut self, request: &Value, seq: u64, events: Value) -> (i64, Value) {
        let batch = self.batch(request, seq, events);
        let refused = self.client.request("model/streamEvent", batch).await.expect_err("a refusal");
        (refused.code, refused.data)
    }

    pub(crate) async fn abort(&mut self, request: &Value, seq: u64, reason: &str, replay_safe: bool) {
        let id = &request["modelRequestId"];
        let params = json!({
            "threadId": self.thread, "modelRequestId": id, "seq": seq, "reason": reason, "replaySafe": replay_safe,
        });
        self.client.ask("model/streamAborted", params).await;
    }

    /// Starts a turn and accepts its first request.
    pub(crate) async fn begin(&mut self, said: &str) -> Value {
        self.client.start_turn(&self.thread, said).await;
        self.accept().await
    }

    /// The end of the turn that runs.
    pub(crate) async fn ended(&mut self) -> Value {
        self.client.next_of("turn/completed").await["turn"].clone()
    }

    /// A whole turn with one answer. Gives the request.
    pub(crate) async fn turn(&mut self, said: &str, answer: &str) -> Value {
        let request = self.begin(said).await;
        self.finish(&request, answer).await;
        request
    }

    /// Answers what the turn asked last, which is its end.
    pub(crate) async fn finish(&mut self, request: &Value, answer: &str) {
        self.push(request, 0, whole(answer)).await;
        assert_eq!(self.ended().await["status"], "completed");
    }
}

/// Whatever a test is about: no request carries a secret of the server's environment, a credential or its home.
pub(crate) fn assert_clean(request: &Value) {
    let text = request.to_string();
    for forbidden in [PLANTED, "SOME_API_KEY", "SOME_TOKEN", "Authorization", "auth.json"] {
        assert!(!text.contains(forbidden), "{forbidden} is in {text}");
    }
}

pub(crate) fn message(id: &str, said: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "content": [{"type": "output_text", "text": said}]})
}

pub(crate) fn delta(said: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "m1", "delta": said})
}

pub(crate) fn added(id: &str) -> Value {
    json!({"type": "response.output_item.added", "item": {"type": "message", "id": id, "role": "assistant", "content": []}})
}

pub(crate) fn done(item: Value) -> Value {
    json!({"type": "response.output_item.done", "item": item})
}

pub(crate) fn completed() -> Value {
    json!({"type": "response.completed", "response": {"id": "r1", "usage": {
        "input_tokens": 9, "output_tokens": 2, "total_tokens": 11}}})
}

/// All events of a response that says one thing.
pub(crate) fn whole(said: &str) -> Value {
    json!([
        {"type": "response.created", "response": {"id": "r1"}},
        added("m1"),
        delta(said),
        done(message("m1", said)),
        completed(),
    ])
}

pub(crate) fn call(call_id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": "f1", "call_id": call_id, "name": name, "arguments": arguments.to_string()})
}

/// The texts of a request's input by role or type.
pub(crate) fn prompt(request: &Value) -> Vec<String> {
    let items = request["body"]["input"].as_array().expect("input");
    let line = |item: &Value| match item["type"].as_str() {
        Some("message") => {
            let said: Vec<&str> = item["content"]
                .as_array()
                .expect("content")
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            format!("{}: {}", text(&item["role"]), said.join(" "))
        }
        Some(kind) => format!("{kind}: {}", item["output"].as_str().unwrap_or_default()),
        None => "?".to_owned(),
    };
    items.iter().map(line).collect()
}

pub(crate) fn said(thread: &str, words: &str) -> Value {
    turn(thread, words)
}
