//! `review/start`, inline and detached, and the automatic review of approvals.

mod approvals;
mod restart;
mod start;

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

/// An answer of a reviewer with one finding.
const ANSWER: &str = r#"{"findings": [{"title": "Prefer X", "body": "Because.", "confidence_score": 0.9, "priority": 1,
    "code_location": {"absolute_file_path": "/tmp/file.rs", "line_range": {"start": 10, "end": 20}}}],
    "overall_correctness": "good", "overall_explanation": "Looks solid.", "overall_confidence_score": 0.8}"#;

const SHOWN: &str = "Looks solid.\n\nReview comment:\n\n- Prefer X — /tmp/file.rs:10-20\n  Because.";

fn commit() -> Value {
    json!({"type": "commit", "sha": "1234567deadbeef", "title": "Tidy UI"})
}

/// Starts an inline review; gives its turn's id.
async fn review(client: &mut TestClient, thread: &str, target: Value) -> String {
    let response = client.ask("review/start", json!({"threadId": thread, "target": target})).await;
    assert_eq!(response["reviewThreadId"], thread);
    response["turn"]["id"].as_str().expect("an id").to_owned()
}

/// The texts of the last request's input, with roles.
fn last_input(stage: &Stage) -> String {
    stage.asked().last().expect("a request")["input"].to_string()
}
