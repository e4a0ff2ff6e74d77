//! The answers of a scripted host, and how well it behaves.

use serde_json::{Value, json};

/// The answer to one `model/request`.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Responses stream events, each as JSON text.
    pub events: Vec<String>,
    pub ending: Ending,
}

/// The end of a stream, after its events.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Nothing: the last event is terminal, or the stream stays open.
    Nothing,
    /// `model/streamAborted` with this reason.
    Abort { reason: &'static str, replay_safe: bool },
    /// The request is not accepted in the first place, with this `ModelError`.
    Reject(Value),
    /// No disposition at all.
    Silence,
}

impl Answer {
    pub fn events(events: impl IntoIterator<Item = Value>) -> Self {
        let events = events.into_iter().map(|event| event.to_string()).collect();
        Self { events, ending: Ending::Nothing }
    }

    /// A whole response that says one thing.
    pub fn text(said: &str) -> Self {
        Self::events(text_response(said))
    }

    pub fn rejected(error: Value) -> Self {
        Self { events: Vec::new(), ending: Ending::Reject(error) }
    }

    #[must_use]
    pub fn then(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }
}

/// How batches are sent. The default is a host that does everything right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Events in a batch at most.
    pub batch: usize,
    /// Every batch is sent twice.
    pub repeats: bool,
    /// Before every batch comes one that leaves a gap.
    pub leaves_gaps: bool,
    /// More is sent than there is credit for, until it is refused.
    pub ignores_credit: bool,
    /// Events go out as notifications, without acknowledgement.
    pub notifies: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self { batch: 64, repeats: false, leaves_gaps: false, ignores_credit: false, notifies: false }
    }
}

/// The events of a response that says one thing.
pub fn text_response(said: &str) -> Vec<Value> {
    let item =
        |content: Value| json!({"type": "message", "id": "m1", "role": "assistant", "content": content});
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    vec![
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.added", "item": item(json!([]))}),
        json!({"type": "response.output_text.delta", "item_id": "m1", "delta": said}),
        json!({"type": "response.output_item.done", "item": item(json!([{"type": "output_text", "text": said}]))}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": usage}}),
    ]
}
