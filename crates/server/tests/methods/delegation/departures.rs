//! Hosts over websockets that drop, and come back: the turn waits for them, and nothing runs twice.

use std::net::SocketAddr;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, TestServer, text, until};

use super::websocket::connect;
use super::{Host, added, call, completed, delta, done, full, prompt, whole};

const COMMAND: &str = "item/commandExecution/requestApproval";

fn offer() -> Value {
    let features = ["modelTransport", "operations", "suspend"];
    json!({"experimentalApi": true, "hostDelegation": {"versions": [1], "features": features}})
}

/// A server, and a host with a thread on it that comes by a websocket.
struct Scene {
    stage: Stage,
    server: TestServer,
    address: SocketAddr,
    host: Host,
    thread: String,
}

impl Scene {
    async fn new(policy: &str) -> Self {
        let stage = Stage::new(json!([])).await;
        let (server, address) = stage.listen_for_websockets().await;
        let mut client = connect(address, offer()).await;
        let thread = client.start_thread(free(&stage, policy)).await;
        Self { stage, server, address, host: Host { client, thread: thread.clone() }, thread }
    }
}

/// A delegated thread whose commands nothing holds but this policy.
fn free(stage: &Stage, policy: &str) -> Value {
    json!({
        "cwd": stage.cwd(), "model": "mock-model", "delegation": full(), "approvalPolicy": policy,
        "sandbox": "danger-full-access",
    })
}

/// Somebody who only looks on.
async fn watcher(address: SocketAddr, thread: &str) -> TestClient {
    let mut watcher = connect(address, json!({"experimentalApi": true})).await;
    watcher.ask("thread/resume", json!({"threadId": thread})).await;
    watcher
}

fn back(thread: &str) -> Value {
    json!({"threadId": thread, "delegation": full(), "resumeTurn": true})
}

async fn returned(address: SocketAddr, thread: &str) -> (Host, Value) {
    let mut client = connect(address, offer()).await;
    let opened = client.ask("thread/resume", back(thread)).await;
    (Host { client, thread: thread.to_owned() }, opened)
}

fn command(call_id: &str, cmd: &str) -> Value {
    call(call_id, "exec_command", &json!({"cmd": cmd}))
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.cwd().join("runs")).map_or(0, |text| text.lines().count())
}

async fn until_it_runs(stage: &Stage) {
    until("the command runs", || runs(stage) > 0).await;
}

#[tokio::test]
async fn in_the_middle_of_a_stream() {
    let Scene { stage: _stage, server, address, mut host, thread } = Scene::new("never").await;
    host.turn("hello", "hi").await;
    let mut watcher = watcher(address, &thread).await;
    let request = host.begin("more").await;
    host.push(&request, 0, json!([added("m1"), delta("half")])).await;
    watcher.next_of("item/agentMessage/delta").await;
    drop(host);
    let told = watcher.next_of("turn/suspended").await;
    assert_eq!((&told["turnId"], &told["pendingOperations"]), (&request["turnId"], &json!([])));
    // Nobody is there for another turn, which is said before it begins.
    let start = super::said(&thread, "anybody?");
    let refused = watcher.request("turn/start", start).await.expect_err("nobody carries it");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("hostGone")), "{refused:?}");

    let (mut host, opened) = returned(address, &thread).await;
    let turns = opened["thread"]["turns"].as_array().expect("turns");
    assert_eq!(turns.last().map(|turn| &turn["status"]), Some(&json!("inProgress")));
    assert_eq!(opened["pendingOperations"], json!([]));
    let again = host.accept().await;
    // The very same request, which a host that finished the stream by itself can answer from its own record.
    for same in ["turnId", "segmentId", "requestDigest"] {
        assert_eq!(again[same], request[same], "{same}");
    }
    host.push(&again, 0, whole("all of it")).await;
    let turn = host.ended().await;
    assert_eq!((&turn["id"], &turn["status"]), (&request["turnId"], &json!("completed")));
    let next = host.turn("and then?", "the end").await;
    let lines = prompt(&next);
    assert!(lines.contains(&"assistant: all of it".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("half") || line.contains("turn_aborted")), "{lines:?}");
    server.stop().await;
}

