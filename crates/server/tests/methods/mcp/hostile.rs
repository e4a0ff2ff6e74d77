//! Servers that break, stall or lie: each is named, and the turn goes on.

use serde_json::json;

use super::{ended, offered, output, server, stage};

#[tokio::test]
async fn a_server_that_does_not_start_is_named_and_the_turn_goes_on() {
    let keys = [
        server("exits", "exit", ""),
        server("hangs", "hang", "startup_timeout_sec = 1"),
        "[mcp_servers.gone]\ncommand = \"/no/such/program\"\n[mcp_servers.\"not a name\"]\ncommand = \"x\"\n"
            .to_owned(),
        server("t", "plain", ""),
    ]
    .concat();
    let stage = stage(&[("mcp__t__echo", json!({"text": "hi"}))], &keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    for (name, reason) in [
        ("exits", "cannot find its settings"),
        ("gone", "no such program"),
        ("hangs", "not ready after 1 s"),
        ("not a name", "not valid"),
    ] {
        let failed = client
            .wait_for("mcpServer/startupStatus/updated", |params| {
                params["name"] == name && params["status"] == "failed"
            })
            .await;
        assert!(failed["error"].as_str().expect("a reason").contains(reason), "{failed}");
    }
    client.wait_for("mcpServer/startupStatus/updated", |params| params["status"] == "ready").await;
    assert_eq!(ended(&mut client, "call-1").await["status"], "completed");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
}

#[tokio::test]
async fn noise_and_floods_do_no_harm() {
    for mode in ["garbage", "flood"] {
        let stage = stage(&[("mcp__t__echo", json!({"text": "hi"}))], &server("t", mode, "")).await;
        let (_server, mut client) = stage.open().await;
        let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
        client.start_turn(&id, "go").await;
        assert_eq!(ended(&mut client, "call-1").await["status"], "completed", "{mode}");
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{mode}");
    }
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_named() {
    let calls = [("mcp__t__die", json!({})), ("mcp__t__echo", json!({}))];
    let stage = stage(&calls, &server("t", "plain", "")).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    for call in ["call-1", "call-2"] {
        let failed = ended(&mut client, call).await;
        let message = failed["error"]["message"].as_str().expect("a reason");
        assert_eq!(message, "MCP server `t`: the server ended with code 9: out of memory");
    }
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
}

#[tokio::test]
async fn a_result_of_a_hundred_megabytes_is_dropped() {
    let calls = [("mcp__t__huge", json!({})), ("mcp__t__echo", json!({"text": "hi"}))];
    let stage = stage(&calls, &server("t", "plain", "")).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let failed = ended(&mut client, "call-1").await;
    let message = failed["error"]["message"].as_str().expect("a reason");
    assert!(message.contains("larger than 16 MiB"), "{message}");
    assert_eq!(ended(&mut client, "call-2").await["status"], "completed", "the connection goes on");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
}

#[tokio::test]
async fn a_hostile_list_takes_no_name_and_harms_no_other_tool() {
    let stage = stage(&[("mcp__t__good", json!({}))], &server("t", "hostile-list", "")).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "go").await;
    let names = offered(&stage.asked()[0]);
    assert_eq!(names.iter().filter(|name| *name == "exec_command").count(), 1, "{names:?}");
    let of_server: Vec<_> = names.iter().filter(|name| name.starts_with("mcp__t__")).collect();
    assert_eq!(of_server.len(), 4, "{of_server:?}");
    assert!(of_server.contains(&&"mcp__t__exec_command".to_owned()));
    assert!(of_server.contains(&&"mcp__t__a_b".to_owned()));
    assert!(of_server.iter().all(|name| name.len() <= 64));
    assert!(output(&stage, "call-1").to_string().contains("good done"));
}
