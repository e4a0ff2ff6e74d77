//! A model whose answers come event by event, when the test says so.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct PacedModel {
    pub(crate) port: u16,
    listener: TcpListener,
}

/// A request, and the way to answer it.
pub(crate) struct Asked {
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
    answer: TcpStream,
}

impl PacedModel {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self { port: listener.local_addr().expect("an address").port(), listener }
    }

    /// Waits for the next request.
    pub(crate) async fn next(&self) -> Asked {
        let (mut answer, _) = self.listener.accept().await.expect("a connection");
        let mut bytes = Vec::new();
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(answer.read_buf(&mut bytes).await.expect("readable") > 0, "the request broke off");
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
        while bytes.len() < end + length {
            assert!(answer.read_buf(&mut bytes).await.expect("readable") > 0, "the body broke off");
        }
        let answered = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        answer.write_all(answered.as_bytes()).await.expect("writable");
        Asked { head, body: serde_json::from_slice(&bytes[end..]).expect("JSON"), answer }
    }
}

impl Asked {
    pub(crate) async fn send(&mut self, event: Value) {
        let line = format!("data: {event}\n\n");
        self.answer.write_all(line.as_bytes()).await.expect("writable");
    }

    /// The beginning of a message.
    pub(crate) async fn begin(&mut self, text: &str) {
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
    pub(crate) async fn say(mut self, text: &str) {
        let content = json!([{"type": "output_text", "text": text}]);
        let item = json!({"type": "message", "id": "m1", "role": "assistant", "content": content});
        self.send(json!({"type": "response.output_item.done", "item": item})).await;
        self.complete().await;
    }

    /// Ends the answer with a call.
    pub(crate) async fn call(self, call_id: &str, name: &str, arguments: &Value) {
        self.call_all([(call_id.to_owned(), name, arguments.clone())]).await;
    }

    /// Ends the answer with several calls.
    pub(crate) async fn call_all(mut self, calls: impl IntoIterator<Item = (String, &str, Value)>) {
        for (call_id, name, arguments) in calls {
            let item = json!({
                "type": "function_call", "call_id": call_id, "name": name, "arguments": arguments.to_string(),
            });
            self.send(json!({"type": "response.output_item.done", "item": item})).await;
        }
        self.complete().await;
    }

    /// Ends the answer with an error that no second try mends.
    pub(crate) async fn fail(mut self, said: &str) {
        let error = json!({"code": "invalid_prompt", "message": said});
        self.send(json!({"type": "response.failed", "response": {"id": "r1", "error": error}})).await;
        self.answer.shutdown().await.expect("closed");
    }

    async fn complete(mut self) {
        self.send(json!({"type": "response.completed", "response": {"id": "r1", "usage": null}})).await;
        self.answer.shutdown().await.expect("closed");
    }

    /// The names of the tools that are offered.
    pub(crate) fn tools(&self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().or(tool["type"].as_str()).unwrap_or("?").to_owned();
        self.body["tools"].as_array().expect("tools").iter().map(name).collect()
    }

    /// All that is told of the surroundings.
    pub(crate) fn context(&self) -> Vec<String> {
        let items = self.body["input"].as_array().expect("input").iter();
        let parts = items.flat_map(|item| item["content"].as_array().into_iter().flatten());
        let texts = parts.filter_map(|part| part["text"].as_str());
        texts.filter(|text| text.starts_with("<environment_context>")).map(str::to_owned).collect()
    }

    /// What is told beyond what an earlier request of the thread told.
    pub(crate) fn told_after(&self, before: &[String]) -> String {
        let now = self.context();
        assert_eq!(now.get(..before.len()), Some(before), "what was said stays said");
        now[before.len()..].concat()
    }

    /// What a call gave, as the model reads it.
    pub(crate) fn output_of(&self, call_id: &str) -> String {
        let is_it = |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call_id;
        let mut found = self.body["input"].as_array().expect("input").iter().filter(is_it);
        let item = found.next().unwrap_or_else(|| panic!("no output of {call_id} in {}", self.body["input"]));
        assert!(found.next().is_none(), "{call_id} has two outputs");
        item["output"].as_str().map_or_else(|| item["output"].to_string(), str::to_owned)
    }

    /// What the last call gave.
    pub(crate) fn last_output(&self) -> String {
        let items = self.body["input"].as_array().expect("input").iter();
        let mut outputs = items.rev().filter(|item| item["type"] == "function_call_output");
        outputs.next().map_or_else(String::new, |item| item["output"].to_string())
    }
}
