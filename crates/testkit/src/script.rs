//! The answers of a scripted host, and its misbehaviour.

use serde_json::{Value, json};

/// The answer to one `model/request`.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Responses stream events, each as JSON text.
    pub events: Vec<String>,
    pub ending: Ending,
}

/// How a stream ends, after its events.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// Nothing: the last event is terminal, or the stream stays open.
    Nothing,
    /// `model/streamAborted` with this reason.
    Abort { reason: &'static str, replay_safe: bool },
    /// The request is refused with this `ModelError`.
    Reject(Value),
    /// No disposition.
    Silence,
}

impl Answer {
    pub fn events(events: impl IntoIterator<Item = Value>) -> Self {
        let events = events.into_iter().map(|event| event.to_string()).collect();
        Self { events, ending: Ending::Nothing }
    }

    /// A whole response with one text.
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

/// How batches are sent. The default is a correct host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Limit of events per batch.
    pub batch: usize,
    /// Every batch is sent twice.
    pub repeats: bool,
    /// Each batch is preceded by one that leaves a gap.
    pub leaves_gaps: bool,
    /// Sends beyond the credit until refused.
    pub ignores_credit: bool,
    /// Events are sent as notifications, without acknowledgement.
    pub notifies: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self { batch: 64, repeats: false, leaves_gaps: false, ignores_credit: false, notifies: false }
    }
}

/// The events of a response with one text.
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