#[tokio::test]
async fn before_it_has_said_that_it_carries_the_request() {
    let Scene { stage: _stage, server, address, mut host, thread } = Scene::new("never").await;
    host.client.start_turn(&thread, "hello").await;
    host.client.next_of("model/request").await;
    drop(host);
    let (mut host, _) = returned(address, &thread).await;
    let request = host.accept().await;
    host.finish(&request, "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn a_thread_without_a_record_has_nothing_to_wait_with() {
    let stage = Stage::new(json!([])).await;
    let (server, address) = stage.listen_for_websockets().await;
    let mut client = connect(address, offer()).await;
    let params = json!({"cwd": stage.cwd(), "model": "mock-model", "delegation": full(), "ephemeral": true});
    let thread = client.start_thread(params).await;
    let mut watcher = connect(address, json!({"experimentalApi": true})).await;
    let mut host = Host { client, thread: thread.clone() };
    host.begin("hello").await;
    drop(host);
    let is_over =
        |params: &Value| params["threadId"] == json!(thread) && params["status"]["type"] == "systemError";
    watcher.wait_for("thread/status/changed", is_over).await;
    server.stop().await;
}

#[tokio::test]
async fn in_the_middle_of_an_approval() {
    let Scene { stage, server, address, mut host, thread } = Scene::new("untrusted").await;
    let request = host.begin("go").await;
    host.push(&request, 0, json!([done(command("c1", "echo x >> runs")), completed()])).await;
    let question = host.client.next_of(COMMAND).await;
    drop(host);

    let (mut host, opened) = returned(address, &thread).await;
    let operation = &question["params"]["operationId"];
    assert_eq!(&opened["pendingOperations"][0]["operationId"], operation, "{opened}");
    let again = host.client.next_of(COMMAND).await;
    assert_eq!(&again["params"]["operationId"], operation);
    assert_eq!(runs(&stage), 0);
    host.client.answer(&again, json!({"decision": "accept"})).await;
    let next = host.accept().await;
    assert_eq!(runs(&stage), 1);
    host.finish(&next, "done").await;
    server.stop().await;
}

#[tokio::test]
async fn somebody_else_decides_while_the_host_is_away() {
    let Scene { stage, server, address, mut host, thread } = Scene::new("untrusted").await;
    let request = host.begin("go").await;
    let mut watcher = watcher(address, &thread).await;
    host.push(&request, 0, json!([done(command("c1", "echo x >> runs")), completed()])).await;
    let question = watcher.next_of(COMMAND).await;
    drop(host);
    watcher.answer(&question, json!({"decision": "accept"})).await;
    // It runs to its end; then the model would be asked, and nobody is there to do it.
    watcher.next_of("turn/suspended").await;
    assert_eq!(runs(&stage), 1);

    let (mut host, opened) = returned(address, &thread).await;
    assert_eq!(opened["pendingOperations"], json!([]), "it has its end");
    let next = host.accept().await;
    let lines = prompt(&next);
    assert!(lines.iter().any(|line| line.contains("exited with code 0")), "{lines:?}");
    host.finish(&next, "done").await;
    assert_eq!(runs(&stage), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_command_that_runs_meanwhile_ends_by_itself_and_is_not_run_again() {
    let Scene { stage, server, address, mut host, thread } = Scene::new("never").await;
    let mut watching = watcher_of(&mut host, address).await;
    let request = host.begin("go").await;
    let waits = "echo x >> runs; while [ ! -e released ]; do sleep 0.02; done; echo released";
    // The stream is not at its end: the command began as soon as its call was whole.
    host.push(&request, 0, json!([done(command("c1", waits))])).await;
    until_it_runs(&stage).await;
    drop(host);
    std::fs::write(stage.cwd().join("released"), "").expect("written");
    watching.next_of("turn/suspended").await;

    let (mut host, opened) = returned(address, &thread).await;
    assert_eq!(opened["pendingOperations"], json!([]));
    let next = host.accept().await;
    let lines = prompt(&next);
    assert!(lines.iter().any(|line| line.contains("exited with code 0")), "{lines:?}");
    host.finish(&next, "done").await;
    assert_eq!(runs(&stage), 1);
    server.stop().await;
}

/// A thread without a record cannot be joined, so one turn goes first.
async fn watcher_of(host: &mut Host, address: SocketAddr) -> TestClient {
    host.turn("hello", "hi").await;
    watcher(address, &host.thread).await
}

#[tokio::test]
async fn a_server_that_stops_leaves_the_turn_to_the_next_one() {
    let waits = "echo x >> runs; sleep 60";
    for (events, is_killed) in [
        (json!([added("m1"), delta("half")]), false),
        (json!([done(command("c1", waits)), completed()]), true),
    ] {
        let stage = Stage::new(json!([])).await;
        let (server, mut client) = stage.open_raw(None);
        client.initialize(offer()).await;
        let thread = client.start_thread(free(&stage, "never")).await;
        let mut host = Host { client, thread: thread.clone() };
        let request = host.begin("go").await;
        host.push(&request, 0, events).await;
        if is_killed {
            until_it_runs(&stage).await;
        }
        server.stop().await;

        let (server, mut client) = stage.open_raw(None);
        client.initialize(offer()).await;
        let opened = client.ask("thread/resume", back(&thread)).await;
        assert_eq!(opened["pendingOperations"], json!([]), "{opened}");
        let mut host = Host { client, thread: thread.clone() };
        let next = host.accept().await;
        let told = prompt(&next).join("\n");
        assert_eq!(
            told.contains("stopped because the program that ran it was shut down"),
            is_killed,
            "{told}"
        );
        assert!(!told.contains("by user") && !told.contains("turn_aborted"), "{told}");
        host.push(&next, 0, whole("done")).await;
        let turn = host.ended().await;
        assert_eq!((&turn["id"], &turn["status"]), (&request["turnId"], &json!("completed")));
        assert_eq!(runs(&stage), usize::from(is_killed));
        server.stop().await;
    }
}

#[tokio::test]
async fn a_turn_that_nobody_takes_up_is_over_when_the_next_begins() {
    let Scene { stage: _stage, server, address, mut host, thread } = Scene::new("untrusted").await;
    let request = host.begin("first").await;
    host.push(&request, 0, json!([added("m1"), delta("half")])).await;
    drop(host);
    let mut client = connect(address, offer()).await;
    client.ask("thread/resume", json!({"threadId": thread, "delegation": full()})).await;
    let mut host = Host { client, thread: thread.clone() };
    let request = host.turn("second", "yes").await;
    let lines = prompt(&request);
    assert!(
        lines.contains(&"user: first".to_owned()) && lines.contains(&"user: second".to_owned()),
        "{lines:?}"
    );
    let read = host.client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let statuses: Vec<String> =
        read["thread"]["turns"].as_array().expect("turns").iter().map(|turn| text(&turn["status"])).collect();
    assert_eq!(statuses, ["interrupted", "completed"]);
    // Whoever asks for it now finds nothing to take up.
    host.client.ask("thread/resume", back(&thread)).await;
    assert!(!host.client.rest().await.iter().any(|method| method == "model/request"));
    server.stop().await;
}
