//! Threads whose record the host keeps: nothing on this machine matters, and nothing happens before the host has it.

use std::collections::VecDeque;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, TestServer, within};

const FEATURES: [&str; 4] = ["modelTransport", "clientRollout", "operations", "suspend"];
const COMMAND: &str = "item/commandExecution/requestApproval";

/// A host: carries model requests from a script, keeps the record, and answers questions from a list.
struct Host {
    client: TestClient,
    /// Responses still to be given, each a list of items.
    responses: VecDeque<Vec<Value>>,
    record: Vec<Value>,
    epoch: u64,
    /// The events in the order the host saw them.
    seen: Vec<String>,
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str, cmd: &str) -> Value {
    let arguments = json!({"cmd": cmd}).to_string();
    json!({"type": "function_call", "id": "f", "name": "exec_command", "call_id": id, "arguments": arguments})
}

impl Host {
    async fn connect(
        stage: &Stage,
        responses: Vec<Vec<Value>>,
        record: Vec<Value>,
        epoch: u64,
    ) -> (TestServer, Self) {
        let (server, mut client) = stage.open_raw(None);
        let offer = json!({"versions": [1], "features": FEATURES});
        let answer = client.initialize(json!({"experimentalApi": true, "hostDelegation": offer})).await;
        assert_eq!(answer["capabilities"]["hostDelegation"]["version"], 1, "{answer}");
        let responses = responses.into();
        (server, Self { client, responses, record, epoch, seen: Vec::new() })
    }

    fn terms(&self) -> Value {
        let provider = json!({"id": "host-provider", "capabilities": {"wire": "responses"}});
        json!({"mode": "full", "version": 1, "hostEpoch": self.epoch, "provider": provider})
    }

    async fn start(&mut self, stage: &Stage, policy: &str) -> String {
        let params = json!({
            "cwd": stage.cwd(), "delegation": self.terms(), "rolloutOwnership": "client",
            "approvalPolicy": policy, "sandbox": "danger-full-access",
        });
        let opened = self.client.ask("thread/start", params).await;
        assert_eq!((&opened["rolloutOwnership"], &opened["rolloutOrdinal"]), (&json!("client"), &json!(0)));
        opened["thread"]["id"].as_str().expect("an id").to_owned()
    }

    async fn resume(&mut self, id: &str, policy: &str) -> Value {
        let params = json!({
            "threadId": id, "delegation": self.terms(), "rolloutOwnership": "client", "initialItems": self.record,
            "resumeTurn": true, "approvalPolicy": policy, "sandbox": "danger-full-access",
        });
        self.client.ask("thread/resume", params).await
    }

    /// Does its duties until something else comes, and gives that.
    async fn until(&mut self, method: &str) -> Value {
        let waiting = async {
            loop {
                let message = self.client.next().await;
                let params = &message["params"];
                let name = message["method"].as_str().unwrap_or_default();
                if name == method {
                    self.seen.push(name.to_owned());
                    return message;
                }
                match name {
                    "rollout/append" => {
                        let params = params.clone();
                        self.append(&message, &params).await;
                    }
                    "model/request" => {
                        let params = params.clone();
                        self.carry(&message, &params).await;
                    }
                    _ => {
                        let kind = params["item"]["type"].as_str().unwrap_or_default();
                        self.seen.push(format!("{name} {kind}").trim_end().to_owned());
                    }
                }
            }
        };
        within(method, waiting).await
    }

    async fn append(&mut self, message: &Value, params: &Value) {
        assert_eq!(params["hostEpoch"], self.epoch);
        assert_eq!(params["fromOrdinal"], json!(self.record.len()), "{params}");
        for item in params["items"].as_array().expect("items") {
            assert_eq!(item["ordinal"], json!(self.record.len()));
            let state = item["state"].as_str().unwrap_or_default();
            self.seen
                .push(format!("{} {state}", item["kind"].as_str().expect("a kind")).trim_end().to_owned());
            self.record.push(item.clone());
        }
        let next = self.record.len();
        self.client.answer(message, json!({"nextOrdinal": next})).await;
    }

