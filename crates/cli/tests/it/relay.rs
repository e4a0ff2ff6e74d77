//! Several `oarlock host` on one Postgres that relay to each other: a client works at any of them, whoever has its task.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::PostgresServer;

use crate::host::{APPROVAL, HostClient, until};
use crate::host_access::{NetworkClient, free_port, tokens};
use crate::replicas::{Replica, job, let_go, postgres, runs};
use crate::support::Place;

const CALL: &str = "item/tool/call";
const SECRET: &str = "a secret that is long enough for everybody";

/// Every host of the place listens for the others on a port of its own.
pub(crate) fn configure(place: &Place) {
    let secret = place.file("peer-secret", SECRET);
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("changed");
    let table = format!("[host]\npeer_listen = \"127.0.0.1:0\"\npeer_secret = {secret:?}\n");
    std::fs::create_dir_all(place.home()).expect("made");
    std::fs::write(place.home().join("config.toml"), table).expect("written");
}

fn hosts<const N: usize>(place: &Place, server: &PostgresServer, names: [&str; N]) -> [Replica; N] {
    configure(place);
    names.map(|name| Replica::start(place, server, name))
}

pub(crate) fn resume(client: &mut HostClient, thread: &str) -> Value {
    client.ask("thread/resume", &json!({"threadId": thread}))
}

pub(crate) fn completed(client: &mut HostClient) {
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
}

#[test]
fn a_client_works_at_any_host_whichever_has_its_task() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let_go(&place, "job");
    let [first, second] = hosts(&place, &server, ["a", "b"]);
    let mut owner = first.client();
    let thread = owner.start_thread(&place, "untrusted");
    let mut client = second.client();
    assert_eq!(resume(&mut client, &thread)["thread"]["id"], *thread);
    let turn = client.turn(&thread, "run sh job.sh", "i1");
    assert_eq!(client.turn(&thread, "run sh job.sh", "i1")["id"], turn["id"], "the first answer again");

    // Both are asked, each under an id of the host it is connected to; the first answer counts and both hear of it.
    let asked = client.wait_for(APPROVAL);
    owner.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    let resolved = client.wait_for("serverRequest/resolved");
    assert_eq!(resolved["params"]["requestId"], asked["id"], "{resolved}");
    owner.wait_for("serverRequest/resolved");
    for client in [&mut client, &mut owner] {
        let mut done = client.wait_for("item/completed");
        while done["params"]["item"]["type"] != "commandExecution" {
            done = client.wait_for("item/completed");
        }
        assert_eq!(done["params"]["item"]["exitCode"], 0, "{done}");
        completed(client);
    }
    assert_eq!(runs(&place, "job"), 1);

    // The runtime answers what only it knows, and a refusal by the owner arrives as a refusal.
    client.ask("thread/compact/start", &json!({"threadId": thread}));
    completed(&mut client);
    let refused =
        client.try_ask("turn/steer", &json!({"threadId": thread, "expectedTurnId": "none", "input": []}));
    assert!(refused.is_err(), "{refused:?}");
    client.ask("thread/unsubscribe", &json!({"threadId": thread}));
    owner.turn(&thread, "say hello", "i2");
    completed(&mut owner);
    client.ask("thread/loaded/list", &json!({}));
    let later = client.heard.iter().filter(|message| message["method"] == "turn/started").count();
    assert_eq!(later, 2, "nothing of a thread that it left: {:?}", client.heard);
}

#[test]
fn the_name_and_the_role_of_a_client_go_along() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let_go(&place, "job");
    let [first] = hosts(&place, &server, ["a"]);
    let (url, port) = (server.url(), free_port());
    let (listen, tokens) = (format!("ws://127.0.0.1:{port}"), tokens(&place));
    let store = ["host", "--provider", "offline", "--store", &url, "--replica", "b"];
    let more = ["--listen", &listen, "--tokens", &tokens];
    let _second = Replica::spawn(&place, &mut place.command(&[&store[..], &more].concat()), "b");
    let mut owner = first.client();
    let thread = owner.start_thread(&place, "untrusted");
    let by_id = json!({ "threadId": thread });
    let mut viewer = NetworkClient::open_as(port, "vic-token", "viewer");
    let mut approver = NetworkClient::open_as(port, "ana-token", "approver");
    for client in [&mut viewer, &mut approver] {
        client.try_ask("thread/resume", &by_id).expect("followed");
        client.forbidden("turn/interrupt", &json!({"threadId": thread, "turnId": "t"}));
    }
    owner.turn(&thread, "run sh job.sh", "i1");
    let is_question = |message: &Value| message["method"] == APPROVAL;
    let asked = loop {
        let message = approver.read();
        if is_question(&message) {
            break message;
        }
    };
    approver.send(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    let decided = loop {
        let updated = owner.wait_for("operation/updated");
        if updated["params"]["operation"]["state"] == "decided" {
            break updated;
        }
    };
    assert_eq!(decided["params"]["operation"]["decision"]["by"], "ana", "{decided}");
    completed(&mut owner);
    while viewer.heard.iter().all(|message| message["method"] != "turn/completed") {
        let message = viewer.read();
        viewer.heard.push(message);
    }
    assert!(!viewer.heard.iter().any(is_question), "a viewer is not asked: {:?}", viewer.heard);
}

