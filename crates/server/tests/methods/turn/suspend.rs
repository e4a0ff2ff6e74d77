//! Turns that a restart cut off, taken up again: what waits is asked about again, what was decided is not, what began
//! is not run twice. Whether a command ran, and how often, is seen on the disk.

use serde_json::{Value, json};
use testkit::{Stage, TestClient, told, until};

const ASKS: &str = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
const COMMAND: &str = "item/commandExecution/requestApproval";

fn steps(cmd: &str) -> Value {
    let call = json!({"name": "exec_command", "callId": "call-1", "arguments": {"cmd": cmd}});
    json!([{"call": call}, {"text": "done"}])
}

async fn asked(stage: &Stage, client: &mut TestClient) -> String {
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    client.next_of(COMMAND).await;
    id
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.cwd().join("runs")).map_or(0, |text| text.lines().count())
}

fn resume(id: &str) -> Value {
    json!({"threadId": id, "resumeTurn": true})
}

#[tokio::test]
async fn a_pending_approval_survives_a_kill_and_a_stop() {
    for kills in [true, false] {
        let stage = Stage::configured(steps("echo x >> runs"), ASKS).await;
        let (server, mut client) = stage.open().await;
        let id = asked(&stage, &mut client).await;
        if kills {
            server.kill().await;
        } else {
            server.stop().await;
        }
        let (_server, mut client) = stage.open().await;
        let opened = client.ask("thread/resume", resume(&id)).await;
        assert_eq!(told(&opened["thread"]), ["inProgress: go"]);
        let pending = &opened["pendingOperations"];
        assert_eq!(pending.as_array().map(Vec::len), Some(1), "kills {kills}: {opened}");
        assert_eq!((&pending[0]["state"], &pending[0]["tool"]), (&json!("proposed"), &json!("exec_command")));
        let question = client.next_of(COMMAND).await;
        assert_eq!(runs(&stage), 0);
        client.answer(&question, json!({"decision": "accept"})).await;
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
        assert_eq!(runs(&stage), 1);
        let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
        assert_eq!(told(&read["thread"]), ["completed: go"]);
        stage.assert_played();
    }
}

#[tokio::test]
async fn without_being_asked_to_nobody_takes_it_up() {
    let stage = Stage::configured(steps("echo x >> runs"), ASKS).await;
    let (server, mut client) = stage.open().await;
    let id = asked(&stage, &mut client).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    let opened = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&opened["thread"]), ["interrupted: go"]);
    assert_eq!(opened["pendingOperations"], Value::Null);
    // Whoever comes later finds nothing left to take up.
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    let opened = client.ask("thread/resume", resume(&id)).await;
    assert_eq!(told(&opened["thread"]), ["interrupted: go"]);
    assert!(!client.rest().await.iter().any(|method| method == COMMAND));
    assert_eq!(runs(&stage), 0);
}

#[tokio::test]
async fn a_call_that_nobody_takes_up_is_told_as_never_begun() {
    let stage = Stage::configured(steps("echo x >> runs"), ASKS).await;
    let (server, mut client) = stage.open().await;
    let id = asked(&stage, &mut client).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "and now?").await;
    let input = stage.asked().last().expect("a request")["input"].to_string();
    assert!(input.contains("the program stopped before it had begun"), "{input}");
    assert!(!input.contains("by user"), "{input}");
    assert_eq!(runs(&stage), 0);
}

#[tokio::test]
async fn what_runs_when_the_server_stops_is_told_as_that_and_not_as_the_users_wish() {
    let keys = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(steps("echo x >> runs; sleep 60"), keys).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    until("the command runs", || runs(&stage) > 0).await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let opened = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&opened["thread"]), ["interrupted: go"]);
    client.turn(&id, "and now?").await;
    let input = stage.asked().last().expect("a request")["input"].to_string();
    assert!(input.contains("the program that ran it was shut down"), "{input}");
    assert!(input.contains("the user did not ask for"), "{input}");
    assert!(!input.contains("by user") && !input.contains("on purpose"), "{input}");
    assert_eq!(runs(&stage), 1);
}

#[tokio::test]
async fn what_was_decided_meanwhile_is_carried_out_without_a_question() {
    for (decision, expected) in [
        (json!({"type": "approve"}), 1),
        (json!({"type": "reject"}), 0),
        (
            json!({"type": "respond", "success": true, "contentItems": [{"type": "inputText", "text": "by hand"}]}),
            0,
        ),
    ] {
        let stage = Stage::configured(steps("echo x >> runs"), ASKS).await;
        let (server, mut client) = stage.open().await;
        let id = asked(&stage, &mut client).await;
        server.kill().await;
        let (server, mut client) = stage.open().await;
        let opened = client.ask("thread/resume", json!({"threadId": id, "resumeTurn": true})).await;
        let pending = opened["pendingOperations"][0].clone();
        server.kill().await;

        let (_server, mut client) = stage.open().await;
        let resolved = |digest: &Value| {
            json!({"threadId": id, "resumeTurn": true, "resolvedOperations": [
                {"operationId": pending["operationId"], "argumentsDigest": digest, "decision": decision}]})
        };
        let refused =
            client.request("thread/resume", resolved(&json!("sha256:0"))).await.expect_err("refused");
        assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("digestMismatch")), "{refused:?}");
        assert!(refused.message.contains("resolvedOperations[0]"), "{}", refused.message);
        client.ask("thread/resume", resolved(&pending["argumentsDigest"])).await;
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{decision}");
        assert!(!client.transcript().iter().any(|method| method == COMMAND), "{decision}");
        assert_eq!(runs(&stage), expected, "{decision}");
        stage.assert_played();
    }
}

#[tokio::test]
async fn what_began_is_not_run_again_and_the_model_hears_that_nobody_knows() {
    let keys = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(steps("echo x >> runs; sleep 60"), keys).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    client.wait_for("item/started", |params| params["item"]["type"] == "commandExecution").await;
    until("the command runs", || runs(&stage) > 0).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    let opened = client.ask("thread/resume", resume(&id)).await;
    assert_eq!(opened["pendingOperations"][0]["state"], "unknown", "{opened}");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    let asked = stage.asked();
    let input = asked.last().expect("a request")["input"].to_string();
    assert!(input.contains("outcome of this call is not known"), "{input}");
    assert_eq!(runs(&stage), 1);
}

#[tokio::test]
async fn a_turn_is_put_away_and_taken_up_in_the_same_process() {
    let stage = Stage::configured(steps("echo x >> runs"), ASKS).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let turn = client.start_turn(&id, "go").await;
    let put_away = json!({"threadId": id, "turnId": turn, "mode": "whenPending"});
    client.next_of(COMMAND).await;
    let answer = client.ask("turn/suspend", put_away).await;
    assert_eq!(answer["pendingOperations"][0]["itemId"], "call-1", "{answer}");
    let told = client.next_of("turn/suspended").await;
    assert_eq!(told["pendingOperations"][0]["operationId"], answer["pendingOperations"][0]["operationId"]);
    let resolved = client.next_of("serverRequest/resolved").await;
    assert_eq!(resolved["reason"], "suspended");
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}));
    client.ask("thread/resume", resume(&id)).await;
    let question = client.next_of(COMMAND).await;
    client.answer(&question, json!({"decision": "accept"})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["id"], json!(turn));
    assert_eq!(runs(&stage), 1);
}
