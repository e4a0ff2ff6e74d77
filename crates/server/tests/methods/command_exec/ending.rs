//! Commands end when they are told to, and with their connection.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Stage, until, until_in};

use super::{CommandClient, NO_WALLS, answer, count_processes, open, script, unique_seconds, written};

/// The time allowed between the end of a connection and the last process being gone.
const GONE_WITHIN: Duration = Duration::from_secs(1);

/// A tree that does not want to go: one in another session, one that ignores signals, one in the background.
fn tree(seconds: &str) -> String {
    format!(
        "trap '' TERM HUP INT; setsid sleep {seconds} & (trap '' TERM; sleep {seconds}; :) & \
         nohup sleep {seconds} >/dev/null 2>&1 & echo up; sleep {seconds}; :"
    )
}

fn streamed(text: &str, id: &str) -> Value {
    script(text, &json!({"processId": id, "streamStdoutStderr": true, "disableTimeout": true}))
}

#[tokio::test]
async fn a_terminated_command_is_answered_after_the_termination() {
    let (_stage, _server, mut client) = open().await;
    let seconds = unique_seconds();
    let running = client.send("command/exec", streamed(&tree(&seconds), "p")).await;
    client.hear_until("p", "up").await;
    until("all run", || count_processes(&seconds) >= 4).await;
    client.transcript();
    assert_eq!(client.ask("command/exec/terminate", json!({"processId": "p"})).await, json!({}));
    assert_eq!(client.outcome(running).await, Ok(answer(-1, "", "")));
    assert_eq!(count_processes(&seconds), 0);
    assert_eq!(client.transcript(), ["= command/exec/terminate", "= command/exec"]);
}

#[tokio::test]
async fn what_a_terminated_command_said_is_kept() {
    let (stage, _server, mut client) = open().await;
    let mut params = script("echo said; echo > said; exec sleep 1000", &json!({"processId": "p"}));
    params["cwd"] = json!(stage.cwd());
    let running = client.send("command/exec", params).await;
    until("it runs", || stage.cwd().join("said").exists()).await;
    client.ask("command/exec/terminate", json!({"processId": "p"})).await;
    assert_eq!(client.outcome(running).await, Ok(answer(-1, "said\n", "")));
}

#[tokio::test]
async fn one_that_is_just_being_started_can_be_terminated() {
    let (_stage, _server, mut client) = open().await;
    let seconds = unique_seconds();
    let params = json!({"command": ["sleep", seconds], "processId": "p"});
    let running = client.send("command/exec", params).await;
    let stopping = client.send("command/exec/terminate", json!({"processId": "p"})).await;
    assert_eq!(client.outcome(stopping).await, Ok(json!({})));
    assert_eq!(client.outcome(running).await, Ok(answer(-1, "", "")));
    assert_eq!(count_processes(&seconds), 0);
}

#[tokio::test]
async fn a_connection_takes_its_commands_with_it() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let server = stage.listen();
    let (mut leaving, mut staying) = (server.connect().await, server.connect().await);
    let (seconds, others) = (unique_seconds(), unique_seconds());
    for id in ["a", "b"] {
        leaving.send("command/exec", streamed(&tree(&seconds), id)).await;
        leaving.hear_until(id, "up").await;
    }
    let terminal = script(&tree(&seconds), &json!({"processId": "t", "tty": true}));
    leaving.send("command/exec", terminal).await;
    leaving.hear_until("t", "up").await;
    leaving.send("command/exec", json!({"command": ["sleep", seconds]})).await;
    staying.send("command/exec", streamed(&format!("echo up; exec sleep {others}"), "a")).await;
    staying.hear_until("a", "up").await;
    until("all run", || count_processes(&seconds) >= 13).await;
    drop(leaving);
    until_in(GONE_WITHIN, "all are gone", || count_processes(&seconds) == 0).await;
    assert_eq!(count_processes(&others), 1);
    staying.ask("command/exec/terminate", json!({"processId": "a"})).await;
}

#[tokio::test]
async fn a_connection_that_ends_at_once_leaves_nothing() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let server = stage.listen();
    let seconds = unique_seconds();
    for _ in 0..5 {
        let mut client = server.connect().await;
        for _ in 0..4 {
            client.send("command/exec", json!({"command": ["sleep", seconds], "disableTimeout": true})).await;
        }
    }
    let mut last = server.connect().await;
    last.ask("model/list", json!({})).await;
    // None may begin late either.
    let mut quiet_since = std::time::Instant::now();
    until("none is left", || {
        if count_processes(&seconds) > 0 {
            quiet_since = std::time::Instant::now();
        }
        quiet_since.elapsed() > Duration::from_millis(500)
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_that_leaves_takes_its_commands_with_it() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let server = stage.listen();
    let mut client = server.connect().await;
    let seconds = unique_seconds();
    let mut params = streamed("yes; :", "p");
    // To find it by.
    params["command"].as_array_mut().expect("an array").push(json!(seconds));
    client.send("command/exec", params).await;
    client.hear_until("p", "y\n").await;
    assert!(count_processes(&seconds) > 0);
    drop(client);
    until_in(GONE_WITHIN, "all are gone", || count_processes(&seconds) == 0).await;
}

#[tokio::test]
async fn commands_belong_to_one_connection() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let server = stage.listen();
    let (mut owner, mut other) = (server.connect().await, server.connect().await);
    let both = json!({"processId": "p", "tty": true});
    let running = owner.send("command/exec", script("echo up; read x; echo \"got $x\"", &both)).await;
    owner.hear_until("p", "up").await;
    let unknown = (-32600, "no active command/exec for process id \"p\"".to_owned());
    let requests = [
        ("write", written("p", "intruder\n")),
        ("resize", json!({"processId": "p", "size": {"rows": 1, "cols": 1}})),
        ("terminate", json!({"processId": "p"})),
    ];
    for (method, params) in requests {
        assert_eq!(other.exec_refused(&format!("command/exec/{method}"), params).await, unknown);
    }
    let same_name = json!({"command": ["echo", "mine"], "processId": "p"});
    assert_eq!(other.exec(same_name).await, answer(0, "mine\n", ""));
    assert!(!other.rest().await.contains(&super::DELTA.to_owned()));
    owner.ask("command/exec/write", written("p", "owner\n")).await;
    owner.hear_until("p", "got owner").await;
    assert_eq!(owner.outcome(running).await, Ok(answer(0, "", "")));
}

#[tokio::test]
async fn the_end_of_the_server_is_the_end_of_all_commands() {
    let (_stage, server, mut client) = open().await;
    let seconds = unique_seconds();
    client.send("command/exec", streamed(&tree(&seconds), "p")).await;
    client.hear_until("p", "up").await;
    server.stop().await;
    assert_eq!(count_processes(&seconds), 0);

    let (_stage, server, mut client) = open().await;
    client.send("command/exec", streamed(&tree(&seconds), "p")).await;
    client.hear_until("p", "up").await;
    server.kill().await;
    until("all are gone", || count_processes(&seconds) == 0).await;
}
