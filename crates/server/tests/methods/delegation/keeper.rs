//! Hosts that keep the record and drop in the middle of an append: what they never had did not begin, what happened
//! meanwhile is theirs when they come back.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, within};

use super::websocket::connect;
use super::{call, completed, done, full, message, said};

const COMMAND: &str = "item/commandExecution/requestApproval";

/// Keeps the record and carries the requests of one thread.
struct Keeper {
    client: TestClient,
    record: Vec<Value>,
    epoch: u64,
    thread: String,
    /// The command that the model asks for.
    cmd: &'static str,
    /// The answer to the question about it.
    decision: Value,
}

/// The outcome of an append at which the host drops.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lost {
    BeforeIt,
    AfterItIsKept,
}

fn terms(epoch: u64) -> Value {
    let mut terms = full();
    terms["hostEpoch"] = json!(epoch);
    terms
}

fn offer() -> Value {
    let features = ["modelTransport", "clientRollout", "operations", "suspend"];
    json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": features}})
}

impl Keeper {
    async fn start(stage: &Stage, address: SocketAddr) -> Self {
        let mut client = connect(address, offer()).await;
        let params = json!({
            "cwd": stage.cwd(), "model": "mock-model", "delegation": terms(1), "rolloutOwnership": "client",
            "approvalPolicy": "untrusted", "sandbox": "danger-full-access",
        });
        let thread = client.start_thread(params).await;
        let (cmd, decision) = ("echo x >> runs", json!("accept"));
        Self { client, record: Vec::new(), epoch: 1, thread, cmd, decision }
    }

    /// The connection is gone; the record is not.
    async fn again(self, address: SocketAddr) -> (Self, Value) {
        let Self { client, record, epoch, thread, .. } = self;
        drop(client);
        Self::returned(address, record, epoch, thread).await
    }

    async fn returned(address: SocketAddr, record: Vec<Value>, epoch: u64, thread: String) -> (Self, Value) {
        let (mut client, epoch) = (connect(address, offer()).await, epoch + 1);
        let params = json!({
            "threadId": thread, "delegation": terms(epoch), "rolloutOwnership": "client", "resumeTurn": true,
            "initialItems": record,
        });
        let opened = client.ask("thread/resume", params).await;
        let (cmd, decision) = ("echo x >> runs", json!("accept"));
        (Self { client, record, epoch, thread, cmd, decision }, opened)
    }

    fn keep(&mut self, params: &Value) {
        assert_eq!(
            (&params["hostEpoch"], &params["fromOrdinal"]),
            (&json!(self.epoch), &json!(self.record.len()))
        );
        self.record.extend(params["items"].as_array().expect("items").iter().cloned());
    }

    /// Does its duties until a message of this method, or an append that fits.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let message = self.client.next().await;
                if wanted(&message) {
                    return message;
                }
                match message["method"].as_str() {
                    Some("rollout/append") => {
                        self.keep(&message["params"]);
                        let next = self.record.len();
                        self.client.answer(&message, json!({"nextOrdinal": next})).await;
                    }
                    Some("model/request") => self.carry(&message).await,
                    Some(COMMAND) => {
                        let answer = json!({"decision": self.decision});
                        self.client.answer(&message, answer).await;
                    }
                    _ => {}
                }
            }
        };
        within("a message that the test waits for", waiting).await
    }

    async fn carry(&mut self, asked: &Value) {
        let accepted = json!({"disposition": "accepted", "provider": "p", "model": "m"});
        self.client.answer(asked, accepted).await;
        let params = &asked["params"];
        let is_second = params["body"]["input"].to_string().contains("function_call_output");
        let item = match is_second {
            true => message("m1", "done"),
            false => call("c1", "exec_command", &json!({"cmd": self.cmd})),
        };
        let batch = json!({
            "threadId": self.thread, "modelRequestId": params["modelRequestId"], "seq": 0,
            "events": [done(item), completed()],
        });
        self.client.send("model/streamEvent", batch).await;
    }

    /// A turn up to an append with a record of this kind, at which the connection drops.
    async fn drops_at(&mut self, kind: &str, lost: Lost) {
        let params = said(&self.thread, "go");
        self.client.send("turn/start", params).await;
        let append = self.until(|message| appends(message, kind)).await;
        if lost == Lost::AfterItIsKept {
            self.keep(&append["params"]);
        }
    }

    async fn ends(&mut self) -> Value {
        self.until(|message| message["method"] == "turn/completed").await["params"]["turn"].clone()
    }

    fn count(&self, kind: &str) -> usize {
        self.record.iter().filter(|item| is(item, kind)).count()
    }
}

fn is(item: &Value, kind: &str) -> bool {
    item["kind"] == kind || item["state"] == kind
}

