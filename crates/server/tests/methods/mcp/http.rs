//! Servers over streamable HTTP.

use std::path::Path;
use std::process::{Child, Command};

use serde_json::json;
use testkit::Stage;

use super::{call, ended};

/// Ends with the test.
struct HttpServer(Child);

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that wants this token, and its port.
async fn serve(stage: &Stage, token: &str) -> (HttpServer, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/methods/mcp/http_server.py");
    let file = stage.cwd().join("port");
    let child = Command::new("python3").arg(script).arg(&file).arg(token).spawn().expect("python3 runs");
    let server = HttpServer(child);
    testkit::until("it listens", || file.exists()).await;
    (server, std::fs::read_to_string(file).expect("a port"))
}

fn configured(port: &str, keys: &str) -> String {
    format!(
        "[mcp_servers.h]\nurl = \"http://127.0.0.1:{port}/mcp\"\nhttp_headers = {{X-Extra = \"yes\"}}\n{keys}\n"
    )
}

#[tokio::test]
async fn calls_go_over_http_with_token_session_and_events() {
    let steps = json!([
        call("call-1", "mcp__h__echo", &json!({"text": "hi"})),
        call("call-2", "mcp__h__echo", &json!({"text": "break"})),
        {"text": "done"},
    ]);
    let stage = Stage::new(steps).await;
    // The token is in a variable of this process.
    let (_http, port) = serve(&stage, &std::env::var("HOME").expect("it is set")).await;
    stage.configure(&configured(&port, "bearer_token_env_var = \"HOME\""));
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    assert_eq!(client.next_of("item/mcpToolCall/progress").await["message"], "1");
    let done = ended(&mut client, "call-1").await;
    assert_eq!(done["result"]["content"][0]["text"], "http: hi", "{done}");
    let failed = ended(&mut client, "call-2").await;
    let message = failed["error"]["message"].as_str().expect("a reason");
    assert!(message.contains("500") && message.contains("out of order"), "{message}");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    let listed = client.ask("mcpServerStatus/list", json!({})).await;
    assert_eq!(listed["data"][0]["authStatus"], "bearerToken");
}

#[tokio::test]
async fn a_server_that_cannot_be_used_is_named() {
    let stage = Stage::new(json!([{"text": "done"}])).await;
    let (_http, port) = serve(&stage, "another token").await;
    for (port, keys, reason) in [
        (port.as_str(), "", "wants a login"),
        (port.as_str(), "bearer_token_env_var = \"NO_SUCH_VARIABLE\"", "NO_SUCH_VARIABLE is not set"),
        ("1", "", "connection refused"),
    ] {
        stage.configure(&configured(port, keys));
        let (_server, mut client) = stage.open().await;
        client.start_thread(json!({"cwd": stage.cwd()})).await;
        let failed =
            client.wait_for("mcpServer/startupStatus/updated", |params| params["status"] == "failed").await;
        let error = failed["error"].as_str().expect("a reason");
        assert!(error.contains("`h`") && error.contains(reason), "{error}");
    }
}
