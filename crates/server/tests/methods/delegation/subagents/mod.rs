//! Child agents of threads whose requests a host carries: in this process, or at the host.

mod here;
mod placement;
mod restarts;
mod results;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use testkit::{RefusedRequest, Stage, TestClient, TestServer, text, within};

use super::{call, completed, done, full, message, said};

fn offer() -> Value {
    let features = ["modelTransport", "clientRollout", "operations", "subagents", "suspend", "toolSet"];
    json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": features}})
}

/// Begins what a parent is told of an agent.
const NEWS: &str = "<subagent_notification>";

/// Carries the requests of a thread and its children, and keeps their records if it is to.
struct Keeper {
    client: TestClient,
    thread: String,
    placement: &'static str,
    /// By thread; `None` where the server keeps them.
    records: Option<BTreeMap<String, Vec<Value>>>,
    epoch: u64,
    unread: VecDeque<Value>,
}

impl Keeper {
    async fn new(stage: &Stage, placement: &'static str, keeps: bool) -> (TestServer, Self) {
        Self::with(stage, placement, keeps, json!({})).await
    }

    /// With more of what a thread can be started with.
    async fn with(stage: &Stage, placement: &'static str, keeps: bool, more: Value) -> (TestServer, Self) {
        let (server, mut client) = stage.open_raw(None);
        client.initialize(offer()).await;
        (server, Self::start(client, stage, placement, keeps, more).await)
    }

    async fn start(
        mut client: TestClient,
        stage: &Stage,
        placement: &'static str,
        keeps: bool,
        more: Value,
    ) -> Self {
        let mut params =
            json!({"cwd": stage.cwd(), "model": "mock-model", "delegation": terms(placement, 1)});
        if keeps {
            params["rolloutOwnership"] = json!("client");
        }
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let opened = client.ask("thread/start", params).await;
        assert_eq!(opened["delegation"]["subagents"], json!(placement));
        let thread = text(&opened["thread"]["id"]);
        let records = keeps.then(BTreeMap::new);
        Self { client, thread, placement, records, epoch: 1, unread: VecDeque::new() }
    }

    /// The same thread in another process.
    async fn resume(&mut self, stage: &Stage) -> TestServer {
        let server = self.restart(stage).await;
        self.open(&self.thread.clone()).await;
        server
    }

    /// Another process, without any thread in it.
    async fn restart(&mut self, stage: &Stage) -> TestServer {
        let (server, mut client) = stage.open_raw(None);
        client.initialize(offer()).await;
        self.epoch += 1;
        self.unread.clear();
        self.client = client;
        server
    }

    /// The record that the host keeps of a thread has the news of an agent.
    async fn until_told(&mut self, thread: &str) {
        let is_told = |host: &Self| {
            let record = host.records.as_ref().and_then(|records| records.get(thread));
            record.is_some_and(|record| record.iter().any(|item| item.to_string().contains(NEWS)))
        };
        let waiting = async {
            while !is_told(self) {
                let message = self.client.next().await;
                self.take(message).await;
            }
        };
        within("the news of an agent in the record", waiting).await;
    }

    async fn open(&mut self, thread: &str) -> Value {
        let mut params = json!({"threadId": thread, "delegation": terms(self.placement, self.epoch)});
        if let Some(records) = &self.records {
            params["rolloutOwnership"] = json!("client");
            params["initialItems"] = json!(records[thread]);
        }
        self.ask("thread/resume", params).await.expect("it is there")
    }

    /// Keeps what it is given to keep, and puts the rest aside.
    async fn take(&mut self, message: Value) {
        if message["method"] != "rollout/append" {
            return self.unread.push_back(message);
        }
        let params = &message["params"];
        let records = self.records.as_mut().expect("a host that keeps records");
        let record = records.entry(text(&params["threadId"])).or_default();
        assert_eq!(
            (&params["fromOrdinal"], &params["hostEpoch"]),
            (&json!(record.len()), &json!(self.epoch))
        );
        record.extend(params["items"].as_array().expect("items").iter().cloned());
        let next = record.len();
        self.client.answer(&message, json!({"nextOrdinal": next})).await;
    }