    async fn carry(&mut self, message: &Value, params: &Value) {
        self.seen.push("model/request".to_owned());
        let accepted = json!({"disposition": "accepted", "provider": "p", "model": "m"});
        self.client.answer(message, accepted).await;
        let items = self.responses.pop_front().expect("a response");
        let mut events = vec![json!({"type": "response.created", "response": {"id": "r"}})];
        events
            .extend(items.into_iter().map(|item| json!({"type": "response.output_item.done", "item": item})));
        let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
        events.push(json!({"type": "response.completed", "response": {"id": "r", "usage": usage}}));
        let batch = json!({
            "threadId": params["threadId"], "modelRequestId": params["modelRequestId"], "seq": 0, "events": events,
        });
        self.client.send("model/streamEvent", batch).await;
    }

    fn position(&self, what: &str) -> usize {
        let found = self.seen.iter().position(|seen| seen == what);
        found.unwrap_or_else(|| panic!("{what} is not in {:?}", self.seen))
    }
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.cwd().join("runs")).map_or(0, |text| text.lines().count())
}

fn turn(id: &str, text: &str) -> Value {
    json!({"threadId": id, "input": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn every_effect_comes_after_its_record() {
    let stage = Stage::new(json!([])).await;
    let responses = vec![vec![call("call-1", "echo x >> runs")], vec![message("done")]];
    let (_server, mut host) = Host::connect(&stage, responses, Vec::new(), 1).await;
    let id = host.start(&stage, "never").await;
    host.client.send("turn/start", turn(&id, "go")).await;
    let done = host.until("turn/completed").await;
    assert_eq!(done["params"]["turn"]["status"], "completed", "{done}");
    assert_eq!(runs(&stage), 1);
    assert_eq!(host.position("sessionMeta"), host.position("turnStarted") - 1);
    assert!(host.position("turnStarted") < host.position("turn/started"));
    assert!(host.position("operation proposed") < host.position("operation started"));
    assert!(host.position("operation started") < host.position("item/started commandExecution"));
    let last_request = host.seen.iter().rposition(|seen| seen == "model/request").expect("two requests");
    assert!(host.position("operation finished") < last_request);
    assert!(host.position("turnEnded") < host.position("turn/completed"));
    // Nothing of it is on this machine.
    let listed = host.client.ask("thread/list", json!({})).await;
    assert_eq!(listed["data"], json!([]));
}

#[tokio::test]
async fn a_pending_decision_survives_both_processes_and_the_home() {
    let stage = Stage::new(json!([])).await;
    let responses = vec![vec![call("call-1", "echo x >> runs")]];
    let (server, mut host) = Host::connect(&stage, responses, Vec::new(), 1).await;
    let id = host.start(&stage, "untrusted").await;
    host.client.send("turn/start", turn(&id, "go")).await;
    let question = host.until(COMMAND).await;
    let operation = question["params"]["operationId"].clone();
    assert!(operation.is_string(), "{question}");
    server.kill().await;
    let record = host.record.clone();
    std::fs::remove_dir_all(stage.home()).expect("removed");
    std::fs::create_dir_all(stage.home()).expect("made");

    let (_server, mut host) = Host::connect(&stage, vec![vec![message("done")]], record, 2).await;
    let opened = host.resume(&id, "untrusted").await;
    assert_eq!(
        (&opened["fidelity"], &opened["rolloutOrdinal"]),
        (&json!("exact"), &json!(host.record.len()))
    );
    assert_eq!(opened["pendingOperations"][0]["operationId"], operation);
    let question = host.until(COMMAND).await;
    assert_eq!(question["params"]["operationId"], operation);
    assert_eq!(runs(&stage), 0);
    host.client.answer(&question, json!({"decision": "accept"})).await;
    let done = host.until("turn/completed").await;
    assert_eq!(done["params"]["turn"]["status"], "completed", "{done}");
    assert_eq!(runs(&stage), 1);
    let decided = host.record.iter().filter(|item| item["state"] == "proposed").count();
    assert_eq!(decided, 1, "proposed once, however often it was asked");
}

#[tokio::test]
async fn a_fenced_runtime_starts_nothing() {
    let stage = Stage::new(json!([])).await;
    let responses = vec![vec![call("call-1", "echo x >> runs")]];
    let (_server, mut host) = Host::connect(&stage, responses, Vec::new(), 1).await;
    let id = host.start(&stage, "never").await;
    host.client.send("turn/start", turn(&id, "go")).await;
    // Everything is taken up to the record of the effect.
    loop {
        let message = host.client.next().await;
        match message["method"].as_str() {
            Some("rollout/append")
                if message["params"]["items"].to_string().contains("\"state\":\"started\"") =>
            {
                let data = json!({"code": "fenced"});
                let refused = json!({"code": -32602, "message": "another has it", "data": data});
                host.client.send_line(&json!({"id": message["id"], "error": refused}).to_string()).await;
                break;
            }
            Some("rollout/append") => {
                let params = message["params"].clone();
                host.append(&message, &params).await;
            }
            Some("model/request") => {
                let params = message["params"].clone();
                host.carry(&message, &params).await;
            }
            _ => {}
        }
    }
    let done = host.client.next_of("turn/completed").await;
    assert_eq!(done["turn"]["status"], "failed", "{done}");
    assert_eq!(runs(&stage), 0);
    let refused = host.client.request("turn/start", turn(&id, "again")).await.expect_err("refused");
    assert!(refused.message.contains("fenced"), "{refused:?}");
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_a_thread_exists() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut host) = Host::connect(&stage, Vec::new(), Vec::new(), 1).await;
    let id = "0199e0a0-0000-7000-8000-000000000001";
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let orphan = json!([{"ordinal": 0, "kind": "responseItem", "turnId": null, "item": output}]);
    let digest = json!({"parts": 1, "digest": "sha256:0"});
    for (fields, code, names) in [
        (json!({"initialItems": orphan}), "orphanOutput", "initialItems[0]"),
        (json!({"initialItems": [], "turnHistory": []}), "invalidHistory", "initialItems"),
        (json!({"initialItemsRef": digest}), "missingPart", "initialItemsRef"),
        (json!({}), "delegationUnsupported", "initialItems"),
    ] {
        let mut params = json!({"threadId": id, "delegation": host.terms(), "rolloutOwnership": "client"});
        let all = params.as_object_mut().expect("an object");
        all.extend(fields.as_object().expect("fields").clone());
        let refused = host.client.request("thread/resume", params).await.expect_err("refused");
        assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!(code)), "{refused:?}");
        assert!(refused.message.contains(names), "{}", refused.message);
    }
    assert_eq!(host.client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
}

#[tokio::test]
async fn a_copy_begins_with_the_record_that_the_host_brings() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::connect(&stage, vec![vec![message("hello")]], Vec::new(), 1).await;
    let id = host.start(&stage, "never").await;
    host.client.send("turn/start", turn(&id, "hi")).await;
    host.until("turn/completed").await;
    server.kill().await;

    // No file of this machine knows the thread. The copy is the host's to keep, from its first record on.
    let record = std::mem::take(&mut host.record);
    let (_server, mut host) = Host::connect(&stage, vec![vec![message("again")]], Vec::new(), 2).await;
    let mut params = json!({
        "threadId": id, "delegation": host.terms(), "rolloutOwnership": "client", "initialItems": record,
        "approvalPolicy": "never", "sandbox": "danger-full-access",
    });
    let opened = host.client.ask("thread/fork", params.clone()).await;
    assert_eq!(opened["thread"]["forkedFromId"], json!(id), "{opened}");
    assert_eq!(
        (&opened["fidelity"], &opened["itemsDigest"], &opened["rolloutOwnership"], &opened["rolloutOrdinal"]),
        (&json!("exact"), &json!(digest(&record)), &json!("client"), &json!(0)),
    );
    assert_eq!(opened["thread"]["turns"][0]["status"], "completed", "{opened}");
    let copy = opened["thread"]["id"].as_str().expect("an id").to_owned();
    assert_ne!(copy, id);
    host.client.send("turn/start", turn(&copy, "and now")).await;
    host.until("turn/completed").await;
    assert_eq!(
        (&host.record[0]["kind"], &host.record[0]["meta"]["threadId"]),
        (&json!("sessionMeta"), &json!(copy))
    );
    let said: Vec<&Value> = host.record.iter().map(|item| &item["item"]["content"][0]["text"]).collect();
    assert!(
        said.contains(&&json!("hi")) && said.contains(&&json!("hello")) && said.contains(&&json!("again"))
    );
    let written = std::fs::read_dir(stage.home().join("threads")).map_or(0, Iterator::count);
    assert_eq!(written, 0, "nothing is written here");

    for field in ["resumeTurn", "resolvedOperations"] {
        params[field] = if field == "resumeTurn" { json!(true) } else { json!([]) };
        let refused = host.client.request("thread/fork", params.clone()).await.expect_err("refused");
        assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("delegationUnsupported")));
        assert!(refused.message.starts_with(&format!("{field} is for thread/resume")), "{}", refused.message);
        params.as_object_mut().expect("an object").remove(field);
    }
    params["initialItems"][0]["meta"]["threadId"] = json!("0199e0a0-0000-7000-8000-000000000001");
    let refused = host.client.request("thread/fork", params).await.expect_err("of another thread");
    assert_eq!(refused.data["code"], "invalidHistory", "{refused:?}");
}

