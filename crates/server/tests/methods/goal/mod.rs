//! `thread/goal/*`: the server works on a goal by itself, and messages from outside reach the model.

mod attacks;
mod outside;
mod restart;
mod set;

use serde_json::{Value, json};
use testkit::TestClient;

fn reached(id: &str) -> Value {
    json!({"call": {"name": "update_goal", "callId": id, "arguments": {"status": "complete"}}})
}

/// A step that costs this many tokens.
fn costly(text: &str, tokens: u64) -> Value {
    json!({"text": text, "usage": {"inputTokens": tokens - 1, "outputTokens": 1}})
}

async fn set(client: &mut TestClient, thread: &str, fields: Value) -> Value {
    let mut params = json!({"threadId": thread});
    params.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    client.ask("thread/goal/set", params).await["goal"].clone()
}

/// Waits for the goal to stand like this, and for the end of the turn in which it came to.
async fn stands(client: &mut TestClient, status: &str) -> Value {
    let updated = client.wait_for("thread/goal/updated", |params| params["goal"]["status"] == status).await;
    let turn_id = updated["turnId"].clone();
    client.wait_for("turn/completed", |params| params["turn"]["id"] == turn_id).await;
    updated["goal"].clone()
}