fn appends(message: &Value, kind: &str) -> bool {
    message["method"] == "rollout/append"
        && message["params"]["items"].as_array().is_some_and(|items| items.iter().any(|item| is(item, kind)))
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.cwd().join("runs")).map_or(0, |text| text.lines().count())
}

/// The host drops at the first append of this kind and comes back. Gives how often the command ran, and what the record
/// says of it in the end.
async fn dropped_at(kind: &str, lost: Lost) -> (usize, String) {
    let stage = Stage::new(json!([])).await;
    let (server, address) = stage.listen_for_websockets().await;
    let mut keeper = Keeper::start(&stage, address).await;
    keeper.drops_at(kind, lost).await;
    let kept = keeper.record.clone();
    let (mut keeper, opened) = keeper.again(address).await;
    let label = format!("{kind} {lost:?}");
    assert_eq!(opened["thread"]["turns"][0]["status"], "inProgress", "{label}: {opened}");
    let turn = keeper.ends().await;
    assert_eq!(turn["status"], "completed", "{label}: {turn}");
    assert_eq!(keeper.record[..kept.len()], kept, "{label}");
    let ordinals: Vec<_> = keeper.record.iter().map(|item| item["ordinal"].clone()).collect();
    assert_eq!(ordinals, (0..keeper.record.len()).map(|at| json!(at)).collect::<Vec<_>>(), "{label}");
    assert_eq!(keeper.count("turnEnded"), 1, "{label}");
    let states: Vec<&str> = keeper.record.iter().filter_map(|item| item["state"].as_str()).collect();
    let states = states.join(" ");
    server.stop().await;
    (runs(&stage), states)
}

#[tokio::test]
async fn an_append_that_was_never_acknowledged() {
    use Lost::{AfterItIsKept, BeforeIt};
    let whole = "proposed decided started finished";
    let cases = [
        ("proposed", BeforeIt, 1, whole),
        ("proposed", AfterItIsKept, 1, whole),
        ("decided", BeforeIt, 1, whole),
        ("decided", AfterItIsKept, 1, whole),
        ("started", BeforeIt, 1, whole),
        // The host has it, so for all anybody knows it began.
        ("started", AfterItIsKept, 0, "proposed decided started unknown"),
        ("finished", BeforeIt, 1, whole),
        ("finished", AfterItIsKept, 1, whole),
        ("turnEnded", BeforeIt, 1, whole),
    ];
    let checks = cases.map(|(kind, lost, runs, states)| async move {
        assert_eq!(dropped_at(kind, lost).await, (runs, states.to_owned()), "{kind} {lost:?}");
    });
    futures_util::future::join_all(checks).await;
}

#[tokio::test]
async fn words_that_the_host_never_had_were_not_accepted() {
    let stage = Stage::new(json!([])).await;
    let (server, address) = stage.listen_for_websockets().await;
    let mut keeper = Keeper::start(&stage, address).await;
    keeper.client.send("turn/start", said(&keeper.thread.clone(), "go")).await;
    keeper.ends().await;
    let params = said(&keeper.thread, "lost");
    keeper.client.send("turn/start", params).await;
    keeper.until(|message| appends(message, "turnStarted")).await;
    let (mut keeper, opened) = keeper.again(address).await;
    assert_eq!(opened["thread"]["turns"].as_array().map(Vec::len), Some(1), "{opened}");
    let params = said(&keeper.thread, "again");
    keeper.client.send("turn/start", params).await;
    assert_eq!(keeper.ends().await["status"], "completed");
    let said = serde_json::to_string(&keeper.record).expect("JSON");
    assert!(said.contains("again") && !said.contains("lost"), "{said}");
    server.stop().await;
}