#[tokio::test]
async fn a_history_comes_in_parts_or_from_what_clients_saw() {
    let stage = Stage::new(json!([])).await;
    let responses = vec![vec![message("hello")]];
    let (server, mut host) = Host::connect(&stage, responses, Vec::new(), 1).await;
    let id = host.start(&stage, "never").await;
    host.client.send("turn/start", turn(&id, "hi")).await;
    host.until("turn/completed").await;
    let read = host.client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turns = read["thread"]["turns"].clone();
    assert_eq!(turns[0]["status"], "completed", "{read}");
    server.kill().await;

    let record = host.record.clone();
    let (server, mut host) = Host::connect(&stage, vec![vec![message("again")]], record.clone(), 2).await;
    let (first, second) = record.split_at(record.len() / 2);
    for (part, items) in [(0, first), (1, second)] {
        let answer =
            host.client.ask("rollout/load", json!({"threadId": id, "part": part, "items": items})).await;
        assert_eq!(answer["received"], part + 1);
    }
    let announced = json!({"parts": 2, "digest": digest(&record)});
    let params = json!({
        "threadId": id, "delegation": host.terms(), "rolloutOwnership": "client", "initialItemsRef": announced,
    });
    let opened = host.client.ask("thread/resume", params).await;
    assert_eq!(opened["thread"]["turns"][0]["id"], turns[0]["id"], "{opened}");
    host.client.send("turn/start", turn(&id, "and now")).await;
    host.until("turn/completed").await;
    server.kill().await;

    let (_server, mut host) = Host::connect(&stage, vec![vec![message("third")]], Vec::new(), 3).await;
    let params = json!({
        "threadId": id, "delegation": host.terms(), "rolloutOwnership": "client", "turnHistory": turns,
    });
    let opened = host.client.ask("thread/resume", params).await;
    assert_eq!((&opened["fidelity"], &opened["rebuilt"][0]), (&json!("lossy"), &json!("context")));
    host.client.send("turn/start", turn(&id, "go on")).await;
    host.until("turn/completed").await;
    // The host has all of it now, what was made up included.
    assert_eq!(host.record[0]["kind"], "sessionMeta");
    assert!(host.record.iter().any(|item| item["item"]["content"][0]["text"] == "hi"));
}

/// Over the canonical JSON of all items.
fn digest(record: &[Value]) -> String {
    let mut sorted = json!(record);
    sorted.sort_all_objects();
    let bytes = ring::digest::digest(&ring::digest::SHA256, sorted.to_string().as_bytes());
    format!("sha256:{}", data_encoding::HEXLOWER.encode(bytes.as_ref()))
}

#[tokio::test]
async fn a_home_in_which_nothing_can_be_stored_does_not_matter() {
    let stage = Stage::new(json!([])).await;
    // As on a read-only disk, also for root.
    std::fs::write(stage.home().join("threads"), "in the way").expect("a file");
    let (_server, mut host) = Host::connect(&stage, vec![vec![message("done")]], Vec::new(), 1).await;
    let id = host.start(&stage, "never").await;
    host.client.send("turn/start", testkit::turn(&id, "go")).await;
    host.until("turn/completed").await;
    assert!(!host.record.is_empty());
    // A thread that has its record here says why it cannot be started.
    let refused = host.client.request("thread/start", json!({"cwd": stage.cwd()})).await;
    let refused = refused.expect_err("nothing can be stored");
    assert!(refused.message.contains("threads"), "{}", refused.message);
}
