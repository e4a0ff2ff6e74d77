//! Measures encoding one more request of a growing thread, on every wire: `cargo run --release -p oarlock-wires
//! --example growth`.
#![allow(clippy::expect_used, reason = "an example may panic")]

use std::sync::Arc;
use std::time::Instant;

use model::protocol::ResponseItem;
use model::{RequestBody, ToolChoice};
use oarlock_wires::{Capabilities, Encoder, Wire};
use serde_json::{Value, json};

fn item(value: Value) -> Arc<ResponseItem> {
    Arc::new(serde_json::from_value(value).expect("an item"))
}

/// The items of one turn, about 1.8 KB.
fn turn(number: usize) -> [Arc<ResponseItem>; 4] {
    let call_id = format!("call_{number}");
    let said = |role: &str, kind: &str, text: String| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    [
        item(said("user", "input_text", "Please look. ".repeat(10))),
        item(
            json!({"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{\"path\":\"a\"}"}),
        ),
        item(json!({"type": "function_call_output", "call_id": call_id, "output": "test ok\n".repeat(150)})),
        item(said("assistant", "output_text", "All is well. ".repeat(20))),
    ]
}

fn request(input: &[Arc<ResponseItem>]) -> Arc<RequestBody> {
    let tool = |name: &str| {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        Arc::new(
            json!({"type": "function", "name": name, "description": "Reads. ".repeat(40), "parameters": parameters}),
        )
    };
    Arc::new(RequestBody {
        model: "claude-opus-4-6".to_owned(),
        instructions: "Be brief. ".repeat(1_000),
        input: input.to_vec(),
        tools: (0..12).map(|number| tool(&format!("tool_{number}"))).collect(),
        tool_choice: ToolChoice::Auto,
        parallel_tool_calls: true,
        reasoning: None,
        store: false,
        stream: true,
        include: Vec::new(),
        service_tier: None,
        prompt_cache_key: "thread".to_owned(),
        text: None,
    })
}

fn main() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let able = Capabilities::of("anthropic", wire);
        let mut encoder = Encoder::new(wire);
        let mut history: Vec<Arc<ResponseItem>> = Vec::new();
        let mut lately = Vec::new();
        for number in 0..=3_000 {
            history.extend(turn(number));
            let request = request(&history);
            let begun = Instant::now();
            let encoded = encoder.encode(&request, &able).expect("it can be expressed");
            lately.push(begun.elapsed());
            if [20, 300, 1_000, 3_000].contains(&number) {
                lately.sort();
                let (median, kilobytes) = (lately[lately.len() / 2], encoded.body.len() / 1_000);
                println!(
                    "{:9} {number:5} turns {kilobytes:6} KB {:8.3} ms",
                    wire.name(),
                    median.as_secs_f64() * 1e3
                );
            }
            if lately.len() >= 20 {
                lately.clear();
            }
        }
    }
}
