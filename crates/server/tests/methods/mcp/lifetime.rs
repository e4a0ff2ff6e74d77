//! How long servers run, and what of their calls survives a crash.

use std::path::Path;

use serde_json::json;

use super::{heard, output, server, stage};

fn pid(heard: &str) -> String {
    heard.lines().find_map(|line| line.strip_prefix("pid ")).expect("it started").to_owned()
}

fn runs(pid: &str) -> bool {
    let state = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // One that has ended and was not yet waited for does not run.
    state.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_server_has_its_own_environment_and_ends_with_the_thread() {
    let stage = stage(&[], &server("t", "plain", "env = {MINE = \"1\"}")).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "go").await;
    let noted = heard(&stage);
    let env = noted.lines().find_map(|line| line.strip_prefix("env ")).expect("it started").to_owned();
    assert!(env.contains("MINE") && env.contains("PATH") && !env.contains("CARGO"), "{env}");
    let pid = pid(&noted);
    assert!(runs(&pid));
    drop(client);
    server.stop().await;
    testkit::until("the server has ended", || !runs(&pid)).await;
}

#[tokio::test]
async fn a_call_that_a_crash_cut_off_is_not_made_again() {
    let mut keys = server("t", "plain", "tools.slow.approval_mode = \"approve\"");
    keys.insert_str(0, "sandbox_mode = \"read-only\"\n");
    let stage = stage(&[("mcp__t__slow", json!({}))], &keys).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    client.next_of("item/mcpToolCall/progress").await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "go on").await;
    assert_eq!(heard(&stage).matches("call slow").count(), 1);
    let told = output(&stage, "call-1").to_string();
    assert!(!told.is_empty(), "{told}");
}

#[tokio::test]
async fn a_required_server_that_does_not_start_opens_no_thread() {
    let keys = format!("{}{}", server("must", "exit", "required = true"), server("may", "plain", ""));
    let stage = stage(&[], &keys).await;
    let (_server, mut client) = stage.open().await;
    let refused = client.request("thread/start", json!({"cwd": stage.cwd()})).await.expect_err("refused");
    let (code, message) = (refused.code, refused.message);
    assert_eq!(code, -32603);
    assert!(message.contains("required MCP servers failed to initialize: must: "), "{message}");
    let config = json!({"mcp_servers.must.required": false});
    client.start_thread(json!({"cwd": stage.cwd(), "config": config})).await;
}

#[tokio::test]
async fn a_required_server_starts_once_and_clients_are_notified_when_they_know_of_the_thread() {
    let stage =
        stage(&[("mcp__must__echo", json!({"text": "hi"}))], &server("must", "plain", "required = true"))
            .await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    for expected in ["starting", "ready"] {
        let update = client.next_of("mcpServer/startupStatus/updated").await;
        assert_eq!((&update["name"], &update["status"]), (&json!("must"), &json!(expected)));
    }
    client.turn(&id, "go").await;
    assert_eq!(heard(&stage).matches("pid ").count(), 1, "{}", heard(&stage));
}
