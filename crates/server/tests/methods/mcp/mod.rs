//! MCP servers end to end: a real program speaks over its standard streams; only the model is a script.

mod approval;
mod elicitation;
mod hostile;
mod http;
mod lifetime;
mod methods;
mod oauth;
mod tools;

use std::path::Path;

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

/// A server of this name that behaves in this way, with more keys in its table.
fn server(name: &str, mode: &str, keys: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/methods/mcp/server.py");
    format!(
        "[mcp_servers.{name}]\ncommand = \"python3\"\nargs = [\"{}\", \"{mode}\"]\n{keys}\n",
        script.display()
    )
}

fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    json!({"call": {"name": tool, "callId": id, "arguments": arguments}})
}

/// A stage whose model makes these calls, one after the other, and then is done.
async fn stage(calls: &[(&str, Value)], keys: &str) -> Stage {
    let made = calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| call(&format!("call-{}", at + 1), tool, arguments));
    let steps: Vec<Value> = made.chain([json!({"text": "done"})]).collect();
    Stage::configured(json!(steps), keys).await
}

/// The item of a call when it has ended.
async fn ended(client: &mut TestClient, id: &str) -> Value {
    client.wait_for("item/completed", |params| params["item"]["id"] == id).await["item"].clone()
}

/// The output of a call as the model read it.
fn output(stage: &Stage, id: &str) -> Value {
    let asked = stage.asked();
    let inputs = asked.last().expect("a request")["input"].as_array().expect("input").clone();
    let output = inputs.iter().rfind(|item| item["type"] == "function_call_output" && item["call_id"] == id);
    output.unwrap_or_else(|| panic!("no output of {id}"))["output"].clone()
}

/// The names of the tools of a request.
fn offered(request: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
    request["tools"].as_array().expect("tools").iter().filter_map(name).collect()
}

/// The server's own notes.
fn heard(stage: &Stage) -> String {
    std::fs::read_to_string(stage.cwd().join("heard.txt")).unwrap_or_default()
}
