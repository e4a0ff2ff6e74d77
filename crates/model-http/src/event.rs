//! Parses the offline model's events with the code for providers, so that both are equal.

use model::{ModelFailure, StreamEvent};
use wires::Decoder;

/// `None`: the turn does not need it.
pub(crate) fn read_event(text: &str) -> Option<StreamEvent> {
    let mut events = Vec::new();
    Decoder::responses().push(text, &mut events);
    events.pop()
}

/// The failure of a stream that ended without its last event.
pub(crate) fn closed_early() -> ModelFailure {
    let mut events = Vec::new();
    Decoder::responses().close(None, &mut events);
    match events.pop() {
        Some(StreamEvent::Failed(failure)) => failure,
        _ => ModelFailure::stream("it ended"),
    }
}