#[test]
fn a_tool_of_a_client_is_called_through_the_host_it_is_connected_to() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    let [first, second] = hosts(&place, &server, ["a", "b"]);
    let schema = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    let tool = json!({"name": "refund", "description": "Gives money back.", "inputSchema": schema, "effects": "once"});
    let mut owner = first.client();
    let started = owner.ask(
        "thread/start",
        &json!({
            "cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access",
            "toolSet": {"mode": "additive", "dynamic": [tool], "approval": {"default": "runtime"}}, "provides": [],
        }),
    );
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    let mut provider = second.client();
    provider.ask("thread/resume", &json!({"threadId": thread, "provides": [{"name": "refund"}]}));
    owner.turn(&thread, "call refund {\"order\": \"A-17\"}", "i1");
    let call = provider.wait_for(CALL);
    assert_eq!(call["params"]["arguments"], json!({"order": "A-17"}), "{call}");
    let content = json!([{"type": "inputText", "text": "refunded"}]);
    provider.write(&json!({"id": call["id"], "result": {"contentItems": content, "success": true}}));
    completed(&mut owner);
    completed(&mut provider);

    // The client that runs a call ends: its host's link ends with it, and what may run once is unknown.
    owner.turn(&thread, "call refund {\"order\": \"B-18\"}", "i2");
    provider.wait_for(CALL);
    drop(provider);
    let lost = until("the loss", || second.pending(&place, &thread));
    assert_eq!(lost["state"], "unknown", "{lost}");
}

#[test]
fn what_a_lost_owner_owed_is_answered_and_only_input_with_an_id_is_sent_again() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let_go(&place, "job");
    let [first, second] = hosts(&place, &server, ["a", "b"]);
    let mut owner = first.client();
    let thread = owner.start_thread(&place, "never");
    let mut client = second.client();
    resume(&mut client, &thread);
    first.signal("-STOP");
    let input = json!([{"type": "text", "text": "run sh job.sh"}]);
    client.write(&json!({"id": "lost", "method": "thread/compact/start", "params": {"threadId": thread}}));
    client.write(&json!({
        "id": "again", "method": "turn/start", "params": {"threadId": thread, "input": input, "inputId": "i1"},
    }));
    let mut answers = std::collections::BTreeMap::new();
    while answers.len() < 2 {
        let message = client.read();
        match (message["id"].as_str(), message.get("method")) {
            (Some(id), None) => drop(answers.insert(id.to_owned(), message)),
            _ => client.heard.push_back(message),
        }
    }
    assert_eq!(answers["lost"]["error"]["data"]["code"], "ownerLost", "{answers:?}");
    assert_eq!(answers["again"]["result"]["turn"]["status"], "inProgress", "{answers:?}");
    completed(&mut client);
    assert_eq!(runs(&place, "job"), 1);
    first.signal("-CONT");
    until("the stopped host is fenced", || (!first.state(&place, &thread).is_empty()).then_some(()));
    assert_eq!(runs(&place, "job"), 1, "what reached the stopped host has no effect");
}

#[test]
fn a_host_that_does_not_know_the_secret_is_not_relayed_to_and_a_port_needs_one() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    let [first] = hosts(&place, &server, ["a"]);
    let thread = first.client().start_thread(&place, "never");
    let url = server.url();
    let table = "[host]\npeer_listen = \"127.0.0.1:0\"\n";
    std::fs::write(place.home().join("config.toml"), table).expect("written");
    let arguments = ["host", "--provider", "offline", "--store", &url, "--replica", "b", "--lease", "2"];
    let refused = place.run(&arguments).bad();
    assert!(refused.err.contains("OARLOCK_PEER_SECRET"), "{}", refused.err);
    let mut command = place.command(&arguments);
    command.env("OARLOCK_PEER_SECRET", "another secret that is as long as it has to be");
    let stranger = Replica::spawn(&place, &mut command, "b");
    let refused =
        stranger.client().try_ask("thread/resume", &json!({"threadId": thread})).expect_err("refused");
    assert_eq!(refused["data"]["code"], "ownedElsewhere", "{refused}");
}