    /// The next message of this method that fits, whole.
    async fn wait(&mut self, method: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let wanted = |message: &Value| message["method"] == method && fits(&message["params"]);
        let waiting = async {
            loop {
                if let Some(at) = self.unread.iter().position(&wanted) {
                    return self.unread.remove(at).expect("it is there");
                }
                let message = self.client.next().await;
                self.take(message).await;
            }
        };
        within(method, waiting).await
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, RefusedRequest> {
        let id = self.client.send(method, params).await;
        self.outcome(id).await
    }

    async fn outcome(&mut self, id: i64) -> Result<Value, RefusedRequest> {
        let waiting = async {
            loop {
                match self.client.outcome_or_next(id).await {
                    Ok(outcome) => return outcome,
                    Err(message) => self.take(message).await,
                }
            }
        };
        within("the outcome of a request", waiting).await
    }

    /// The next model request of a thread, accepted.
    async fn request(&mut self, thread: &str) -> Value {
        let asked = self.wait("model/request", |params| params["threadId"] == thread).await;
        self.client.answer(&asked, json!({"disposition": "accepted", "provider": "p", "model": "m"})).await;
        asked["params"].clone()
    }

    async fn root(&mut self) -> Value {
        self.request(&self.thread.clone()).await
    }

    /// Answers a model request with an item.
    async fn reply(&mut self, request: &Value, item: Value) {
        let batch = json!({
            "threadId": request["threadId"], "modelRequestId": request["modelRequestId"], "seq": 0,
            "events": [done(item), completed()],
        });
        self.ask("model/streamEvent", batch).await.expect("taken");
    }

    async fn says(&mut self, request: &Value, words: &str) {
        self.reply(request, message("m1", words)).await;
    }

    async fn calls(&mut self, request: &Value, id: &str, name: &str, arguments: Value) {
        self.reply(request, call(id, name, &arguments)).await;
    }

    /// A turn of the root up to its first request.
    async fn begin(&mut self, words: &str) -> Value {
        let params = said(&self.thread, words);
        self.ask("turn/start", params).await.expect("accepted");
        self.root().await
    }

    /// A turn that starts an agent, up to the question where it is to be.
    async fn spawns(&mut self, id: &str, arguments: Value) -> Value {
        let request = self.begin("go").await;
        self.calls(&request, id, "spawn_agent", arguments).await;
        self.wait("delegation/request", |_| true).await
    }

    /// An agent at the host, by the host's own name; gives the id of its delegation and the root's next request.
    async fn away(&mut self, id: &str, child_ref: &str) -> (Value, Value) {
        let asked = self.spawns(id, json!({"message": "look"})).await;
        self.client.answer(&asked, json!({"disposition": "host", "childRef": child_ref})).await;
        (asked["params"]["delegationId"].clone(), self.root().await)
    }

    async fn ends(&mut self, request: &Value, words: &str) -> Value {
        self.says(request, words).await;
        let thread = text(&request["threadId"]);
        let over = self.wait("turn/completed", |params| params["threadId"] == thread.as_str()).await;
        over["params"]["turn"].clone()
    }

    async fn result(&mut self, params: Value) -> Result<Value, RefusedRequest> {
        self.ask("delegation/result", params).await
    }

    /// The messages that are there without waiting.
    async fn has_heard(&mut self, method: &str) -> bool {
        self.ask("model/list", json!({"limit": 1})).await.expect("models");
        self.unread.iter().any(|message| message["method"] == method)
    }
}

fn terms(placement: &str, epoch: u64) -> Value {
    let mut terms = full();
    (terms["subagents"], terms["hostEpoch"]) = (json!(placement), json!(epoch));
    terms
}

/// A result with a word.
fn finished(delegation: &Value, status: &str, words: &str) -> Value {
    json!({"delegationId": delegation, "status": status, "output": [{"type": "inputText", "text": words}]})
}

/// The output of a call in a model request.
fn output(request: &Value, call_id: &str) -> String {
    let items = request["body"]["input"].as_array().expect("input");
    let is_it = |item: &&Value| item["type"] == "function_call_output" && item["call_id"] == call_id;
    let found: Vec<&Value> = items.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{call_id} in {items:?}");
    text(&found[0]["output"])
}

fn output_json(request: &Value, call_id: &str) -> Value {
    let output = output(request, call_id);
    serde_json::from_str(&output).unwrap_or_else(|_| panic!("JSON, not {output}"))
}

/// The ended agents that a model request reports.
fn news(request: &Value) -> Vec<String> {
    let lines = super::prompt(request).into_iter();
    lines.filter(|line| line.contains(NEWS)).collect()
}
