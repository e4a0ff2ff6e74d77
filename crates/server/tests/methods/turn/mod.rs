//! `turn/*`: one file for each method, and files for what happens while a turn runs.

mod additional_context;
mod approvals;
mod commands;
mod dynamic_tools;
mod elicitation;
mod git_facts;
mod image_generation;
mod interrupt;
mod interrupt_commands;
mod plan;
mod scripts;
mod start;
mod start_options;
mod steer;
mod suspend;
mod under_way;

use serde_json::{Value, json};
use testkit::TestClient;

/// A model that asks the client for something, then says two things.
fn asking() -> Value {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    json!([{"call": call}, {"text": "seen"}, {"text": "next"}])
}

/// A thread with a turn that waits for the client; gives thread, turn and question.
async fn waiting(client: &mut TestClient) -> (String, String, Value) {
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = client.start_thread(json!({"dynamicTools": [tool]})).await;
    let turn_id = client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    (id, turn_id, question)
}

fn found() -> Value {
    json!({"contentItems": [{"type": "inputText", "text": "seven"}], "success": true})
}

fn steer(thread: &str, said: &str, expected: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": said}], "expectedTurnId": expected})
}

const FREE: &str = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";

fn call(tool: &str, arguments: &Value) -> Value {
    json!([{"call": {"name": tool, "callId": "call-1", "arguments": arguments}}, {"text": "done"}])
}
