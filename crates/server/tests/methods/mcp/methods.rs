//! `mcpServerStatus/list` and `config/mcpServer/reload`.

use serde_json::json;
use testkit::Stage;

use super::{offered, server, stage};

#[tokio::test]
async fn servers_are_listed_by_name_a_page_at_a_time() {
    let keys = format!("{}{}", server("b", "plain", "enabled_tools = [\"echo\"]"), server("a", "exit", ""));
    let stage = stage(&[], &keys).await;
    let (_server, mut client) = stage.open().await;
    let all = client.ask("mcpServerStatus/list", json!({})).await;
    assert_eq!((&all["data"][0]["name"], &all["data"][1]["name"]), (&json!("a"), &json!("b")));
    assert_eq!(all["data"][0]["tools"], json!({}));
    let shown = &all["data"][1];
    assert_eq!(shown["tools"]["echo"]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(shown["resources"].as_array().map(Vec::len), Some(2));
    assert_eq!(shown["resourceTemplates"][0]["uriTemplate"], "test://{x}");
    assert_eq!((&shown["authStatus"], &all["nextCursor"]), (&json!("unsupported"), &json!(null)));
    let first = client.ask("mcpServerStatus/list", json!({"limit": 1})).await;
    assert_eq!((first["data"].as_array().map(Vec::len), &first["nextCursor"]), (Some(1), &json!("1")));
    let rest = client.ask("mcpServerStatus/list", json!({"limit": 1, "cursor": "1"})).await;
    assert_eq!((&rest["data"][0]["name"], &rest["nextCursor"]), (&json!("b"), &json!(null)));
    assert_eq!(client.refused("mcpServerStatus/list", json!({"cursor": "x"})).await, "invalid cursor: x");
}

#[tokio::test]
async fn a_reload_counts_from_the_next_turn() {
    let steps = json!([{"text": "one"}, {"text": "two"}]);
    let stage = Stage::configured(steps, &server("old", "plain", "")).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "go").await;
    stage.configure(&server("new", "plain", "enabled_tools = [\"echo\"]"));
    client.ask("config/mcpServer/reload", json!({})).await;
    client.turn(&id, "again").await;
    let of_server = |at: usize| {
        offered(&stage.asked()[at]).into_iter().filter(|name| name.starts_with("mcp__")).collect::<Vec<_>>()
    };
    assert!(of_server(0).iter().all(|name| name.starts_with("mcp__old__")));
    assert_eq!(of_server(1), ["mcp__new__echo"]);
}