#[tokio::test]
async fn a_host_that_has_another_record_is_right() {
    let stage = Stage::new(json!([])).await;
    let (server, address) = stage.listen_for_websockets().await;
    let mut keeper = Keeper::start(&stage, address).await;
    keeper.drops_at("finished", Lost::BeforeIt).await;
    // Elsewhere somebody has gone on with the thread.
    let at = keeper.record.len();
    let turn =
        keeper.record.iter().find(|item| item["kind"] == "turnStarted").expect("a turn")["turnId"].clone();
    keeper.record.push(json!({
        "ordinal": at, "schema": 1, "kind": "turnEnded", "turnId": turn, "status": "interrupted", "error": null,
        "atMs": 5,
    }));
    let (mut keeper, opened) = keeper.again(address).await;
    assert_eq!(opened["thread"]["turns"][0]["status"], "interrupted", "{opened}");
    assert_eq!(opened["rolloutOrdinal"], json!(at + 1));
    let params = said(&keeper.thread, "next");
    keeper.client.send("turn/start", params).await;
    assert_eq!(keeper.ends().await["status"], "completed");
    assert_eq!(runs(&stage), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_host_that_is_back_before_anybody_noticed_that_it_was_gone() {
    for kind in ["started", "finished"] {
        let stage = Stage::new(json!([])).await;
        let (server, address) = stage.listen_for_websockets().await;
        let mut keeper = Keeper::start(&stage, address).await;
        keeper.drops_at(kind, Lost::BeforeIt).await;
        // The machine it ran on is gone, and its connection still looks open.
        let Keeper { client: dead, record, epoch, thread, .. } = keeper;
        let (mut keeper, _) = Keeper::returned(address, record, epoch, thread).await;
        assert_eq!(keeper.ends().await["status"], "completed", "{kind}");
        let found: Vec<&str> = keeper.record.iter().filter_map(|item| item["state"].as_str()).collect();
        assert_eq!(found, ["proposed", "decided", "started", "finished"], "{kind}");
        assert_eq!(runs(&stage), 1, "{kind}");
        drop(dead);
        server.stop().await;
    }
}

/// A host whose client agrees to a rule, and whose server is killed at the append of this kind, once the host has it. Gives
/// the host's record and the rules that were saved by then.
async fn killed_at(stage: &Stage, kind: &str) -> (Keeper, String) {
    let (server, address) = stage.listen_for_websockets().await;
    let mut keeper = Keeper::start(stage, address).await;
    keeper.cmd = "mkdir once";
    keeper.decision = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["mkdir", "once"]}});
    keeper.drops_at(kind, Lost::AfterItIsKept).await;
    let decided: Vec<&Value> = keeper.record.iter().filter(|item| is(item, "decided")).collect();
    assert_eq!(decided.len(), 1, "the decision is durable");
    assert_eq!(decided[0]["decision"]["execpolicyAmendment"], json!(["mkdir", "once"]), "{decided:?}");
    server.kill().await;
    assert!(!stage.cwd().join("once").exists(), "nothing has begun");
    (keeper, saved_rules(stage))
}

fn saved_rules(stage: &Stage) -> String {
    std::fs::read_to_string(stage.home().join("rules/default.rules")).unwrap_or_default()
}

const RULE: &str = "prefix_rule(pattern=[\"mkdir\", \"once\"], decision=\"allow\")\n";

/// The next process reads them from here: what would run is what was decided about.
const ASKS: &str = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";

/// The point at which the decision is all that is left of the client's answer.
#[tokio::test]
async fn a_rule_that_was_agreed_to_survives_a_kill_before_the_command_begins() {
    let stage = Stage::configured(json!([]), ASKS).await;
    let (keeper, saved) = killed_at(&stage, "decided").await;
    assert_eq!(saved, "", "the host has not acknowledged the decision");

    let Keeper { record, epoch, thread, .. } = keeper;
    let (server, address) = stage.listen_for_websockets().await;
    let (mut keeper, opened) = Keeper::returned(address, record, epoch, thread).await;
    assert_eq!(opened["pendingOperations"][0]["state"], "decided", "{opened}");
    assert_eq!(keeper.ends().await["status"], "completed");
    assert_eq!(saved_rules(&stage), RULE);
    let states: Vec<&str> = keeper.record.iter().filter_map(|item| item["state"].as_str()).collect();
    assert_eq!(states, ["proposed", "decided", "started", "finished"], "it was asked about and begun once");
    let said = keeper.record.iter().filter(|item| item["kind"] == "responseItem").map(Value::to_string);
    let said: Vec<String> = said.collect();
    assert!(said.iter().any(|item| item.contains("exited with code 0")), "it ran once: {said:?}");
    let told = said.iter().filter(|item| item.contains("mkdir") && item.contains("developer"));
    assert_eq!(told.count(), 1, "the model is told once: {said:?}");
    server.stop().await;
}

/// The command may have begun, so it is never run again, and nothing is left that could save the rule later.
#[tokio::test]
async fn a_rule_that_was_agreed_to_is_saved_before_the_command_begins() {
    let stage = Stage::configured(json!([]), ASKS).await;
    let (keeper, saved) = killed_at(&stage, "started").await;
    assert_eq!(saved, RULE, "the record says that it began, and the rule is there");

    let Keeper { record, epoch, thread, .. } = keeper;
    let (server, address) = stage.listen_for_websockets().await;
    let (mut keeper, _) = Keeper::returned(address, record, epoch, thread).await;
    assert_eq!(keeper.ends().await["status"], "completed");
    let states: Vec<&str> = keeper.record.iter().filter_map(|item| item["state"].as_str()).collect();
    assert_eq!(states, ["proposed", "decided", "started", "unknown"]);
    assert_eq!(saved_rules(&stage), RULE, "once");
    server.stop().await;
}
