//! Putting a long history before a model: from the user's words to the request, by the engine this program is built with.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use engine::{Effect, Input, Stamp, Step, ThreadMachine, ThreadSeed, ToolKind, ToolSpec, UserText};
use protocol::{ContentItem, ResponseItem, ThreadId, TurnId, UserInput};
use serde_json::{Value, json};

use crate::metrics::{PROMPT, PROMPT_JSON, Sample};
use crate::workload::Workload;

/// Requests made for one repetition. The first is slower, as it is in a server.
const REQUESTS: usize = 20;

pub(crate) fn run(workload: &Workload) -> Result<Vec<Sample>> {
    let history = history(workload.prompt_items)?;
    let step = Arc::new(step());
    let mut samples = Vec::new();
    for number in 0..REQUESTS {
        let mut seed = ThreadSeed::new(ThreadId::new("019a8b3c-0000-7000-8000-000000000001"));
        seed.history = history.clone();
        let mut thread = ThreadMachine::new(seed);
        let input = Input::Start {
            turn_id: TurnId::new("turn"),
            text: words("go on"),
            output_schema: None,
            step: step.clone(),
        };
        let stamp = Stamp { now_ms: 1, entropy: number as u128 };
        let begun = Instant::now();
        let effects = thread.on(stamp, input).context("the engine refused the input")?;
        let assembled = begun.elapsed();
        let request = effects.iter().find_map(|effect| match effect {
            Effect::RequestModel { request, .. } => Some(request),
            _ => None,
        });
        let body = &request.context("the engine asked for something else first")?.body;
        let encoded = serde_json::to_vec(&**body)?;
        let whole = begun.elapsed();
        // Before it: what the model is told of its surroundings, by at most two messages.
        let extra = body.input.len().checked_sub(history.len() + 1);
        ensure!(matches!(extra, Some(0..=2)), "the request has {} items", body.input.len());
        ensure!(encoded.ends_with(b"}"), "the body is not whole");
        samples.push(PROMPT.sample(assembled.as_secs_f64() * 1e3));
        samples.push(PROMPT_JSON.sample(whole.as_secs_f64() * 1e3));
    }
    Ok(samples)
}

/// As agents leave it: somebody speaks, the model thinks, calls, reads and answers.
fn history(items: usize) -> Result<Vec<ResponseItem>> {
    let text = |name: &str, length: usize| name.repeat(length / name.len());
    let one = |number: usize| {
        let call_id = format!("call-{}", number / 5);
        match number % 5 {
            0 => message("user", "input_text", &text("Please look. ", 130)),
            1 => json!({
                "type": "reasoning", "id": "rs", "encrypted_content": text("ZW5jcnlwdGVk", 1_200),
                "summary": [{"type": "summary_text", "text": text("Thinking. ", 100)}],
            }),
            2 => json!({
                "type": "function_call", "call_id": call_id, "name": "exec_command",
                "arguments": "{\"cmd\":\"cargo test\"}",
            }),
            3 => {
                json!({"type": "function_call_output", "call_id": call_id, "output": text("test ok\n", 800)})
            }
            _ => message("assistant", "output_text", &text("All is well. ", 260)),
        }
    };
    (0..items).map(|number| Ok(serde_json::from_value(one(number))?)).collect()
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

fn words(text: &str) -> UserText {
    UserText {
        shown: vec![UserInput::Text { text: text.to_owned(), text_elements: Vec::new() }],
        content: vec![ContentItem::InputText { text: text.to_owned() }],
        ..UserText::default()
    }
}

/// A usual number of tools, instructions of a usual length, and no limit that would have the history compacted.
fn step() -> Step {
    let tool = |number: usize| {
        let parameters = json!({"type": "object", "properties": {"text": {"type": "string", "description": "x".repeat(400)}}});
        let name = format!("tool_{number}");
        let json = json!({"type": "function", "name": name, "description": "d", "parameters": parameters});
        ToolSpec {
            namespace: None,
            name,
            kind: ToolKind::Builtin,
            json: Some(Arc::new(json)),
            parallel: true,
            gate: engine::Gate::Open,
            effects: Default::default(),
        }
    };
    let mut step = Step::bare("model", "/work");
    step.model.context_window = None;
    step.base_instructions = "Work well. ".repeat(1_000).into();
    step.project_instructions = Some("Use tabs. ".repeat(400).into());
    step.tools = (0..12).map(tool).collect();
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_made_and_timed_each_time() {
        let samples = run(&Workload::scaled(100)).expect("measured");
        assert_eq!(samples.len(), 2 * REQUESTS);
        assert!(samples.iter().all(|sample| sample.value > 0.0));
    }
}
